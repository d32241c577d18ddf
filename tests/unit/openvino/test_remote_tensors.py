"""Tensors of OpenVINO's GPUs and NPUs, at a stand-in for the interface of their plug-ins.

The stand-in has the methods of the extension's RemoteContext, RemoteTensor and InferRequest that
are used, with their types, and computes on the CPU.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_models import model

import ort_lite as ort
from benchmarks.harness.engine_programs import FLOAT32
from eps.openvino import memory as openvino_memory
from eps.openvino.memory import OpenVINOMemory, OpenVINOTensor
from eps.openvino.probe import probe_devices
from eps.openvino.sdk.binding import ov
from ort_lite.ep import DeviceTensor, SupportsBoundRuns

if TYPE_CHECKING:
    from ort_lite.ep import CopyCounts

REAL_CORE = ov.Core
ROOM = 1 << 20
OPENVINO = "OpenVINOExecutionProvider"
KINDS = (("gpu", "GPU.0"), ("npu", "NPU"))
X = np.random.default_rng(3).standard_normal((4, 6)).astype(np.float32)


class RemoteTensor:
    """Memory that only copies reach, as a GPU's."""

    def __init__(self, context: Context, inner: Any) -> None:
        self.context, self.inner = context, inner

    def copy_to(self, target_tensor: Any) -> None:
        self.inner.copy_to(plain(target_tensor))

    def copy_from(self, source_tensor: Any) -> None:
        self.inner.copy_from(plain(source_tensor))


def plain(tensor: Any) -> Any:
    return tensor.inner if isinstance(tensor, RemoteTensor) else tensor


class Context:
    """The default context of a device."""

    def __init__(self, core: PlugIns, device: str) -> None:
        self.core, self.device = core, device

    def create_tensor(self, type: Any, shape: Any, properties: dict[str, Any]) -> Any:  # noqa: A002 - the extension's name
        assert isinstance(type, ov.Type)
        assert isinstance(shape, ov.Shape)
        assert not properties
        self.core.made.append(self.device)
        return RemoteTensor(self, ov.Tensor(type, shape))

    def create_host_tensor(self, type: Any, shape: Any) -> Any:  # noqa: A002 - as above
        assert isinstance(type, ov.Type)
        assert isinstance(shape, ov.Shape)
        self.core.made.append(self.device)
        return ov.Tensor(type, shape)


class Request:
    """An infer request; takes remote tensors of its own Core alone, by name."""

    def __init__(self, core: PlugIns, request: Any) -> None:
        self._core, self._request = core, request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)

    def set_tensor(self, name: str, tensor: Any) -> None:
        if isinstance(tensor, RemoteTensor):
            assert tensor.context.core is self._core
        self._request.set_tensor(name, plain(tensor))


class Compiled:
    def __init__(self, core: PlugIns, compiled: Any) -> None:
        self._core, self._compiled = core, compiled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def create_infer_request(self) -> Request:
        return Request(self._core, self._compiled.create_infer_request())


class PlugIns:
    """A Core with two GPUs and an NPU."""

    available_devices: tuple[str, ...] = ("CPU", "GPU.0", "GPU.1", "NPU")
    sizes = dict.fromkeys(
        ("GPU_DEVICE_TOTAL_MEM_SIZE", "NPU_DEVICE_TOTAL_MEM_SIZE", "GPU_DEVICE_MAX_ALLOC_MEM_SIZE"),
        ROOM,
    )

    def __init__(self) -> None:
        self._core = REAL_CORE()
        self.made: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def get_property(self, device: str, key: str) -> Any:
        if device == "CPU":
            return self._core.get_property(device, key)
        known = {"FULL_DEVICE_NAME": f"Intel(R) {device}", **self.sizes}
        if key not in known or (key.startswith(("GPU_", "NPU_")) and key[:3] != device[:3]):
            raise RuntimeError(f"Unsupported configuration key: {key}")
        return known[key]

    def get_default_context(self, device: str) -> Context:
        if device not in (*self.available_devices, "GPU"):
            raise RuntimeError(f"no context of {device}")
        return Context(self, device)

    def compile_model(self, content: Any, device: str, config: dict[str, Any]) -> Any:
        assert device.startswith(("GPU", "NPU"))
        assert config is not None
        return Compiled(self, self._core.compile_model(content, "CPU", FLOAT32))


@pytest.fixture(autouse=True)
def plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fresh(PlugIns):
        """A Core class of this test alone, since the process keeps one Core of each."""

    monkeypatch.setattr(ov, "Core", Fresh)


def products(rows: int | str = 4) -> Any:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Exp", ["r"], ["y"])]
    return model(nodes, [("x", [rows, 6])], [("y", [rows, 6])])


def session_on(device: str, made: Any = None) -> ort.InferenceSession:
    content = (made or products()).SerializeToString()
    return ort.InferenceSession(
        content, providers=[(OPENVINO, {"device_type": device})], enable_fallback=0
    )


def on_device(kind: str, array: np.ndarray[Any, Any] = X) -> ort.OrtValue:
    """A value in OpenVINO's memory, whichever execution provider is asked first."""
    memory = openvino_memory.find_memory(kind, 0, -1)
    assert memory is not None
    value = ort.OrtValue.make(array.shape, array.dtype, memory)
    value.update_inplace(array)
    return value


def tensor_of(value: ort.OrtValue) -> OpenVINOTensor:
    tensor = value.held_value()
    assert isinstance(tensor, OpenVINOTensor)
    return tensor


def copies_of(session: ort.InferenceSession) -> CopyCounts:
    (partition,) = session._present().prepared.partitions
    assert isinstance(partition.compiled, SupportsBoundRuns)
    return partition.compiled.copy_counts()


def test_the_stand_in_has_the_signatures_of_the_extension() -> None:
    create, host = ov.RemoteContext.create_tensor, ov.RemoteContext.create_host_tensor
    for method, mine in ((create, Context.create_tensor), (host, Context.create_host_tensor)):
        first = str(method.__doc__).splitlines()[0]
        names = list(inspect.signature(mine).parameters)[1:]
        assert all(f"{name}: " in first for name in names), first
    assert "tensor: openvino._pyopenvino.RemoteTensor" in str(ov.InferRequest.set_tensor.__doc__)
    assert "RemoteTensor" not in str(ov.InferRequest.set_input_tensor.__doc__)
    copies = str(ov.RemoteTensor.copy_to.__doc__), str(ov.RemoteTensor.copy_from.__doc__)
    assert "target_tensor: openvino._pyopenvino.Tensor" in copies[0]
    assert "source_tensor: openvino._pyopenvino.Tensor" in copies[1]


def test_devices_are_listed_with_their_memory() -> None:
    found = {device.name: device.memory for device in probe_devices().devices}
    assert found == {"CPU": 0, "GPU.0": ROOM, "GPU.1": ROOM, "NPU": ROOM}


@pytest.mark.parametrize(("kind", "device"), KINDS)
def test_a_value_keeps_its_elements(kind: str, device: str) -> None:
    value = on_device(kind)
    np.testing.assert_array_equal(value.numpy(), X)
    assert (value.device_name(), value.shape(), value.data_type()) == (
        kind,
        [4, 6],
        "tensor(float)",
    )
    memory = tensor_of(value).memory
    assert memory.core.made == [device]
    assert memory.copy_counts().to_device == 1
    other = ort.OrtValue.make([4, 6], np.float32, memory)
    np.testing.assert_array_equal(other.numpy(), np.zeros_like(X))
    ort.copy_tensors([value], [other])
    np.testing.assert_array_equal(other.numpy(), X)
    assert memory.copy_counts().on_device == 1


def test_npu_values_are_found_by_name() -> None:
    value = ort.OrtValue.ortvalue_from_numpy(X, "npu", 0)
    assert isinstance(value.held_value(), OpenVINOTensor)
    info = ort.OrtMemoryInfo("OpenVINO_RT_NPU")
    again = ort.OrtValue.ortvalue_from_shape_and_type([2], np.float32, memory_info=info)
    assert again.device_name() == "npu"
    with pytest.raises(ort.InvalidArgument, match="npu device 3 does not exist; found "):
        ort.OrtValue.ortvalue_from_numpy(X, "npu", 3)


@pytest.mark.parametrize(("kind", "device"), KINDS)
def test_a_run_from_and_to_the_device_copies_nothing(kind: str, device: str) -> None:
    session, x = session_on(device), on_device(kind)
    y = on_device(kind, np.zeros_like(X))
    memory = tensor_of(x).memory
    before = memory.copy_counts()
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    session.run_with_iobinding(binding)
    session.run_with_iobinding(binding)
    assert memory.copy_counts() == before
    assert copies_of(session).host_copies == 0
    (expected,) = ReferenceEvaluator(products()).run(None, {"x": X})
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(("kind", "device"), KINDS)
def test_an_output_is_allocated_on_the_device_and_read_by_the_next_session(
    kind: str, device: str
) -> None:
    first, second = session_on(device), session_on(device)
    binding = first.io_binding()
    binding.bind_ortvalue_input("x", on_device(kind))
    binding.bind_output("y", kind, 0)
    first.run_with_iobinding(binding)
    (middle,) = binding.get_outputs()
    memory = tensor_of(middle).memory
    before = memory.copy_counts()
    then = second.io_binding()
    then.bind_ortvalue_input("x", middle)
    then.bind_output("y", kind, 0)
    second.run_with_iobinding(then)
    assert memory.copy_counts() == before, "sessions share the contexts of one Core"
    expected = np.exp(np.maximum(np.exp(np.maximum(X, 0)), 0))
    np.testing.assert_allclose(then.get_outputs()[0].numpy(), expected, rtol=1e-4)


def test_a_value_of_another_device_is_copied_through_the_host() -> None:
    session, x = session_on("GPU.0"), on_device("npu")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(
        binding.get_outputs()[0].numpy(), np.exp(np.maximum(X, 0)), rtol=1e-5
    )
    assert tensor_of(x).memory.copy_counts().to_host == 1


def test_an_output_may_be_the_tensor_of_an_input() -> None:
    session, x = session_on("GPU.0"), on_device("gpu")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", x)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(x.numpy(), np.exp(np.maximum(X, 0)), rtol=1e-5)


def test_a_free_dimension_is_read_from_the_device_too() -> None:
    session, x = session_on("GPU.0", products("rows")), on_device("gpu")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_output("y", "gpu", 0)
    session.run_with_iobinding(binding)
    (y,) = binding.get_outputs()
    assert y.device_name() == "gpu"
    np.testing.assert_allclose(y.numpy(), np.exp(np.maximum(X, 0)), rtol=1e-5)


@pytest.mark.parametrize(("kind", "device"), KINDS)
def test_what_does_not_fit_is_refused_before_anything_is_allocated(kind: str, device: str) -> None:
    memory = openvino_memory.find_memory(kind, 0, -1)
    assert memory is not None
    with pytest.raises(ort.InvalidArgument, match="needs 1048580 bytes"):
        memory.allocate([ROOM // 4 + 1], np.dtype(np.float32))
    half = memory.allocate([ROOM // 8], np.dtype(np.float32))
    with pytest.raises(ort.InvalidArgument, match="524288 of the 1048576 bytes"):
        memory.allocate([ROOM // 8 + 1], np.dtype(np.float32))
    assert (memory.tensors.live, memory.core.made) == (ROOM // 2, [device])
    half.release()
    assert memory.tensors.live == 0
    memory.allocate([ROOM // 4], np.dtype(np.float32))
    assert memory.tensors.peak == ROOM


def test_a_released_tensor_says_so() -> None:
    value = on_device("gpu")
    other = on_device("gpu")
    tensor_of(value).release()
    with pytest.raises(ort.InvalidArgument, match=r"float32\[4, 6\] is used after its release"):
        value.numpy()
    for pair in ([value], [other]), ([other], [value]):
        with pytest.raises(ort.InvalidArgument, match="is used after its release"):
            ort.copy_tensors(*pair)


@pytest.mark.parametrize("end", ["input", "output"])
def test_a_run_with_a_released_tensor_does_not_fall_back(end: str) -> None:
    made, value = session_on("GPU.0"), on_device("gpu")
    made.enable_fallback()
    providers, binding = made.get_providers(), made.io_binding()
    binding.bind_ortvalue_input("x", on_device("gpu"))
    binding.bind_ortvalue_output("y", on_device("gpu"))
    getattr(binding, f"bind_ortvalue_{end}")("xy"[end == "output"], value)
    tensor_of(value).release()
    for _ in range(2):
        with pytest.raises(ort.InvalidArgument, match="is used after its release"):
            made.run_with_iobinding(binding)
    assert made.get_providers() == providers


def test_a_value_without_elements_has_no_memory() -> None:
    memory = openvino_memory.find_memory("gpu", 1, 0x8086)
    assert memory is not None
    tensor = memory.allocate([0, 3], np.dtype(np.float32))
    assert tensor.numpy().shape == (0, 3)
    assert memory.core.made == []
    assert isinstance(tensor, DeviceTensor)


def test_an_npus_tensor_is_host_memory_for_dlpack_and_a_gpus_is_none() -> None:
    value = on_device("npu")
    assert value.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(value)  # type: ignore[arg-type] # numpy's protocol, without its copy
    del value
    np.testing.assert_array_equal(array, X)
    with pytest.raises(ort.InvalidArgument, match="memory of gpu is not one that DLPack shares"):
        on_device("gpu").__dlpack__()


def test_another_vendor_and_a_missing_kind_are_not_openvinos() -> None:
    assert openvino_memory.find_memory("gpu", 0, 0x10DE) is None
    assert openvino_memory.find_memory("opencl", 0, -1) is None
    PlugIns.available_devices, kept = ("CPU",), PlugIns.available_devices
    try:
        assert openvino_memory.find_memory("gpu", 0, -1) is None
    finally:
        PlugIns.available_devices = kept


def test_a_device_that_cannot_be_opened_says_why() -> None:
    with pytest.raises(ort.EPFail, match=r"opening the memory of GPU\.7: no context of GPU\.7"):
        OpenVINOMemory(ov.Core(), "GPU.7")
