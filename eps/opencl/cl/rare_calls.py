"""Functions of OpenCL's C API that sessions without bound tensors never call."""

from __future__ import annotations

from ctypes import POINTER, c_int32, c_size_t, c_uint32, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.loader import api

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.cl.c_api import CApi

_INFO = (c_void_p, c_uint32, c_size_t, c_void_p, POINTER(c_size_t))
_WAITS = (c_void_p, c_uint32, c_void_p, POINTER(c_void_p))
_SLOW: Mapping[str, Sequence[Any]] = {
    "clEnqueueCopyBuffer": (
        *(c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, c_size_t),
        *(c_uint32, c_void_p, POINTER(c_void_p)),
    ),
}
_FAST: Mapping[str, Sequence[Any]] = {
    "clRetainContext": (c_void_p,),
    "clRetainCommandQueue": (c_void_p,),
    "clRetainMemObject": (c_void_p,),
    "clRetainEvent": (c_void_p,),
    "clGetContextInfo": _INFO,
    "clGetCommandQueueInfo": _INFO,
    "clGetMemObjectInfo": _INFO,
    "clEnqueueMarkerWithWaitList": _WAITS,
    "clEnqueueBarrierWithWaitList": _WAITS,
}


@cache
def rare_calls() -> CApi:
    """The loader with these functions, declared when they are first needed.

    Raises:
        EPFail: No loader was found.
    """
    library = api()
    library.declare(_SLOW, _FAST, c_int32, require_success)
    return library


def require_success(status: int, function: Any, arguments: tuple[Any, ...]) -> int:  # noqa: ANN401, ARG001 - ctypes' errcheck
    """Raise OpenCLError for a status other than success; an errcheck of ctypes."""
    if status:
        raise OpenCLError(function.__name__, status)
    return status
