"""Functions of OpenCL's C API that pyopencl lacks, or wraps in more than is wanted.

The library that holds the loader lends them; on Linux it is pyopencl's own. Elsewhere it may not,
and everything here is None.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

SUCCESS = 0


@dataclass(frozen=True, slots=True)
class KernelFunctions:
    """clCreateKernel, clSetKernelArg, clEnqueueNDRangeKernel and clReleaseKernel.

    Creating and releasing let other threads go on: Intel's runtime links a program when its first
    kernel is made. The other two return at once, and keep the interpreter's lock as pyopencl does.
    """

    create: Callable[..., int | None]
    set_argument: Callable[..., int]
    enqueue: Callable[..., int]
    release: Callable[..., int]


@cache
def query_function(name: str) -> Callable[..., int] | None:
    """clGet...Info of an object: (handle, parameter, size, value, size of the value).

    Other threads go on while it is called.
    """
    library = ctypes.CDLL(_library())
    if not hasattr(library, name):
        return None
    function = getattr(library, name)
    function.argtypes = (
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t),
        *(ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)),
    )
    query: Callable[..., int] = function
    return query


@cache
def kernel_functions() -> KernelFunctions | None:
    """What a launch needs; handles are given as c_void_p, sizes as arrays of c_size_t."""
    free, locked = ctypes.CDLL(_library()), ctypes.PyDLL(_library())
    if not hasattr(free, "clCreateKernel"):
        return None
    create = free.clCreateKernel
    create.restype = ctypes.c_void_p
    return KernelFunctions(
        create, locked.clSetKernelArg, locked.clEnqueueNDRangeKernel, free.clReleaseKernel
    )


def require_success(status: int, routine: str) -> None:
    """Raise what pyopencl raises for a status.

    Raises:
        cl.RuntimeError: It is an error.
    """
    if status != SUCCESS:
        record: Any = cl._cl._ErrorRecord(msg="", code=status, routine=routine)  # noqa: SLF001 - pyopencl makes no other
        raise cl.RuntimeError(record)


def _library() -> str:
    return str(cl._cl.__file__)  # noqa: SLF001 - the extension module, which has the loader with it
