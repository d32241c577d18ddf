"""onnx's compiled part alone: schemas and shape inference, without the package around it.

`import onnx` takes ten times as long: it brings protobuf's Python side, helpers for every kind of
value and printers. The extension module takes and gives models as bytes and needs none of that.
"""

from __future__ import annotations

from typing import Any

from ort_lite.extension_module import load_extension


def onnx_extension() -> Any:  # noqa: ANN401 - onnx has no types for it
    """The module `onnx.onnx_cpp2py_export`, with `defs` and `shape_inference`.

    Raises:
        ImportError: onnx is not installed.
    """
    return load_extension("onnx", "onnx_cpp2py_export")
