"""A device that runs out of memory or is lost: clean errors, and everything given back."""

from __future__ import annotations

import gc
import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import pytest
from onnx import helper
from small_models import feed, mlp, model

import ort_lite as ort
from ctx_formats.lean_dataclass import replace
from eps.opencl import FACTORY, c_api, device_memory, launches, runtime
from ort_lite.execution_provider import FusedNode
from ort_lite.model import loader
from ort_lite.status import DeviceReset, EPFail

if TYPE_CHECKING:
    from collections.abc import Callable

    from ort_lite.execution_provider import CompiledPartition

OPENCL = "OpenCLExecutionProvider"
DEVICES = [d.name for d in FACTORY.probe().devices]


@pytest.fixture(params=DEVICES)
def partition(request: pytest.FixtureRequest) -> CompiledPartition:
    loaded = loader.load(mlp().SerializeToString(), ort.SessionOptions())
    whole = loader.resolve(loaded.model, {})
    graph = whole.extract(range(len(whole.nodes)), "mlp")
    (compiled,) = FACTORY.create({"device": request.param}).compile(
        [FusedNode(name="mlp", graph=graph)]
    )
    return compiled


class Faulty:
    """Stands for pyopencl: one of its functions fails once, as a driver does."""

    def __init__(self, function: str, error: Exception) -> None:
        self._function = function
        self._error: Exception | None = error

    def __getattr__(self, name: str) -> Any:
        real = getattr(cl, name)
        if name != self._function:
            return real

        def fail(*arguments: Any, **options: Any) -> Any:
            error, self._error = self._error, None
            if error is not None:
                raise error
            return real(*arguments, **options)

        return fail


def status(routine: str, code: int, kind: Callable[[Any], Exception]) -> Exception:
    """The error that pyopencl raises for a status of OpenCL."""
    return kind(cl._cl._ErrorRecord(msg="", code=code, routine=routine))


MEMORY = cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE
RESOURCES = cl.status_code.OUT_OF_RESOURCES
LOST = cl.status_code.DEVICE_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("code", "kind", "error"),
    [
        (MEMORY, cl.MemoryError, EPFail),
        (RESOURCES, cl.RuntimeError, EPFail),
        (LOST, cl.RuntimeError, DeviceReset),
    ],
    ids=["memory", "resources", "lost"],
)
def test_a_copy_that_fails_is_an_error_and_the_next_run_is_right(
    partition: CompiledPartition,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    kind: Any,
    error: type[Exception],
) -> None:
    x = feed(mlp())["x"]
    (right,) = partition.run([x])
    with monkeypatch.context() as patched:
        fault = status("enqueue_copy", code, kind)
        patched.setattr(runtime, "cl", Faulty("enqueue_copy", fault))
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


def test_kernels_run_through_pyopencl_where_the_c_api_is_not_lent(
    partition: CompiledPartition, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = feed(mlp())["x"]
    (right,) = partition.run([x])
    monkeypatch.setattr(launches, "kernel_functions", lambda: None)
    ep = FACTORY.create({"profiling": "true"})
    loaded = loader.load(mlp().SerializeToString(), ort.SessionOptions())
    whole = loader.resolve(loaded.model, {})
    graph = whole.extract(range(len(whole.nodes)), "mlp")
    (again,) = ep.compile([FusedNode(name="mlp", graph=graph)])
    np.testing.assert_allclose(again.run([x])[0], right, 1e-5, 1e-6)
    for one in (partition, again):
        one.release()


def test_a_kernel_that_the_driver_does_not_make_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    functions = c_api.kernel_functions()
    assert functions is not None

    def create(program: Any, name: bytes, told: Any) -> None:
        told._obj.value = RESOURCES

    spoilt = replace(functions, create=create)
    monkeypatch.setattr(launches, "kernel_functions", lambda: spoilt)
    with pytest.raises(EPFail, match="preparing a program: clCreateKernel failed"):
        ort.InferenceSession(mlp().SerializeToString(), providers=[OPENCL])
    refusing = replace(functions, set_argument=lambda *_: RESOURCES)
    monkeypatch.setattr(launches, "kernel_functions", lambda: refusing)
    with pytest.raises(EPFail, match="preparing a program: clSetKernelArg failed"):
        ort.InferenceSession(mlp().SerializeToString(), providers=[OPENCL])


@pytest.mark.parametrize(
    ("module", "function", "doing"),
    [
        (device_memory, "Buffer", "placing"),
        (runtime, "enqueue_fill_buffer", "preparing a program"),
        (runtime, "CommandQueue", "preparing a program"),
    ],
)
def test_a_fault_while_preparing_gives_weights_back(
    monkeypatch: pytest.MonkeyPatch, module: Any, function: str, doing: str
) -> None:
    fault = Faulty(function, status(function, MEMORY, cl.MemoryError))
    with monkeypatch.context() as patched:
        patched.setattr(module, "cl", fault)
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
