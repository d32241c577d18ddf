"""Inputs without elements: a batch of 0 gives what onnxruntime gives, on every provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_models import mlp, model

import ort_lite as ort
from ctx_formats.model_reader import read_model
from ort_lite.model.loader import resolve
from ort_lite.planning.preparation import may_be_empty

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

PROVIDERS = ["CPUExecutionProvider", "OpenCLExecutionProvider", "OpenVINOExecutionProvider"]
COMPILING = PROVIDERS[1:]


def network(rows: int | str = "n") -> onnx.ModelProto:
    """Operators of a small image classifier, x [rows, 3, 8, 8] to y [rows, 5]."""
    random = np.random.default_rng(5)
    weights = {
        "w": random.standard_normal((8, 3, 3, 3)).astype(np.float32),
        "v": random.standard_normal((8, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["m"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"]),
    ]
    return model(nodes, [("x", [rows, 3, 8, 8])], [("y", [rows, 5])], weights)


def reduction(op_type: str) -> onnx.ModelProto:
    """y = the rows of x [n, 4] reduced to [4]."""
    nodes = [
        helper.make_node("Identity", ["x"], ["i"]),
        helper.make_node(op_type, ["i"], ["y"], axes=[0], keepdims=0),
    ]
    return model(nodes, [("x", ["n", 4])], [("y", [4])], opset=11)


def answer(proto: onnx.ModelProto, feed: dict[str, np.ndarray]) -> list[Any]:
    """What onnxruntime gives."""
    found: list[Any] = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed)
    return found


def images(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(rows).standard_normal((rows, 3, 8, 8)).astype(np.float32)}


def assert_right(session: ort.InferenceSession, proto: onnx.ModelProto, rows: int) -> None:
    (found,), (right,) = session.run(None, images(rows)), answer(proto, images(rows))
    assert (found.shape, found.dtype) == (right.shape, right.dtype)
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_batch_of_none_is_answered_and_the_next_one_is_the_providers(provider: str) -> None:
    proto = network()
    with ort.InferenceSession(proto.SerializeToString(), providers=[provider]) as session:
        session.disable_fallback()
        for rows in (0, 2, 0, 1):
            assert_right(session, proto, rows)
        assert session.get_providers()[0] == provider
        assert {part.ep for part in session.explain().partitions} == {provider}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_fixed_size_of_zero_is_answered(provider: str) -> None:
    proto = network(0)
    with ort.InferenceSession(proto.SerializeToString(), providers=[provider]) as session:
        assert_right(session, proto, 0)
        parts = session.explain().partitions
    assert {part.ep for part in parts} == {"CPUExecutionProvider"}
    if provider != "CPUExecutionProvider":
        reasons = {reason for part in parts for n in part.nodes for reason in n.refusals.values()}
        assert reasons == {
            "it has a value without elements, and this execution provider computes none"
        }


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceProd", "ReduceMean", "ReduceL2"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reduction_of_nothing_is_onnxruntimes(provider: str, op_type: str) -> None:
    proto, feed = reduction(op_type), {"x": np.empty((0, 4), np.float32)}
    with ort.InferenceSession(proto.SerializeToString(), providers=[provider]) as session:
        session.disable_fallback()
        (found,), (right,) = session.run(None, feed), answer(proto, feed)
    np.testing.assert_array_equal(found, right)
    assert found.dtype == right.dtype


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_largest_of_nothing_is_an_error_as_in_onnxruntime(provider: str) -> None:
    proto, feed = reduction("ReduceMax"), {"x": np.empty((0, 4), np.float32)}
    try:
        right: Any = answer(proto, feed)[0]
    except Exception:  # noqa: BLE001 - the binding raises plain exceptions of many classes
        right = None
    with ort.InferenceSession(proto.SerializeToString(), providers=[provider]) as session:
        session.disable_fallback()
        if right is None:
            with pytest.raises(ort.OrtLiteError):
                session.run(None, feed)
        else:
            np.testing.assert_array_equal(session.run(None, feed)[0], right)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_places_of_the_largest_of_nothing_are_answered(provider: str) -> None:
    nodes = [helper.make_node("MaxPool", ["x"], ["y", "places"], kernel_shape=[2, 2])]
    proto = model(nodes, [("x", ["n", 3, 8, 8])], [("y", None)])
    places = helper.make_tensor_value_info("places", TensorProto.INT64, None)
    proto.graph.output.append(places)
    with ort.InferenceSession(proto.SerializeToString(), providers=[provider]) as session:
        session.disable_fallback()
        found, right = session.run(None, images(0)), answer(proto, images(0))
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in right]


def context_of(proto: onnx.ModelProto, provider: str, folder: Path) -> Path:
    path = folder / "model_ctx.onnx"
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(path))
    ort.InferenceSession(proto.SerializeToString(), options, providers=[provider]).close()
    return path


@pytest.mark.parametrize("provider", COMPILING)
def test_a_context_answers_a_batch_of_none(provider: str, tmp_path: Path) -> None:
    proto = network()
    with ort.InferenceSession(
        context_of(proto, provider, tmp_path), providers=[provider]
    ) as session:
        session.disable_fallback()
        for rows in (2, 0, 3):
            assert_right(session, proto, rows)


@pytest.mark.parametrize("provider", COMPILING)
def test_a_context_that_cannot_know_says_so(provider: str, tmp_path: Path) -> None:
    """A sum over the batch has elements where the batch has none."""
    path = context_of(reduction("ReduceSum"), provider, tmp_path)
    with ort.InferenceSession(path, providers=[provider]) as session:
        session.disable_fallback()
        with pytest.raises(ort.EPFail, match=r"no elements, and what 'y' holds .* original model"):
            session.run(None, {"x": np.empty((0, 4), np.float32)})
        (found,) = session.run(None, {"x": np.ones((3, 4), np.float32)})
    np.testing.assert_array_equal(found, np.full(4, 3, np.float32))


@pytest.mark.parametrize("provider", COMPILING)
def test_a_start_from_the_cache_answers_a_batch_of_none(provider: str, tmp_path: Path) -> None:
    proto = network()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))
    for _ in range(2):
        with ort.InferenceSession(
            proto.SerializeToString(), options, providers=[provider]
        ) as session:
            assert_right(session, proto, 0)
            cache = session.load_report().cache
    assert cache is not None
    assert cache.state == "hit"


def test_a_contradicted_name_is_no_size(tmp_path: Path) -> None:
    """Two inputs that share a name and have other sizes: nothing follows for the output."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["z"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["y"], axis=0),
    ]
    proto = model(nodes, [("x", ["n", 4]), ("z", ["n", 4])], [("y", ["m", 4])])
    path = context_of(proto, "OpenVINOExecutionProvider", tmp_path)
    feed = {"x": np.empty((0, 4), np.float32), "z": np.ones((2, 4), np.float32)}
    with ort.InferenceSession(path, providers=["OpenVINOExecutionProvider"]) as session:
        session.disable_fallback()
        with pytest.raises(ort.EPFail, match="no elements"):
            session.run(None, feed)


@pytest.mark.parametrize("rows", ["n", 0])
def test_a_free_or_empty_dimension_needs_a_guard(rows: int | str) -> None:
    assert may_be_empty(resolve(read_model(memoryview(mlp(rows).SerializeToString())), {}))


def test_fixed_sizes_need_no_guard() -> None:
    assert not may_be_empty(resolve(read_model(memoryview(mlp(2).SerializeToString())), {}))
