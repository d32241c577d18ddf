"""Where a value's memory is, in onnxruntime's words; here it is always the host's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from ort_lite.execution.values import require_host


class OrtMemType(IntEnum):
    """OrtMemType of onnxruntime_c_api.h."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = CPU_OUTPUT
    DEFAULT = 0


class OrtAllocatorType(IntEnum):
    """OrtAllocatorType of onnxruntime_c_api.h."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


@dataclass(frozen=True, slots=True)
class OrtDevice:
    """A place for memory: the host's."""

    @classmethod
    def make(cls, ort_device_name: str, device_id: int, vendor_id: int = -1) -> Self:
        """The place by its name.

        Raises:
            InvalidArgument: It is not host memory, in which all values of ort_lite live: execution
                providers copy what they need to their device.
        """
        require_host(ort_device_name, device_id, vendor_id)
        return cls()

    def device_type(self) -> int:
        """0: host."""
        return 0

    def device_id(self) -> int:
        """0: the only one."""
        return 0

    def device_vendor_id(self) -> int:
        """0: none."""
        return 0

    def device_mem_type(self) -> int:
        """0: default."""
        return 0


@dataclass(frozen=True, slots=True)
class OrtMemoryInfo:
    """Where inputs are taken from and outputs put.

    Attributes:
        allocator_type: ORT_DEVICE_ALLOCATOR: there is no arena.
    """

    name: str = "Cpu"
    allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_DEVICE_ALLOCATOR
    device_id: int = 0
    mem_type: OrtMemType = OrtMemType.DEFAULT
