"""The child process of a probe: imports one payload, runs it once on zeros, and ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import TensorType
from ort_lite.context.keys import PROBE_KEY
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.options import SessionOptions
from ort_lite.probing.trial import MODEL, REQUEST
from ort_lite.session import InferenceSession
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from typing import Any

    from ctx_formats.onnx_model import ValueInfo


def main(folder: Path) -> None:
    """Return if the vendor's code survives; the parent gets its refusals when it imports."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    options = SessionOptions()
    options.add_session_config_entry(PROBE_KEY, "never")
    made_of = (folder / MODEL, options, [(request["source"], request["options"])])
    graph = read_model(memoryview((folder / MODEL).read_bytes())).graph
    try:
        with InferenceSession(*made_of, enable_fallback=0) as session:
            session.run(None, {info.name: _zeros(info) for info in graph.inputs})
    except OrtLiteError as exc:
        sys.stderr.write(f"{exc}\n")


def _zeros(info: ValueInfo) -> np.ndarray[Any, Any]:
    """Of the declared shape, a free dimension being 1."""
    assert isinstance(info.type, TensorType), "EPContext takes tensors"
    dims = [dim if isinstance(dim, int) else 1 for dim in info.type.shape or ()]
    return np.zeros(dims, numpy_dtype(info.type.elem_type))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
