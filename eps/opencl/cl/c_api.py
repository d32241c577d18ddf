"""OpenCL's C API: the functions that ort_lite needs, through ctypes.

Declared after the Khronos headers CL/cl.h (OpenCL 1.2, which every driver has).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from ort_lite.ep import CLibrary, uncut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_FEW = 16

_FAILURES = (
    *("DEVICE_NOT_FOUND", "DEVICE_NOT_AVAILABLE", "COMPILER_NOT_AVAILABLE"),
    *("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY"),
    *("PROFILING_INFO_NOT_AVAILABLE", "MEM_COPY_OVERLAP", "IMAGE_FORMAT_MISMATCH"),
    *("IMAGE_FORMAT_NOT_SUPPORTED", "BUILD_PROGRAM_FAILURE", "MAP_FAILURE"),
    *("MISALIGNED_SUB_BUFFER_OFFSET", "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"),
    *("COMPILE_PROGRAM_FAILURE", "LINKER_NOT_AVAILABLE", "LINK_PROGRAM_FAILURE"),
    *("DEVICE_PARTITION_FAILED", "KERNEL_ARG_INFO_NOT_AVAILABLE"),
)
"""From status -1 on downwards."""

_INVALID = (
    *("VALUE", "DEVICE_TYPE", "PLATFORM", "DEVICE", "CONTEXT", "QUEUE_PROPERTIES"),
    *("COMMAND_QUEUE", "HOST_PTR", "MEM_OBJECT", "IMAGE_FORMAT_DESCRIPTOR", "IMAGE_SIZE"),
    *("SAMPLER", "BINARY", "BUILD_OPTIONS", "PROGRAM", "PROGRAM_EXECUTABLE", "KERNEL_NAME"),
    *("KERNEL_DEFINITION", "KERNEL", "ARG_INDEX", "ARG_VALUE", "ARG_SIZE", "KERNEL_ARGS"),
    *("WORK_DIMENSION", "WORK_GROUP_SIZE", "WORK_ITEM_SIZE", "GLOBAL_OFFSET"),
    *("EVENT_WAIT_LIST", "EVENT", "OPERATION", "GL_OBJECT", "BUFFER_SIZE", "MIP_LEVEL"),
    *("GLOBAL_WORK_SIZE", "PROPERTY", "IMAGE_DESCRIPTOR", "COMPILER_OPTIONS"),
    *("LINKER_OPTIONS", "DEVICE_PARTITION_COUNT"),
)
"""Error statuses of invalid calls, from -30 downwards."""

_STATUS: Mapping[int, str] = {
    **{-1 - i: name for i, name in enumerate(_FAILURES)},
    **{-30 - i: f"INVALID_{name}" for i, name in enumerate(_INVALID)},
    -1001: "PLATFORM_NOT_FOUND_KHR",
}


class OpenCLError(Exception):
    """A function's status other than success.

    Attributes:
        status: A number of cl.h.
    """

    def __init__(self, routine: str, status: int, log: str = "") -> None:
        """Say what failed; `log` is the compiler's."""
        self.routine, self.status, self.log = routine, status, log
        super().__init__(routine, status, log)

    def __str__(self) -> str:
        """The status by its name, and the log."""
        message = f"{self.routine} failed: {_STATUS.get(self.status, f'status {self.status}')}"
        return f"{message}\n{self.log}" if self.log else message


class Region(ctypes.Structure):
    """cl_buffer_region, in bytes."""

    _fields_: ClassVar = [("origin", c_size_t), ("size", c_size_t)]


_OBJECT, _NUMBER, _FLAGS = c_void_p, c_uint32, c_uint64
_INFO = (_OBJECT, _NUMBER, c_size_t, c_void_p, POINTER(c_size_t))
_WAITS = (_NUMBER, c_void_p, POINTER(c_void_p))
_STATUS_OUT = POINTER(c_int32)

_SLOW: Mapping[str, Sequence[Any]] = {
    "clGetPlatformIDs": (_NUMBER, POINTER(c_void_p), POINTER(c_uint32)),
    "clGetDeviceIDs": (_OBJECT, _FLAGS, _NUMBER, POINTER(c_void_p), POINTER(c_uint32)),
    "clBuildProgram": (_OBJECT, _NUMBER, POINTER(c_void_p), c_char_p, c_void_p, c_void_p),
    "clGetProgramInfo": _INFO,  # PoCL compiles before it gives a binary
    "clEnqueueReadBuffer": (*(_OBJECT, _OBJECT, _NUMBER), *(c_size_t, c_size_t, c_void_p), *_WAITS),
    "clEnqueueWriteBuffer": (
        *(_OBJECT, _OBJECT, _NUMBER, c_size_t, c_size_t, c_void_p),
        *_WAITS,
    ),
    "clWaitForEvents": (_NUMBER, POINTER(c_void_p)),
    "clFinish": (_OBJECT,),
    "clReleaseContext": (_OBJECT,),
    "clReleaseCommandQueue": (_OBJECT,),
    "clReleaseMemObject": (_OBJECT,),
    "clReleaseProgram": (_OBJECT,),
    "clReleaseKernel": (_OBJECT,),
}
"""Functions that may take long: they run with the GIL released."""

_FAST: Mapping[str, Sequence[Any]] = {
    "clGetPlatformInfo": _INFO,
    "clGetDeviceInfo": _INFO,
    "clGetProgramBuildInfo": (_OBJECT, *_INFO),
    "clGetEventProfilingInfo": _INFO,
    "clGetKernelWorkGroupInfo": (_OBJECT, *_INFO),
    "clSetKernelArg": (_OBJECT, _NUMBER, c_size_t, c_void_p),
    "clEnqueueFillBuffer": (
        *(_OBJECT, _OBJECT, c_void_p, c_size_t, c_size_t, c_size_t),
        *_WAITS,
    ),
    "clFlush": (_OBJECT,),
    "clReleaseEvent": (_OBJECT,),
}
"""Functions that return immediately, called with the GIL held."""

_SLOW_CREATE: Mapping[str, Sequence[Any]] = {
    "clCreateContext": (
        *(c_void_p, _NUMBER, POINTER(c_void_p), c_void_p, c_void_p),
        _STATUS_OUT,
    ),
    "clCreateBuffer": (_OBJECT, _FLAGS, c_size_t, c_void_p, _STATUS_OUT),
    "clCreateProgramWithBinary": (
        *(_OBJECT, _NUMBER, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_char_p)),
        *(POINTER(c_int32), _STATUS_OUT),
    ),
    "clCreateKernel": (_OBJECT, c_char_p, _STATUS_OUT),  # Intel's links a program at the first
}
_FAST_CREATE: Mapping[str, Sequence[Any]] = {
    "clCreateCommandQueue": (_OBJECT, _OBJECT, _FLAGS, _STATUS_OUT),
    "clCreateSubBuffer": (_OBJECT, _FLAGS, _NUMBER, POINTER(Region), _STATUS_OUT),
    "clCreateProgramWithSource": (
        *(_OBJECT, _NUMBER, POINTER(c_char_p), POINTER(c_size_t), _STATUS_OUT),
    ),
}

_OF_RUNS = {"clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clWaitForEvents", "clFinish"}
"""Slow functions that each run calls, and that Python's exit therefore does not wait for."""


class CApi(CLibrary):
    """The loader, whose functions are attributes; those that give a status raise `OpenCLError`.

    Attributes:
        enqueue: clEnqueueNDRangeKernel, which gives its status: a run calls it for each kernel,
            with arguments of ctypes' types that were made once.
    """

    def __init__(self, library: str) -> None:
        """Load it.

        Args:
            library: A file that is OpenCL's loader or is linked with it, or a name for the system.

        Raises:
            OSError: It cannot be loaded, or is none of OpenCL's.
        """
        super().__init__(library)
        self.declare(_SLOW, _FAST, c_int32, _require_success)
        self.declare(_SLOW_CREATE, _FAST_CREATE, c_void_p)
        for name in {*_SLOW, *_SLOW_CREATE} - _OF_RUNS:
            setattr(self, name, _uncut(getattr(self, name)))
        self.enqueue = self.declare_untyped("clEnqueueNDRangeKernel", c_int32)


def _uncut(function: Any) -> Callable[..., Any]:  # noqa: ANN401 - ctypes
    @wraps(function)
    def call(*arguments: object) -> Any:  # noqa: ANN401 - as above
        with uncut:
            return function(*arguments)

    return call


def create(function: Any, *arguments: object) -> c_void_p:  # noqa: ANN401 - ctypes
    """The object that `function` creates; its last parameter receives the status.

    Raises:
        OpenCLError: It fails.
    """
    status = c_int32()
    handle = function(*arguments, status)
    if status.value:
        raise OpenCLError(function.__name__, status.value)
    return c_void_p(handle)


def list_handles(query: Any, *arguments: object) -> list[int]:  # noqa: ANN401 - ctypes
    """The handles that `query` returns; its last parameters are room, an array, and how many.

    One call if they are few: another thread may take the GIL in each.

    Raises:
        OpenCLError: It gives none.
    """
    room, count = _FEW, c_uint32()
    while True:
        handles = (c_void_p * room)()
        query(*arguments, room, handles, count)
        if count.value <= room:
            return [handle for handle in handles[: count.value] if handle]
        room = count.value


def _require_success(status: int, function: Any, arguments: tuple[Any, ...]) -> int:  # noqa: ANN401, ARG001 - ctypes' errcheck
    if status:
        raise OpenCLError(function.__name__, status)
    return status
