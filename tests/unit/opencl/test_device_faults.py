"""A device that runs out of memory or is lost: clean errors, and everything given back."""

from __future__ import annotations

import gc
import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from opencl_devices import device_names
from small_models import feed, mlp, model

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.loader import api
from eps.opencl.cl.objects import Buffer, Queue
from eps.opencl.runtime.launch import Launch
from ort_lite.ep.interface import FusedNode
from ort_lite.model import loader
from ort_lite.status import DeviceReset, EPFail

if TYPE_CHECKING:
    from ort_lite.ep.interface import CompiledPartition

OPENCL = "OpenCLExecutionProvider"
DEVICES = device_names()


@pytest.fixture(params=DEVICES)
def partition(request: pytest.FixtureRequest) -> CompiledPartition:
    loaded = loader.load(mlp().SerializeToString(), ort.SessionOptions())
    whole = loader.resolve(loaded.model, {})
    graph = whole.extract(range(len(whole.nodes)), "mlp")
    (compiled,) = FACTORY.create({"device": request.param}).compile(
        [FusedNode(name="mlp", graph=graph)]
    )
    return compiled


def failing(monkeypatch: pytest.MonkeyPatch, kind: type[Any], method: str, status: int) -> None:
    """Have a method of OpenCL's objects fail once, as a driver does."""
    real = getattr(kind, method)

    def fail(*_: Any, **__: Any) -> Any:
        monkeypatch.setattr(kind, method, real)
        raise OpenCLError(method, status)

    monkeypatch.setattr(kind, method, fail)


MEMORY, RESOURCES, LOST = -4, -5, -2


@pytest.mark.parametrize(
    ("code", "error"),
    [(MEMORY, EPFail), (RESOURCES, EPFail), (LOST, DeviceReset)],
    ids=["memory", "resources", "lost"],
)
def test_a_copy_that_fails_is_an_error_and_the_next_run_is_right(
    partition: CompiledPartition,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    error: type[Exception],
) -> None:
    x = feed(mlp())["x"]
    (right,) = partition.run([x])
    with monkeypatch.context() as patched:
        failing(patched, Queue, "write", code)
        with pytest.raises(error, match="while running"):
            partition.run([x])
    np.testing.assert_array_equal(partition.run([x])[0], right)
    partition.release()


@pytest.mark.parametrize(
    ("code", "error"), [(MEMORY, EPFail), (RESOURCES, EPFail), (LOST, DeviceReset)]
)
def test_a_launch_that_fails_is_an_error_and_the_next_run_is_right(
    partition: CompiledPartition, code: int, error: type[Exception]
) -> None:
    """The driver's function says a status other than success."""
    x = feed(mlp())["x"]
    (right,) = partition.run([x])
    launch: Any = partition.executable._launches[-1]  # type: ignore[attr-defined]
    real, launch._enqueue = launch._enqueue, lambda *_: code
    with pytest.raises(error, match="while running: clEnqueueNDRangeKernel failed"):
        partition.run([x])
    launch._enqueue = real
    np.testing.assert_array_equal(partition.run([x])[0], right)
    partition.release()


@pytest.mark.parametrize(
    ("routine", "status"), [("clCreateKernel", RESOURCES), ("clSetKernelArg", RESOURCES)]
)
def test_a_kernel_that_the_driver_does_not_make_is_an_error(
    monkeypatch: pytest.MonkeyPatch, routine: str, status: int
) -> None:
    def refused(*_: Any) -> None:
        raise OpenCLError(routine, status)

    refused.__name__ = routine
    monkeypatch.setattr(api(), routine, refused)
    with pytest.raises(EPFail, match=f"preparing a program: {routine} failed: OUT_OF_RES"):
        ort.InferenceSession(mlp().SerializeToString(), providers=[OPENCL])


@pytest.mark.parametrize(
    ("kind", "method", "doing"),
    [
        (Buffer, "of", "placing"),
        (Queue, "clear", "preparing a program"),
        (Launch, "__init__", "preparing a program"),
    ],
)
def test_a_fault_while_preparing_gives_weights_back(
    monkeypatch: pytest.MonkeyPatch, kind: Any, method: str, doing: str
) -> None:
    with monkeypatch.context() as patched:
        failing(patched, kind, method, MEMORY)
        with pytest.raises(EPFail, match=f"while {doing}"):
            ort.InferenceSession(mlp().SerializeToString(), providers=[OPENCL])
    with ort.InferenceSession(mlp().SerializeToString(), providers=[OPENCL]) as session:
        assert session.run(None, feed(mlp()))[0].shape == (2, 3)


def resident() -> int:
    text = Path("/proc/self/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found
    return int(found[1]) << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc/self/status here")
@pytest.mark.parametrize("device", DEVICES)
def test_memory_goes_with_the_session(device: str) -> None:
    """Ten sessions of 16 MB of weights each: one that kept them would show."""
    weights = np.random.default_rng(0).standard_normal((2048, 2048)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    data = model(nodes, [("x", [1, 2048])], [("y", [1, 2048])], {"w": weights}).SerializeToString()
    sizes = []
    for _ in range(10):
        with ort.InferenceSession(data, providers=[(OPENCL, {"device": device})]) as session:
            session.run(None, {"x": np.ones((1, 2048), np.float32)})
        gc.collect()
        sizes.append(resident())
    assert sizes[-1] - sizes[3] < 64 << 20, [size >> 20 for size in sizes]


@pytest.mark.parametrize("device", DEVICES)
def test_threads_that_run_one_session_get_each_their_own_result(device: str) -> None:
    data = mlp("rows").SerializeToString()
    with ort.InferenceSession(data, providers=[(OPENCL, {"device": device})]) as session:
        random = np.random.default_rng(0)
        inputs = [random.standard_normal((1 + i % 3, 4)).astype(np.float32) for i in range(24)]
        right = [session.run(None, {"x": x})[0] for x in inputs]
        with ThreadPoolExecutor(6) as pool:
            found = list(pool.map(lambda x: session.run(None, {"x": x})[0], inputs))
    for mine, alone in zip(found, right, strict=True):
        np.testing.assert_array_equal(mine, alone)


def test_what_a_failed_export_leaves_is_usable(partition: CompiledPartition) -> None:
    """A full disk is the caller's stream failing: the partition goes on."""

    class Full(io.RawIOBase):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    ep = FACTORY.create({})
    with pytest.raises(OSError, match="No space"):
        ep.export_model(partition, Full())  # type: ignore[attr-defined]
    assert partition.run([feed(mlp())["x"]])[0].shape == (2, 3)
    partition.release()
