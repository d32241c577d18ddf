"""Dimensions fixed by what they mean, and options of execution providers, as in ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnxruntime
import pytest
from cached_starts import OPENVINO, options
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument as TheirInvalidArgument
from small_models import mlp

import ort_lite as ort
from ctx_formats.errors import FormatError
from ctx_formats.type_reader import input_denotations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

CPU = "CPUExecutionProvider"


def denoted(dims: Sequence[int | str | None], meanings: Sequence[str]) -> bytes:
    """y = relu(x), and what each dimension of x means."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for dim, meaning in zip(model.graph.input[0].type.tensor_type.shape.dim, meanings, strict=True):
        dim.denotation = meaning
    data: bytes = model.SerializeToString()
    return data


def outcome(
    runtime: ModuleType,
    data: bytes,
    by_denotation: Sequence[tuple[str, int]],
    by_name: Mapping[str, int],
) -> object:
    """The shapes that a session has, or its error's text."""
    made = runtime.SessionOptions()
    made.log_severity_level = 4
    for name, size in by_denotation:
        made.add_free_dimension_override_by_denotation(name, size)
    for name, size in by_name.items():
        made.add_free_dimension_override_by_name(name, size)
    try:
        session = runtime.InferenceSession(data, made, providers=[CPU])
    except (ort.InvalidArgument, TheirInvalidArgument) as exc:
        return str(exc)
    return [(port.name, port.shape) for port in (*session.get_inputs(), *session.get_outputs())]


@pytest.mark.parametrize(
    ("dims", "meanings", "by_denotation", "by_name"),
    [
        (["n", 4], ["DATA_BATCH", ""], [("DATA_BATCH", 3)], {}),
        (["n", 4], ["data_Batch", ""], [("DATA_BATCH", 3), ("data_batch", 5)], {}),
        ([None, 4], ["DATA_BATCH", ""], [("DATA_BATCH", 3)], {}),
        (["n", "n"], ["DATA_BATCH", ""], [("DATA_BATCH", 3)], {}),
        (["n", 4], ["", ""], [("DATA_BATCH", 3)], {}),
        (["n", 4], ["DATA_BATCH", "DATA_CHANNEL"], [("DATA_CHANNEL", 4)], {}),
        (["n", 4], ["DATA_BATCH", "DATA_CHANNEL"], [("DATA_CHANNEL", 3)], {}),
        (["n", 4], ["DATA_BATCH", ""], [("DATA_BATCH", 3)], {"n": 5}),
        (["n", 4], ["DATA_BATCH", ""], [("DATA_BATCH", 3)], {"n": 3}),
        (["n", 4], ["DATA_BATCH", ""], [("", 7)], {}),
    ],
)
def test_dimensions_become_what_onnxruntime_makes_of_them(
    dims: Sequence[int | str | None],
    meanings: Sequence[str],
    by_denotation: Sequence[tuple[str, int]],
    by_name: Mapping[str, int],
) -> None:
    data = denoted(dims, meanings)
    mine = outcome(ort, data, by_denotation, by_name)
    assert mine == outcome(onnxruntime, data, by_denotation, by_name)


def test_a_size_that_is_none_is_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match="DATA_BATCH=0"):
        ort.SessionOptions().add_free_dimension_override_by_denotation("DATA_BATCH", 0)


def test_the_model_cache_tells_sizes_apart(tmp_path: Path) -> None:
    data = denoted(["n", 4], ["DATA_BATCH", ""])
    for size, state in ((2, "stored"), (3, "stored"), (2, "hit")):
        made = options(tmp_path / "cache")
        made.add_free_dimension_override_by_denotation("DATA_BATCH", size)
        with ort.InferenceSession(data, made, providers=[OPENVINO]) as session:
            assert session.load_report().cache.state == state
            assert session.get_inputs()[0].shape == [size, 4]


def test_no_damage_of_a_model_gets_through_as_another_error() -> None:
    data = denoted(["n", 4], ["DATA_BATCH", ""])
    for end in range(len(data)):
        try:
            found = input_denotations(memoryview(data[:end]))
        except FormatError:
            continue
        assert set(found) <= {"x"}


def test_options_of_execution_providers_are_ignored_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=[CPU])
    session.set_ep_dynamic_options({"ep.dynamic.workload_type": "Efficient"})
    assert "no execution provider supports ep.dynamic.workload_type" in caplog.text
    with pytest.raises(RuntimeError, match="No options were provided"):
        session.set_ep_dynamic_options({})
    session.close()
    with pytest.raises(ort.Fail, match="closed"):
        session.set_ep_dynamic_options({"a": "b"})
