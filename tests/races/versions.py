"""Two versions of a model in each form that a session can be given.

Both versions have files of the same names and sizes. Version v computes x @ W + b with every
element of W being v and every one of b ten times v, from ones: whatever is mixed of two versions,
in whole tensors or in parts of one, gives another number than either.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WIDTH = int(os.environ.get("RACE_WIDTH", "320"))
VALUES = {"one": 1.0, "two": 2.0}
ANSWERS = {name: (WIDTH + 10) * value for name, value in VALUES.items()}
FEED = {"x": np.ones((1, WIDTH), np.float32)}
CURRENT = "current"


@dataclass(frozen=True)
class Form:
    """A way to give a model to a session.

    Attributes:
        make: Writes a version into a folder, for an execution provider.
        model: The file that a session is given.
        compiled: Whether a session loads compiled payloads.
        cached: Whether sessions use the model cache.
        use: "load" for a session, "compile" for ModelCompiler and a session with its result,
            "check" for check_compatibility.
    """

    make: Callable[[Path, float, str], None]
    model: str = "m.onnx"
    compiled: bool = False
    cached: bool = False
    use: str = "load"


def proto(value: float, sign: float = 1.0) -> onnx.ModelProto:
    """The model of a version; those of a group differ in sign."""
    weights = {
        "w": np.full((WIDTH, WIDTH), value, np.float32),
        "b": np.full(WIDTH, 10 * value, np.float32),
        "s": np.full(WIDTH, sign, np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"]),
            helper.make_node("Add", ["xw", "b"], ["sum"]),
            helper.make_node("Mul", ["sum", "s"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, WIDTH])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def _plain(folder: Path, value: float, _: str) -> None:
    (folder / "m.onnx").write_bytes(proto(value).SerializeToString())


def _plain_external(folder: Path, value: float, _: str) -> None:
    onnx.save(
        proto(value),
        folder / "m.onnx",
        save_as_external_data=True,
        location="w.bin",
        size_threshold=1024,
    )


def _context(folder: Path, value: float, ep: str, *, embed: bool) -> None:
    source = folder / "m.onnx"
    _plain(folder, value, ep)
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", str(int(embed)))
    ort.InferenceSession(source, options, providers=[ep]).close()
    source.unlink()


def _embedded(folder: Path, value: float, ep: str) -> None:
    _context(folder, value, ep, embed=True)


def _external(folder: Path, value: float, ep: str) -> None:
    _context(folder, value, ep, embed=False)


def _shared(folder: Path, value: float, ep: str) -> None:
    group = ort.SharedContexts()
    for name, sign, last in (("m", 1.0, "0"), ("other", -1.0, "1")):
        (folder / f"{name}.onnx").write_bytes(proto(value, sign).SerializeToString())
        options = ort.SessionOptions()
        options.add_session_config_entry("ep.context_enable", "1")
        options.add_session_config_entry("ep.stop_share_ep_contexts", last)
        group.join(options)
        ort.InferenceSession(folder / f"{name}.onnx", options, providers=[ep]).close()
    for name in ("m", "other"):
        (folder / f"{name}.onnx").unlink()


CONTEXT = "m_ctx.onnx"
FORMS = {
    "plain": Form(_plain),
    "plain_external": Form(_plain_external),
    "embedded": Form(_embedded, CONTEXT, compiled=True),
    "external": Form(_external, CONTEXT, compiled=True),
    "shared": Form(_shared, CONTEXT, compiled=True),
    "cached": Form(_plain_external, cached=True),
    "compiler": Form(_plain_external, use="compile"),
    "check": Form(_external, CONTEXT, compiled=True, use="check"),
    "check_shared": Form(_shared, CONTEXT, compiled=True, use="check"),
}


def make_versions(folder: Path, form: str, ep: str) -> None:
    """Both versions in folders of their own, and `live`, which is changed from one to the other."""
    for name, value in VALUES.items():
        (folder / name).mkdir(parents=True)
        FORMS[form].make(folder / name, value, ep)
    (folder / "live").mkdir()
    for file in (folder / "one").iterdir():
        (folder / "live" / file.name).write_bytes(file.read_bytes())
    os.symlink("one", folder / CURRENT)  # noqa: PTH211 - a relative target
