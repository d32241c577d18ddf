"""Functions of OpenCL's C API that pyopencl lacks, or calls with the interpreter's lock."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pyopencl as cl

if TYPE_CHECKING:
    from collections.abc import Callable

SUCCESS = 0
_QUERY = (
    *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_size_t),
    *(ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)),
)


def query_function(name: str) -> Callable[..., int] | None:
    """clGet...Info of an object: (handle, parameter, size, value, size of the value).

    Other threads go on while it is called. None where the library that holds the loader, which is
    pyopencl's own on Linux, does not lend it.
    """
    library: Any = ctypes.CDLL(cl._cl.__file__)  # noqa: SLF001 - see above
    if not hasattr(library, name):
        return None
    function: Any = getattr(library, name)
    function.argtypes = _QUERY
    query: Callable[..., int] = function
    return query
