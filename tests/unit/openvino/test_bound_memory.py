"""Bound runs on OpenVINO's CPU read and write the memory that is bound, through both bindings."""

from __future__ import annotations

import gc
import json
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from small_models import model

import ort_lite as ort
from eps.openvino.partition import OpenVINOPartition
from eps.openvino.sdk.binding import BindingRequest
from eps.openvino.sdk.libraries import c_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from ort_lite.ep import CopyCounts

    Opener = Callable[..., ort.InferenceSession]

OPENVINO = ["OpenVINOExecutionProvider"]
ROADS = ("compiled", "reloaded")
W = np.random.default_rng(8).standard_normal((24, 24)).astype(np.float32)


def products(rows: int | str = 24) -> Any:
    """y = Relu(x @ w) and z = Exp(x), x [rows, 24]."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Relu", ["xw"], ["y"]),
        helper.make_node("Exp", ["x"], ["z"]),
    ]
    return model(nodes, [("x", [rows, 24])], [("y", [rows, 24]), ("z", [rows, 24])], {"w": W})


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """A session of a model, compiled here or reloaded from a context."""

    def open_session(
        made: Any, road: str = "compiled", options: ort.SessionOptions | None = None
    ) -> ort.InferenceSession:
        if road == "compiled":
            content = made.SerializeToString()
            return ort.InferenceSession(content, options, providers=OPENVINO)
        path, writing = tmp_path / "m_ctx.onnx", ort.SessionOptions()
        writing.add_session_config_entry("ep.context_enable", "1")
        writing.add_session_config_entry("ep.context_file_path", str(path))
        ort.InferenceSession(made.SerializeToString(), writing, providers=OPENVINO).close()
        return ort.InferenceSession(path, options, providers=OPENVINO)

    return open_session


def x_of(rows: int = 24, seed: int = 3) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((rows, 24)).astype(np.float32)


def expected(made: Any, x: np.ndarray[Any, Any]) -> list[Any]:
    return list(ReferenceEvaluator(made).run(None, {"x": x}))


def partition_of(session: ort.InferenceSession) -> OpenVINOPartition:
    (partition,) = session._present().prepared.partitions
    assert isinstance(partition.compiled, OpenVINOPartition)
    return partition.compiled


def copies_of(session: ort.InferenceSession) -> CopyCounts:
    return partition_of(session).copy_counts()


def empty_value(*shape: int) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(np.full(shape, 9, np.float32))


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("rows", [24, "rows"])
def test_a_bound_run_copies_nothing(opened: Opener, road: str, rows: int | str) -> None:
    made = products(rows)
    session, x = opened(made, road), x_of()
    y, z = empty_value(24, 24), empty_value(24, 24)
    places = y.data_ptr(), z.data_ptr()
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_output("y", y)
    binding.bind_ortvalue_output("z", z)
    for scale in (1, 2, 3):
        x[...] = x_of() * scale
        session.run_with_iobinding(binding)
        for value, answer in zip((y, z), expected(made, x), strict=True):
            np.testing.assert_allclose(value.numpy(), answer, rtol=2e-5, atol=2e-5)
    counts = copies_of(session)
    assert (counts.to_device, counts.to_host) == (0, 0)
    assert (y.data_ptr(), z.data_ptr()) == places
    through_c_api = road == "reloaded" and c_library() is not None
    assert type(partition_of(session).model).__name__ == (
        "CModel" if through_c_api else "BindingModel"
    )


@pytest.mark.parametrize("road", ROADS)
def test_new_memory_for_an_output_is_written_directly(opened: Opener, road: str) -> None:
    session, x = opened(products(), road), x_of()
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    (first,) = binding.get_outputs()
    x *= 2
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(first.numpy(), np.exp(x_of()), rtol=2e-5)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), np.exp(x), rtol=2e-5)
    assert copies_of(session).host_copies == 0


def test_a_plain_run_copies_and_a_profile_counts(opened: Opener, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = opened(products(), options=options)
    session.run(None, {"x": x_of()})
    binding = session.io_binding()
    binding.bind_cpu_input("x", x_of())
    binding.bind_ortvalue_output("y", empty_value(24, 24))
    session.run_with_iobinding(binding)
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    counts = [
        (int(event["args"]["copies_to_device"]), int(event["args"]["copies_to_host"]))
        for event in events
        if "copies_to_host" in event.get("args", {})
    ]
    assert counts == [(1, 2), (0, 0)]


@pytest.mark.parametrize("road", ROADS)
def test_plain_and_bound_runs_may_alternate(opened: Opener, road: str) -> None:
    made = products("rows")
    session = opened(made, road)
    binding = session.io_binding()
    for rows in (3, 5, 3):
        x, y = x_of(rows), empty_value(rows, 24)
        binding.bind_cpu_input("x", x)
        binding.bind_ortvalue_output("y", y)
        binding.bind_output("z")
        session.run_with_iobinding(binding)
        bound = [value.numpy() for value in binding.get_outputs()]
        for got, answer in zip(bound, session.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(got, answer)
        np.testing.assert_array_equal(y.numpy(), bound[0])


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("rows", [24, "rows"])
@pytest.mark.parametrize("bound", [3, 40])
def test_memory_of_another_size_is_refused(
    opened: Opener, road: str, rows: int | str, bound: int
) -> None:
    session = opened(products(rows), road)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x_of())
    binding.bind_ortvalue_output("y", empty_value(bound, 24))
    words = rf"output y is float32\[24, 24\], the memory bound to it is float32\[{bound}, 24\]"
    with pytest.raises(ort.InvalidArgument, match=words):
        session.run_with_iobinding(binding)
    right = empty_value(24, 24)
    binding.bind_ortvalue_output("y", right)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(right.numpy(), expected(products(), x_of())[0], rtol=2e-5, atol=2e-5)


def test_an_input_may_have_gaps(opened: Opener) -> None:
    session, x = opened(products()), x_of(48)[::2]
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), np.exp(x), rtol=2e-5)


@pytest.mark.parametrize("road", ROADS)
def test_read_only_memory_is_read_in_place(opened: Opener, road: str) -> None:
    session, x = opened(products(), road), x_of()
    x.flags.writeable = False
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), np.exp(x), rtol=2e-5)
    assert copies_of(session).host_copies == 0


@pytest.mark.parametrize("road", ROADS)
def test_inputs_keep_their_elements(opened: Opener, road: str) -> None:
    """OpenVINO computes Relu in place where it may, and Reshape has no memory of its own."""
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Reshape", ["x", "shape"], ["z"]),
        helper.make_node("Sigmoid", ["y"], ["s"]),
    ]
    made = model(nodes, [("x", [24, 24])], [("y", [24, 24]), ("z", None), ("s", [24, 24])])
    made.graph.initializer.append(helper.make_tensor("shape", TensorProto.INT64, [2], [12, 48]))
    session, x = opened(made, road), x_of()
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    for name in ("y", "z", "s"):
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(x, x_of())
    results = [value.numpy() for value in binding.get_outputs()]
    for got, answer in zip(results, expected(made, x), strict=True):
        np.testing.assert_allclose(got, answer, rtol=2e-5, atol=2e-5)
    assert not np.may_share_memory(results[1], x)


@pytest.mark.parametrize("road", ROADS)
def test_an_output_may_be_bound_to_the_memory_of_an_input(opened: Opener, road: str) -> None:
    made = products()
    session = opened(made, road)
    x = ort.OrtValue.ortvalue_from_numpy(x_of())
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", x)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    y, z = expected(made, x_of())
    np.testing.assert_allclose(x.numpy(), y, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(binding.get_outputs()[1].numpy(), z, rtol=2e-5)


@pytest.mark.parametrize("road", ROADS)
def test_bound_memory_ends_with_its_owner(opened: Opener, road: str) -> None:
    session, x = opened(products(), road), x_of()
    y = np.empty((24, 24), np.float32)
    gone = weakref.ref(x), weakref.ref(y)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(y))
    session.run_with_iobinding(binding)
    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    del x, y
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


@pytest.mark.parametrize("road", ROADS)
def test_threads_run_with_bindings_of_their_own(opened: Opener, road: str) -> None:
    made = products()
    session = opened(made, road)
    inputs = [x_of(seed=seed) for seed in range(8)]

    def work(x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], list[bool]]:
        y = empty_value(24, 24)
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_ortvalue_output("y", y)
        same = []
        first = None
        for _ in range(20):
            session.run_with_iobinding(binding)
            first = y.numpy().copy() if first is None else first
            same.append(np.array_equal(y.numpy(), first))
            y.numpy()[...] = 0
        assert first is not None
        return first, same

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, inputs))
    for x, (y, same) in zip(inputs, results, strict=True):
        assert all(same)
        np.testing.assert_allclose(y, expected(made, x)[0], rtol=2e-5, atol=2e-5)
    assert copies_of(session).host_copies == 0


def test_a_large_int64_is_refused_in_a_bound_run(opened: Opener) -> None:
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "x"], ["y"]), helper.make_node("Exp", ["y"], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 24])],
        [helper.make_tensor("w", TensorProto.FLOAT, W.shape, W.reshape(-1))],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with opened(made) as session:
        session.disable_fallback()
        binding = session.io_binding()
        binding.bind_cpu_input("x", np.array([1, 1 << 40], np.int64))
        binding.bind_output("z")
        with pytest.raises(ort.EPFail, match="computes int64 in 32 bits"):
            session.run_with_iobinding(binding)
        binding.bind_cpu_input("x", np.array([1, 7], np.int64))
        session.run_with_iobinding(binding)
        (z,) = binding.get_outputs()
        np.testing.assert_allclose(z.numpy(), np.exp(W[[1, 7]]), rtol=2e-5)


def test_a_busy_device_is_tried_again_and_a_lost_one_is_not(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(products())
    session.disable_fallback()
    binding = session.io_binding()
    binding.bind_cpu_input("x", x_of())
    binding.bind_output("z")
    compute, texts = BindingRequest.compute, ["Infer Request is busy"]

    def failing(request: BindingRequest) -> None:
        if texts:
            raise RuntimeError(texts.pop())
        compute(request)

    monkeypatch.setattr(BindingRequest, "compute", failing)
    monkeypatch.setattr("eps.openvino.device_faults.sleep", lambda _: None)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), np.exp(x_of()), rtol=2e-5)
    texts.append("L0 zeFenceHostSynchronize result: ZE_RESULT_ERROR_DEVICE_LOST")
    with pytest.raises(ort.DeviceReset):
        session.run_with_iobinding(binding)
    assert not texts
