"""Streams on OpenCL: handles, asynchronous copies, and sessions that wait for them."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.runtime import stream as stream_module
from eps.opencl.runtime.stream import OpenCLStream
from eps.opencl.runtime.tensors import find_memory

if TYPE_CHECKING:
    from ort_lite.ep import CopyCounts

pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
NAME = "OpenCLExecutionProvider"
SHAPE = [64, 48]
X = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
DEFAULT = ort.OrtDeviceMemoryType.DEFAULT


def model() -> bytes:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "neg", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return made


@pytest.fixture(scope="module")
def ep_device() -> ort.OrtEpDevice:
    """The device that sessions without options use: place 0 of the names "opencl"."""
    for device in ort.get_ep_devices():
        info = device.memory_info(DEFAULT) if device.ep_name == NAME else None
        if info is not None and info.device_id == 0:
            return device
    raise AssertionError("the first OpenCL device is not listed")


@pytest.fixture
def stream(ep_device: ort.OrtEpDevice) -> ort.OrtSyncStream:
    return ep_device.create_sync_stream()


def value(array: Any = None) -> ort.OrtValue:
    if array is None:
        return ort.OrtValue.ortvalue_from_shape_and_type(SHAPE, np.float32, "opencl", 0)
    return ort.OrtValue.ortvalue_from_numpy(array, "opencl", 0)


def counts() -> CopyCounts:
    memory = find_memory("opencl", 0, -1)
    assert memory is not None
    return memory.copy_counts()


def test_a_memory_info_of_a_device_is_where_values_of_sessions_are(
    ep_device: ort.OrtEpDevice,
) -> None:
    info = ep_device.memory_info(DEFAULT)
    assert info is not None
    assert (info.name, info.device_mem_type) == ("OpenCL", DEFAULT)
    assert ep_device.memory_info(ort.OrtDeviceMemoryType.HOST_ACCESSIBLE) is None
    made = ort.OrtValue.ortvalue_from_shape_and_type(SHAPE, np.float32, memory_info=info)
    assert made.device_name() == "opencl"
    with pytest.raises(ValueError, match="3"):
        ep_device.memory_info(3)


def test_a_session_names_the_memory_of_inputs_and_outputs(ep_device: ort.OrtEpDevice) -> None:
    session = ort.InferenceSession(model(), providers=[(NAME, dict(ep_device.ep_options))])
    infos = [*session.get_input_memory_infos(), *session.get_output_memory_infos()]
    assert [(one.name, one.device_id) for one in infos] == [("OpenCL", 0)] * 2
    assert session.get_input_epdevices() == [ep_device]
    on_cpu = ort.InferenceSession(model(), providers=["CPUExecutionProvider"])
    infos = [*on_cpu.get_input_memory_infos(), *on_cpu.get_output_memory_infos()]
    assert [one.name for one in infos] == ["Cpu"] * 2
    (device,) = on_cpu.get_input_epdevices()
    assert device is not None
    assert device.ep_name == "CPUExecutionProvider"


def test_copies_on_a_stream_reach_device_and_host(stream: ort.OrtSyncStream) -> None:
    host = ort.OrtValue.ortvalue_from_numpy(X)
    first, second = value(), value()
    back = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    before = counts()
    ort.copy_tensors([host, first, second], [first, second, back], stream)
    stream.synchronize()
    after = counts()
    np.testing.assert_array_equal(back.numpy(), X)
    assert (after.to_device, after.on_device, after.to_host) == (
        before.to_device + 1,
        before.on_device + 1,
        before.to_host + 1,
    )


def test_a_copy_returns_before_it_is_made_and_users_of_the_value_wait(
    stream: ort.OrtSyncStream,
) -> None:
    """The queue is held by an event that only this test completes."""
    cl = pytest.importorskip("pyopencl")
    queue = cl.CommandQueue.from_int_ptr(stream.get_handle())
    gate = cl.UserEvent(queue.context)
    cl.enqueue_barrier(queue, wait_for=[gate])
    target = value()
    back = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    source = ort.OrtValue.ortvalue_from_numpy(X.copy())
    ort.copy_tensors([source, target], [target, back], stream)
    assert not back.numpy().any(), "no copy was made while the queue is held"
    gate.set_status(cl.command_execution_status.COMPLETE)
    np.testing.assert_array_equal(target.numpy(), X)  # waits, without synchronize
    stream.synchronize()
    np.testing.assert_array_equal(back.numpy(), X)


def test_a_run_waits_for_copies_to_its_input(stream: ort.OrtSyncStream) -> None:
    session = ort.InferenceSession(model(), providers=[NAME])
    x, host = value(), ort.OrtValue.ortvalue_from_numpy(X)
    for number in range(5):
        host = ort.OrtValue.ortvalue_from_numpy(X + np.float32(number))
        ort.copy_tensors([host], [x], stream)
        (y,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(y, -(X + np.float32(number)))


def test_a_session_runs_on_a_stream(stream: ort.OrtSyncStream) -> None:
    options = {"command_queue": str(stream.get_handle())}
    session = ort.InferenceSession(model(), providers=[(NAME, options)])
    x, y = value(), value()
    back = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    before = counts().on_device
    ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(X)], [x], stream)
    session.run_with_iobinding(binding)
    ort.copy_tensors([y], [back], stream)
    stream.synchronize()
    np.testing.assert_array_equal(back.numpy(), -X)
    assert counts().on_device == before, "the session shares the values' context"
    gc.collect()  # the context is the process's: what other tests left may not go in between
    live = session.memory_report().devices[0].device_live
    assert live is not None
    kept = value()
    more = session.memory_report().devices[0].device_live
    assert more == live + X.nbytes, "values and the session count in one context"
    del kept


def test_a_stream_keeps_arrays_until_they_are_copied(stream: ort.OrtSyncStream) -> None:
    targets = [value() for _ in range(stream_module.MOST_PENDING + 9)]
    sources = [X + np.float32(number) for number in range(len(targets))]
    ort.copy_tensors(list(map(ort.OrtValue.ortvalue_from_numpy, sources)), targets, stream)
    expected = [one.copy() for one in sources]
    del sources
    held = stream.device_stream
    assert isinstance(held, OpenCLStream)
    assert len(held._pending) == stream_module.MOST_PENDING
    for target, array in zip(targets, expected, strict=True):
        np.testing.assert_array_equal(target.numpy(), array)
    stream.synchronize()
    assert not held._pending


def test_copies_that_a_queue_does_not_make_keep_their_order(stream: ort.OrtSyncStream) -> None:
    """Between arrays of the host, after one from the device to the first of them."""
    device = value(X)
    first = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    second = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    ort.copy_tensors([device, first], [first, second], stream)
    np.testing.assert_array_equal(second.numpy(), X)


def test_nothing_is_copied_if_one_shape_is_wrong(stream: ort.OrtSyncStream) -> None:
    target, before = value(), counts()
    host = ort.OrtValue.ortvalue_from_numpy(X)
    with pytest.raises(ort.InvalidArgument, match=r"update with tensor\(float\)\[64, 48\], exp"):
        ort.copy_tensors([host, host], [target, value(X[:2])], stream)
    assert counts().to_device == before.to_device + 1, "of value(X[:2]) alone"
    assert not target.numpy().any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_refuses_a_stream(stream: ort.OrtSyncStream) -> None:
    ort.copy_tensors([ort.OrtValue.ortvalue_from_numpy(X)], [value()], stream)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            stream.synchronize()
            os.write(write, b"synchronized")
        except ort.EPFail as exc:
            os.write(write, exc.message.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"cannot be used in a forked process" in os.read(read, 4096)
    stream.synchronize()
