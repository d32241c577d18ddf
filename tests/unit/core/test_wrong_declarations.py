"""A declared shape that is wrong costs nothing: what inference finds is believed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_models import model
from wrong_declarations import WRONG, chain, drawn

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

CPU = "CPUExecutionProvider"
WRONG_INSIDE = {"everywhere", "inside_of_free_rows", "branches", "contrib"}
OF_NO_SHAPE = {
    "branches": {"Relu", "Neg"},
    "widened": {"Neg", "Add", "Exp", "Mul", "Reshape", "Tanh"},
    "widened_without_branches": {"Exp", "Sqrt", "Mul", "Reshape", "Tanh"},
}
"""Operators whose inputs have a shape that only a run knows."""
KINDS = pytest.mark.parametrize("kind", list(WRONG))
COMPILING = [
    "OpenVINOExecutionProvider",
    pytest.param(
        "OpenCLExecutionProvider",
        marks=pytest.mark.skipif(not find_spec("pyopencl"), reason="pyopencl is missing"),
    ),
]
RTOL, ATOL = 1e-5, 1e-6  # float32 sums of 16 products of numbers around 1


def theirs(data: bytes, values: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return list(onnxruntime.InferenceSession(data, options, providers=[CPU]).run(None, values))


def greedy() -> ort.SessionOptions:
    """Options with which an EP runs every node that it supports."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return options


def check(session: ort.InferenceSession, values: dict[str, Any], right: list[Any]) -> None:
    for mine, other in zip(session.run(None, values), right, strict=True):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=RTOL, atol=ATOL)


def outputs(session: Any) -> list[tuple[str, str, list[int | str | None]]]:
    return [(arg.name, arg.type, arg.shape) for arg in session.get_outputs()]


@pytest.mark.parametrize("ep", [CPU, *COMPILING])
@KINDS
def test_it_runs_as_in_onnxruntime_and_costs_no_node(ep: str, kind: str) -> None:
    made, values = WRONG[kind]()
    data = made.SerializeToString()
    with ort.InferenceSession(data, greedy(), providers=[ep]) as session:
        check(session, values, theirs(data, values))
        nodes = [node for part in session.explain().partitions for node in part.nodes]
    elsewhere = {node.op_type for node in nodes if node.ep != ep}
    bodies = {"If", "Loop"}  # they go through the session; OpenCL takes none with captured values
    assert elsewhere <= bodies | OF_NO_SHAPE.get(kind, set())


@pytest.mark.parametrize("kind", sorted(WRONG.keys() - WRONG_INSIDE))
def test_outputs_are_shown_as_onnxruntime_shows_them(kind: str) -> None:
    """Where values inside are declared wrong, too, onnxruntime shows what follows from these."""
    data = WRONG[kind]()[0].SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    other = onnxruntime.InferenceSession(data, options, providers=[CPU])
    with ort.InferenceSession(data, providers=[CPU]) as session:
        assert outputs(session) == outputs(other)


@pytest.mark.parametrize("ep", COMPILING)
@pytest.mark.parametrize(
    ("kind", "embed"), [*((kind, "0") for kind in WRONG), ("recurrent", "1"), ("rounds", "1")]
)
def test_its_context_comes_back(ep: str, kind: str, embed: str, tmp_path: Path) -> None:
    made, values = WRONG[kind]()
    path, target = tmp_path / "m.onnx", tmp_path / "c.onnx"
    path.write_bytes(made.SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(target))
    options.add_session_config_entry("ep.context_embed_mode", embed)
    with ort.InferenceSession(path, options, providers=[ep]) as session:
        shown = outputs(session)
    right = theirs(made.SerializeToString(), values)
    path.unlink()
    with ort.InferenceSession(target, providers=[ep]) as session:
        check(session, values, right)
        assert outputs(session) == shown


@pytest.mark.parametrize("ep", COMPILING)
@pytest.mark.parametrize("kind", ["recurrent", "everywhere", "rounds"])
def test_the_cache_and_a_compile_behind_the_session_keep_to_it(
    ep: str, kind: str, tmp_path: Path
) -> None:
    made, values = WRONG[kind]()
    path = tmp_path / "m.onnx"
    path.write_bytes(made.SerializeToString())
    right = theirs(made.SerializeToString(), values)
    options = greedy()
    options.add_session_config_entry("session.ep_compile_in_background", "1")
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))
    seen = []
    for state in ("stored", "hit"):
        with ort.InferenceSession(path, options, providers=[ep]) as session:
            check(session, values, right)
            session.background_compile(timeout=None)
            check(session, values, right)
            assert session.load_report().cache.state == state
            seen.append(outputs(session))
    assert seen[0] == seen[1]


def test_a_wrong_output_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = chain([3, 4])
    ort.InferenceSession(made.SerializeToString(), providers=[CPU]).close()
    assert "output 'y' is {2,3,4} by inference and declared as {3,4}" in caplog.text


def test_a_result_of_another_shape_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    made, values = chain([1, 3, 4], rows="n")
    with ort.InferenceSession(made.SerializeToString(), providers=[CPU]) as session:
        session.run(None, {"x": drawn(1, 3, 8)})
        assert "Expected shape" not in caplog.text
        session.run(None, values)
    line = (
        "Expected shape from model of {1,3,4} does not match actual shape of {2,3,4} for output y"
    )
    assert line in caplog.text


@pytest.mark.parametrize("inside", [False, True])
def test_a_wrong_element_type_is_an_error(*, inside: bool) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Neg", ["a"], ["y"], name="neg"),
    ]
    made = model(nodes, [("x", [2])], [("y", [2])])
    if inside:
        wrong = helper.make_tensor_value_info("a", TensorProto.INT64, [2])
        made.graph.value_info.append(wrong)
    else:
        made.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    with pytest.raises(Exception, match="does not match expected type") as other:
        onnxruntime.InferenceSession(made.SerializeToString(), providers=[CPU])
    with pytest.raises(ort.Fail) as mine:
        ort.InferenceSession(made.SerializeToString(), providers=[CPU])
    assert str(mine.value) == str(other.value)
