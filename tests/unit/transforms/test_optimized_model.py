"""`optimized_model_filepath`: what is saved, that others load it, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
import pytest
from small_models import branching, feed, sandwich
from unit.transforms.test_fusions import CURVE, GELU, NORM
from unit.transforms.transformed import CPU, floats, parsed

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

EXTERNAL = "session.optimized_model_external_initializers_file_name"


def saved(model: bytes, path: Path, **entries: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(path)
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    return ort.InferenceSession(model, options, providers=CPU)


MODELS = {
    "gelu": (parsed(CURVE.replace("BODY", GELU["half_last"])), {"x": floats(2, 3)}),
    "layer_norm_13": (
        parsed(NORM.replace("AXIS", "-1").replace("REST", "k = Mul(n, s) z = Add(k, b)"), opset=13),
        {"x": floats(2, 3, 4)},
    ),
    "bodies": (branching().SerializeToString(), feed(branching())),
    "inputs_with_initializers": (
        parsed(
            "g (float[2] x, float[2] w) => (float[2] z) <float[2] w = {1, 2}> "
            "{ i = Identity(w) z = Add(x, i) }",
            ir=3,
        ),
        {"x": floats(2)},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_loads_the_saved_model_and_gives_the_same_numbers(
    name: str, tmp_path: Path
) -> None:
    model, values = MODELS[name]
    path = tmp_path / "m.onnx"
    session = saved(model, path)
    theirs = onnxruntime.InferenceSession(path, providers=CPU).run(None, values)
    again = ort.InferenceSession(path, providers=CPU).run(None, values)
    for mine, other, reloaded in zip(session.run(None, values), theirs, again, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(mine, reloaded)


def test_what_another_ep_compiled_is_saved_as_nodes(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.onnx")
    options.add_session_config_entry("session.placement", "all")
    ort.InferenceSession(
        sandwich().SerializeToString(), options, providers=["OpenVINOExecutionProvider"]
    ).close()
    found = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert found == ["MatMul", "TopK", "MatMul"]


def test_weights_can_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    model = parsed("g (float[2] x) => (float[2] z) <float[2] w = {1, 2}> { z = Add(x, w) }")
    entries = {
        EXTERNAL.replace(".", "__"): "w.bin",
        "session__optimized_model_external_initializers_min_size_in_bytes": "8",
    }
    saved(model, tmp_path / "m.onnx", **entries).close()
    assert (tmp_path / "w.bin").stat().st_size == 8
    values = {"x": np.array([1, 1], np.float32)}
    theirs = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=CPU).run(None, values)
    np.testing.assert_array_equal(theirs[0], np.array([2, 3], np.float32))


def test_a_path_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    model = parsed("g (float[2] x) => (float[2] z) { z = Neg(x) }")
    with pytest.raises(ort.Fail, match=r"the optimized model .* cannot be written"):
        saved(model, tmp_path / "missing" / "m.onnx")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ort.Fail, match="cannot be written"):
        saved(model, tmp_path / "folder.onnx")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.onnx"]


def test_the_ort_format_is_chosen_by_the_option_then_by_the_name(tmp_path: Path) -> None:
    model = parsed("g (float[2] x) => (float[2] z) { z = Neg(x) }")
    saved(model, tmp_path / "m.ort").close()
    saved(model, tmp_path / "m.onnx", session__save_model_format="ORT").close()
    saved(model, tmp_path / "x.ort", session__save_model_format="ONNX").close()
    assert (tmp_path / "m.ort").read_bytes()[4:8] == b"ORTM"
    assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "m.ort").read_bytes()
    assert onnx.load(tmp_path / "x.ort").graph.node[0].op_type == "Neg"
    values = {"x": np.array([1, 1], np.float32)}
    theirs = onnxruntime.InferenceSession(tmp_path / "m.ort", providers=CPU).run(None, values)
    np.testing.assert_array_equal(theirs[0], np.array([-1, -1], np.float32))


def test_a_size_that_is_not_known_is_saved_as_none(tmp_path: Path) -> None:
    """Some exporters write -1, which tools that read the file take for a size."""
    proto = onnx.load_from_string(branching().SerializeToString())
    for info in (*proto.graph.input, *proto.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = -1
    path = tmp_path / "saved.onnx"
    saved(proto.SerializeToString(), path)
    graph = onnx.load(path).graph
    for info in (*graph.input, *graph.output):
        assert not info.type.tensor_type.shape.dim[0].HasField("dim_value")
