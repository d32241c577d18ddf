"""Sessions in contexts and on queues of pyopencl, with its arrays and buffers, without a copy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.cl.objects import Buffer
from eps.opencl.runtime.tensors import ranked_devices
from ort_lite.ep import CopyCounts, SupportsBoundRuns

if TYPE_CHECKING:
    from collections.abc import Iterator

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")
pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
NAME = "OpenCLExecutionProvider"
SHAPE = [24, 24]
X = np.random.default_rng(7).standard_normal(SHAPE).astype(np.float32)
EXPECTED = np.tanh(X) - np.float32(1)


def model() -> bytes:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xy"]
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("Sub", ["t", "one"], ["y"]),
    ]
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    graph = helper.make_graph(nodes, "foreign", ends[:1], ends[1:], [one])
    opsets = [helper.make_opsetid("", 17)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return made


def copies_of(made: ort.InferenceSession) -> CopyCounts:
    (partition,) = made._present().prepared.partitions
    assert isinstance(partition.compiled, SupportsBoundRuns)
    return partition.compiled.copy_counts()


@pytest.fixture(scope="module")
def context() -> Any:
    device = cl.Device.from_int_ptr(ranked_devices()[0].device.handle)
    return cl.Context([device])


@pytest.fixture(scope="module")
def queue(context: Any) -> Any:
    return cl.CommandQueue(context)


@pytest.fixture(scope="module")
def session(queue: Any) -> Iterator[ort.InferenceSession]:
    options = {"command_queue": queue}
    with ort.InferenceSession(model(), providers=[(NAME, options)]) as made:
        yield made


def test_arrays_go_in_and_out_without_a_copy(session: ort.InferenceSession, queue: Any) -> None:
    x = cl_array.to_device(queue, X)
    y = cl_array.empty(queue, tuple(SHAPE), np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_opencl(x))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_opencl(y))
    session.run_with_iobinding(binding)
    assert copies_of(session) == CopyCounts()
    assert y.events, "the run's event"
    for event in y.events:
        event.wait()
    np.testing.assert_allclose(y.get(), EXPECTED, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x.get(), X)


def test_outputs_become_arrays_of_the_programs_queue(
    session: ort.InferenceSession, queue: Any
) -> None:
    binding = session.io_binding()
    binding.bind_ortvalue_input(
        "x", ort.OrtValue.ortvalue_from_opencl(cl_array.to_device(queue, X))
    )
    binding.bind_output("y", "opencl", 0)
    before = copies_of(session)
    session.run_with_iobinding(binding)
    (result,) = binding.get_outputs()
    array = result.opencl(queue)
    np.testing.assert_allclose(array.get(), EXPECTED, rtol=1e-5, atol=1e-6)
    array.set(X)  # in the same memory
    np.testing.assert_array_equal(result.numpy(), X)
    assert copies_of(session) == before
    binding.synchronize_outputs()


def test_a_run_waits_for_kernels_of_another_queue(
    session: ort.InferenceSession, context: Any
) -> None:
    other = cl.CommandQueue(context)
    x = cl_array.to_device(other, np.zeros_like(X))
    gate = cl.UserEvent(context)
    event = cl.enqueue_copy(other, x.base_data, X, is_blocking=False, wait_for=[gate])
    x.add_event(event)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_opencl(x))
    binding.bind_output("y", "opencl", 0)
    session.run_with_iobinding(binding)  # returns although its input is not there yet
    gate.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), EXPECTED, rtol=1e-5, atol=1e-6)


def test_a_buffer_is_a_value_with_a_shape_and_a_type(
    session: ort.InferenceSession, context: Any, queue: Any
) -> None:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(context, flags, hostbuf=X)
    value = ort.OrtValue.ortvalue_from_opencl(buffer, SHAPE, np.float32)
    assert (value.device_name(), value.shape()) == ("opencl", SHAPE)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    result = np.empty_like(X)
    cl.enqueue_copy(queue, result, buffer)
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-5, atol=1e-6)


def test_a_part_of_an_array_is_its_own_memory(session: ort.InferenceSession, queue: Any) -> None:
    whole = cl_array.to_device(queue, np.stack([X, X * 2, X * 3, X * 4]))
    step = ranked_devices()[0].device.mem_base_addr_align // 8
    if X.nbytes % step:
        pytest.skip(f"the device takes parts at multiples of {step} bytes")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_opencl(whole[2]))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_opencl(whole[1]))
    session.run_with_iobinding(binding)
    result = whole.get()
    np.testing.assert_allclose(result[1], np.tanh(X * 3) - 1, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(result[[0, 2, 3]], np.stack([X, X * 3, X * 4]))


def test_a_part_where_the_device_takes_none_is_refused_with_advice(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels read 16 bytes at once, more than a row of this array, whatever the driver takes."""
    monkeypatch.setattr(Buffer, "part", None)  # the driver is not asked
    array = cl_array.to_device(queue, np.zeros((4, 3), np.float32))
    with pytest.raises(ort.InvalidArgument, match=r"byte 12 of its buffer.*array\.copy\(\)"):
        ort.OrtValue.ortvalue_from_opencl(array[1:])


def test_a_session_in_a_context_shares_its_memory(context: Any, queue: Any) -> None:
    made = ort.InferenceSession(model(), providers=[(NAME, {"context": str(context.int_ptr)})])
    x = cl_array.to_device(queue, X)
    (result,) = made.run(None, {"x": ort.OrtValue.ortvalue_from_opencl(x)})
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-5, atol=1e-6)
    assert copies_of(made).to_device == 0
    value = made.create_ortvalue_from_shape_and_type(SHAPE, np.float32, "opencl", 0)
    assert value.opencl(queue).context.int_ptr == context.int_ptr


def test_memory_of_another_context_goes_through_the_host(session: ort.InferenceSession) -> None:
    before = copies_of(session).to_device
    value = ort.OrtValue.ortvalue_from_numpy(X, "opencl", 0)
    (result,) = session.run(None, {"x": value})
    np.testing.assert_allclose(result, EXPECTED, rtol=1e-5, atol=1e-6)
    assert copies_of(session).to_device == before + 1
    other = cl.Context([cl.Device.from_int_ptr(ranked_devices()[0].device.handle)])
    with pytest.raises(ort.InvalidArgument, match="command queue is of another context"):
        value.opencl(cl.CommandQueue(other))


def test_what_cannot_be_shared_is_refused(context: Any, queue: Any) -> None:
    from_opencl = ort.OrtValue.ortvalue_from_opencl
    with pytest.raises(ort.InvalidArgument, match="is not contiguous"):
        from_opencl(cl_array.to_device(queue, X).T)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
    with pytest.raises(ort.InvalidArgument, match="has bytes alone; pass shape and element_type"):
        from_opencl(buffer)
    with pytest.raises(ort.InvalidArgument, match=r"needs 32 bytes, and the buffer .* has 16"):
        from_opencl(buffer, [8], np.float32)
    with pytest.raises(ort.InvalidArgument, match=r"shares memory with a numpy\.ndarray"):
        from_opencl(X)
    with pytest.raises(ort.InvalidArgument, match="has no memory of a tensor"):
        from_opencl(queue, [1], np.float32)
    with pytest.raises(ort.InvalidArgument, match="in memory of cpu is not in that of an OpenCL"):
        ort.OrtValue.ortvalue_from_numpy(X).opencl()


def test_a_session_that_fell_back_binds_outputs_in_its_own_context(queue: Any) -> None:
    """The program's queue reads them there, as it did before the device failed."""
    with ort.InferenceSession(model(), providers=[(NAME, {"command_queue": queue})]) as made:
        with pytest.warns(UserWarning, match="The session goes on with: CPUExecutionProvider"):
            made._fall_back_after(ort.EPFail("as if a run failed"), made._present().prepared)
        assert made.get_providers() == ["CPUExecutionProvider"]
        binding = made.io_binding()
        x = cl_array.to_device(queue, X)
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_opencl(x))
        binding.bind_output("y", "opencl", 0)
        made.run_with_iobinding(binding)
        y = binding.get_outputs()[0].opencl(queue)
        np.testing.assert_allclose(y.get(), EXPECTED, rtol=1e-5, atol=1e-6)


def test_objects_of_pyopencl_of_another_class_are_refused(context: Any, queue: Any) -> None:
    """Their handles would be read as one of the other class, which ends the process."""
    device = context.devices[0]
    for key, value, expected in (
        ("command_queue", device, "a pyopencl.CommandQueue or its int_ptr as a number"),
        ("command_queue", context, "a pyopencl.CommandQueue or its int_ptr as a number"),
        ("context", queue, "a pyopencl.Context or its int_ptr as a number"),
        ("device", device, "a text or a number"),
    ):
        options = {key: value}
        found = (
            rf"{key} is a pyopencl\S*\.{type(value).__name__} .* expected {re.escape(expected)}$"
        )
        for fallback in (0, 1):
            with pytest.raises(ort.InvalidArgument, match=found):
                ort.InferenceSession(model(), providers=[(NAME, options)], enable_fallback=fallback)
        with pytest.raises(ort.InvalidArgument, match=found):
            ort.InferenceSession(model(), providers=[NAME], provider_options=[options])


def test_queues_of_a_subclass_are_accepted(context: Any) -> None:
    subclass = type("Queue", (cl.CommandQueue,), {})
    options = {"command_queue": subclass(context)}
    with ort.InferenceSession(model(), providers=[(NAME, options)], enable_fallback=0) as made:
        np.testing.assert_allclose(made.run(None, {"x": X})[0], EXPECTED, rtol=1e-5, atol=1e-6)


def test_options_that_are_no_objects_of_opencl_are_refused(context: Any, queue: Any) -> None:
    def make(options: dict[str, Any]) -> None:
        ort.InferenceSession(model(), providers=[(NAME, options)], enable_fallback=0)

    with pytest.raises(ort.InvalidArgument, match="context is 'GPU', expected an object of pyop"):
        make({"context": "GPU"})
    with pytest.raises(ort.InvalidArgument, match="are both given"):
        make({"context": context, "command_queue": queue})
    out_of_order = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    unordered = cl.CommandQueue(context, properties=out_of_order)
    if unordered.properties & out_of_order:
        with pytest.raises(ort.InvalidArgument, match="runs commands out of order"):
            make({"command_queue": unordered})
