"""Memory of Intel's GPUs and NPUs as OpenVINO reaches it: remote and host tensors of a context.

A GPU's tensors are in memory of the device. An NPU reads host memory, of which its driver
allocates tensors that need no copy. The plug-in of the CPU has no context: there, arrays are what
it reads and writes.
"""

from __future__ import annotations

import os
import re
import weakref
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import field_names
from eps.openvino.sdk_errors import PROPERTY_ERRORS, openvino_errors
from ort_lite.ep import (
    BindingError,
    CopyCounts,
    DeviceMemory,
    DeviceTensor,
    EPFail,
    MemoryPlace,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

INTEL = 0x8086
"""PCI id of the vendor."""
_DEVICE = re.compile(r"(GPU|NPU)(?:\.(\d+))?$")
_KINDS = {
    "GPU": (1, "OpenVINO_GPU", ("GPU_DEVICE_TOTAL_MEM_SIZE", "GPU_DEVICE_MAX_ALLOC_MEM_SIZE")),
    "NPU": (3, "OpenVINO_RT_NPU", ("NPU_DEVICE_TOTAL_MEM_SIZE",)),
}
"""OrtDevice's number, onnxruntime's name of the allocator, and the properties that have sizes."""

_memories: weakref.WeakValueDictionary[tuple[int, str], OpenVINOMemory] = (
    weakref.WeakValueDictionary()
)
_making = Lock()


def has_memory(device: str) -> bool:
    """Whether a device, as OpenVINO names it, has tensors of its own."""
    return _DEVICE.match(device) is not None


def memory_of(core: Any, device: str) -> OpenVINOMemory:  # noqa: ANN401 - an SDK object
    """The memory of a device, one for all that use this Core.

    Raises:
        EPFail: OpenVINO has no context of it.
    """
    with _making:
        memory = _memories.get((id(core), device))
        if memory is None or memory.core is not core:
            memory = _memories[id(core), device] = OpenVINOMemory(core, device)
        return memory


def shared_core() -> Any:  # noqa: ANN401 - an SDK object
    """The Core of all GPUs and NPUs of the process: tensors belong to a Core's contexts.

    Raises:
        RuntimeError: OpenVINO does not start.
    """
    from eps.openvino.sdk.binding import ov  # noqa: PLC0415 - lazy: rare

    return _start(ov.Core)


@cache
def _start(core_class: Any) -> Any:  # noqa: ANN401 - SDK objects
    from ort_lite.ep import uncut  # noqa: PLC0415 - lazy: rare

    with uncut:
        return core_class()


def find_memory(device_name: str, device_id: int, vendor_id: int) -> OpenVINOMemory | None:
    """The memory of a device; see `SupportsMemoryLookup`.

    Raises:
        EPFail: The device cannot be opened.
    """
    kind = device_name.upper()
    if kind not in _KINDS or vendor_id not in (-1, INTEL):
        return None
    with openvino_errors("looking for devices"):
        core = shared_core()
        names = [name for name in core.available_devices if name.split(".")[0] == kind]
    if not names:
        return None
    for name in names:
        number = _DEVICE.match(name)
        if number is not None and int(number[2] or 0) == device_id:
            return memory_of(core, name)
    listed = ", ".join(names)
    raise BindingError(f"{device_name} device {device_id} does not exist; found {listed}")


class OpenVINOMemory(DeviceMemory):
    """The memory of a GPU or an NPU, in the default context of its plug-in.

    Attributes:
        core: The Core whose plug-in it is.
    """

    def __init__(self, core: Any, device: str) -> None:  # noqa: ANN401 - an SDK object
        """Nothing is allocated yet.

        Args:
            core: Of the extension.
            device: As OpenVINO names it: "GPU", "GPU.1", "NPU".

        Raises:
            EPFail: OpenVINO has no context of it.
        """
        super().__init__()
        matched = _DEVICE.match(device)
        assert matched is not None, "the caller asks `has_memory`"
        self._kind = matched[1]
        device_type, allocator, properties = _KINDS[self._kind]
        self.core = core
        self.place = MemoryPlace(
            name=self._kind.lower(),
            device_type=device_type,
            vendor_id=INTEL,
            device_id=int(matched[2] or 0),
            allocator=allocator,
        )
        with openvino_errors(f"opening the memory of {device}"):
            self._context = core.get_default_context(device)
        sizes = [self._read_size(core, device, key) for key in properties]
        self._total, self._largest = sizes[0], sizes[-1]
        self._counting = Lock()
        self._copies = dict.fromkeys(field_names(CopyCounts), 0)
        self._process = os.getpid()

    @staticmethod
    def _read_size(core: Any, device: str, key: str) -> int:  # noqa: ANN401 - an SDK object
        """A size in bytes; 0 where the plug-in does not report it."""
        try:
            return int(core.get_property(device, key))
        except PROPERTY_ERRORS:
            return 0

    def allocate(
        self, shape: Sequence[int], dtype: np.dtype[Any], *, zeros: bool = True
    ) -> OpenVINOTensor:
        """See DeviceMemory."""
        self.require_process()
        tensor = OpenVINOTensor(self, tuple(shape), np.dtype(dtype))
        if tensor.nbytes:
            self._require_room(tensor)
            with openvino_errors(f"allocating {tensor.dtype}{list(tensor.shape)}"):
                tensor.own(self._new_tensor(tensor))
            if zeros:
                tensor.fill(np.zeros(tensor.shape, tensor.dtype))
        return tensor

    def _new_tensor(self, tensor: OpenVINOTensor) -> Any:  # noqa: ANN401 - an SDK object
        from eps.openvino.sdk.binding import ov  # noqa: PLC0415 - lazy: rare

        form = ov.Type(tensor.dtype), ov.Shape(tensor.shape)
        if self._kind == "NPU":
            return self._context.create_host_tensor(*form)
        return self._context.create_tensor(*form, {})

    def _require_room(self, tensor: OpenVINOTensor) -> None:
        what, size = f"{tensor.dtype}{list(tensor.shape)}", tensor.nbytes
        if self._largest and size > self._largest:
            raise BindingError(
                f"{what} needs {size} bytes in one piece, and the {self._kind} allows "
                f"{self._largest}: use a smaller shape, or keep it in host memory"
            )
        if self._total and size + self.tensors.live > self._total:
            raise BindingError(
                f"{what} needs {size} bytes, and {self.tensors.live} of the {self._total} "
                f"bytes of the {self._kind} hold other tensors: release some, or use a smaller "
                "shape"
            )

    def count_copy(self, kind: str, size: int) -> None:
        """Count a copy of `size` bytes: "to_device", "to_host" or "on_device"."""
        with self._counting:
            self._copies[kind] += 1
            self._copies[f"bytes_{kind}"] += size

    def copy_counts(self) -> CopyCounts:
        """See DeviceMemory."""
        with self._counting:
            return CopyCounts(**self._copies)

    def reaches(self, other: DeviceMemory) -> bool:
        """See DeviceMemory."""
        return (
            isinstance(other, OpenVINOMemory)
            and other.core is self.core
            and other.place == self.place
        )

    def require_process(self) -> None:
        """Refuse to go on in a forked process.

        Raises:
            EPFail: The driver's threads are in the process that was forked.
        """
        if os.getpid() != self._process:
            raise EPFail(
                f"the memory of {self._kind} cannot be used in a forked process: make values "
                "after the fork, or start processes without one: "
                "multiprocessing.set_start_method('spawn')"
            )


class OpenVINOTensor(DeviceTensor):
    """A tensor of a context: remote, or in host memory that the device reads."""

    memory: OpenVINOMemory

    def __init__(
        self, memory: OpenVINOMemory, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        """A tensor without memory, as one without elements stays; `own` gives it some."""
        self.memory = memory
        self.shape = shape
        self.dtype = dtype
        self._handle: Any = None
        self._released = False

    def own(self, handle: Any) -> None:  # noqa: ANN401 - an SDK object
        """Take over a tensor of the extension."""
        self._handle = handle
        self.memory.tensors.add(self.nbytes)

    @property
    def handle(self) -> Any:  # noqa: ANN401 - an SDK object
        """The tensor of the extension; None if it has no elements.

        Raises:
            BindingError: It was released.
            EPFail: The process was forked.
        """
        if self._released:
            self.refuse_use()
        self.memory.require_process()
        return self._handle

    def numpy(self) -> Array:
        """See DeviceTensor."""
        array = np.empty(self.shape, self.dtype)
        handle = self.handle
        if handle is not None:
            with openvino_errors("copying a tensor to the host"):
                handle.copy_to(_tensor_of(array))
            self.memory.count_copy("to_host", self.nbytes)
        return array

    def write(self, array: Array) -> None:
        """See DeviceTensor."""
        if self.handle is not None:
            self.fill(array)
            self.memory.count_copy("to_device", self.nbytes)

    def fill(self, array: Array) -> None:
        """As `write`, without counting.

        Raises:
            EPFail: The device failed.
        """
        handle = self.handle
        with openvino_errors("copying a tensor to the device"):
            handle.copy_from(_tensor_of(np.ascontiguousarray(array)))

    def copy_from(self, source: DeviceTensor) -> None:
        """See DeviceTensor."""
        assert isinstance(source, OpenVINOTensor), "the caller asks `reaches`"
        handle = self.handle
        if source is self or handle is None:
            return
        origin = source.handle
        with openvino_errors("copying a tensor on the device"):
            handle.copy_from(origin)
        self.memory.count_copy("on_device", self.nbytes)

    def host_view(self) -> Array | None:
        """See DeviceTensor: of an NPU's tensors, which are in host memory."""
        handle = self.handle
        if self.memory.place.name != "npu":
            return None
        view: Array = np.empty(self.shape, self.dtype) if handle is None else handle.data
        return view

    def data_ptr(self) -> int:
        """Address of host memory; of a remote tensor the identity of OpenVINO's object."""
        handle, view = self.handle, self.host_view()
        if handle is None:
            return 0
        return id(handle) if view is None else int(view.ctypes.data)

    def release(self) -> None:
        """See DeviceTensor."""
        handle, self._handle = self._handle, None
        self._released = True
        if handle is not None:
            self.memory.tensors.add(-self.nbytes)

    def __del__(self) -> None:
        """Give the memory back."""
        if getattr(self, "_handle", None) is not None:
            self.release()


def _tensor_of(array: Array) -> Any:  # noqa: ANN401 - an SDK object
    from eps.openvino.sdk.binding import ov  # noqa: PLC0415 - lazy: rare

    return ov.Tensor(array, shared_memory=True)
