"""Arrays as kernels see them: element types, and the memory that a result may take."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.onnx_model import SequenceType, TensorType
from ort_lite.ep import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.onnx_model import ValueType
    from ort_lite.ep import KernelFn, KernelInfo

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
if TYPE_CHECKING:
    Empty = Callable[..., Array]
    """numpy.empty, or a session's: KernelInfo.empty."""

FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
INT64 = np.dtype(np.int64)
NO_QUESTION_BYTES = 1 << 26
"""Any machine that numpy runs on has as much."""
SIZES = 8
"""Of so many shapes of input a node remembers what it prepared for them."""
CACHE_LINE = 64
"""Bytes of a line of the CPU's cache."""

_SMALL_FLOATS = ("bfloat16", "float8", "float4", "float6")
_MEMINFO = Path("/proc/meminfo")
_AVAILABLE = "MemAvailable:"
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of the container that the process runs in: control groups version 2 and 1."""
UNKNOWN = 1 << 40
"""No bound, on systems that report no free memory: Windows itself refuses excess requests."""


def is_floating(dtype: DType) -> bool:
    """Whether `dtype` is a float of any width, those of ml_dtypes included."""
    if dtype.kind != "V":  # that of most types of ml_dtypes; numpy makes a name anew every time
        return dtype.kind == "f"
    return dtype.name.startswith(_SMALL_FLOATS)


def is_narrow_float(dtype: DType) -> bool:
    """Whether `dtype` is a float of 16 bits or less, which numpy computes slowly or not."""
    return dtype.itemsize < 4 and is_floating(dtype)


def element_type(value_type: ValueType | None) -> DType | None:
    """dtype of a tensor type, or of a sequence's tensors; None if not known."""
    if isinstance(value_type, SequenceType):
        return element_type(value_type.elem)
    return numpy_dtype(value_type.elem_type) if isinstance(value_type, TensorType) else None


def computing_wide(info: KernelInfo, fn: KernelFn) -> KernelFn:
    """`fn` with floats of 16 bits or less computed in float32, results rounded back.

    Results that `fn` gives in float32 take the narrow type of its inputs. Where inference
    knows that the node's first input is wide, `fn` itself is returned.
    """
    known = element_type(info.input_type(0))
    if known is not None and not is_narrow_float(known):
        return fn

    def run_widened(*inputs: Any) -> Any:  # noqa: ANN401 - whatever the kernel takes and gives
        narrow = next(
            (x.dtype for x in inputs if isinstance(x, np.ndarray) and is_narrow_float(x.dtype)),
            None,
        )
        if narrow is None:
            return fn(*inputs)
        result = fn(*(widen_floats(x) for x in inputs))
        if isinstance(result, tuple):
            return tuple(_narrow(item, narrow) for item in result)
        return _narrow(result, narrow)

    return run_widened


def widen_floats(value: Any) -> Any:  # noqa: ANN401 - arrays, None and sequences alike
    """`value` in float32 if it is an array of narrow floats."""
    if isinstance(value, np.ndarray) and is_narrow_float(value.dtype):
        return value.astype(np.float32)
    return value


def _narrow(value: Any, narrow: DType) -> Any:  # noqa: ANN401 - as `widen_floats`
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == FLOAT32:
        return value.astype(narrow)
    return value


def check_allocation(shape: Sequence[int], dtype: DType) -> tuple[int, ...]:
    """`shape`, if an array of it can be held in memory now.

    Sizes that a model computes are not to be trusted.

    Raises:
        ValueError: A dimension is negative, or the array is larger than what is available.
    """
    dims = tuple(map(int, shape))
    if min(dims, default=0) < 0:
        raise ValueError(f"negative dimension in shape {list(dims)}")
    size = math.prod(dims) * dtype.itemsize
    if size > NO_QUESTION_BYTES and size > available_memory():
        raise ValueError(
            f"a result of shape {list(dims)} would take {size} bytes, "
            f"{available_memory()} are available"
        )
    return dims


def allocate_checked(shape: Sequence[int], dtype: DType) -> Array:
    """As numpy.empty; see check_allocation."""
    if math.prod(shape) * dtype.itemsize > NO_QUESTION_BYTES:
        check_allocation(shape, dtype)
    return np.empty(shape, dtype)


def outer_checked(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """`function` of two arrays that broadcast, refused where the result would not fit."""

    def call(a: Array, b: Array) -> Array:
        if a.size * b.size > NO_QUESTION_BYTES:
            check_allocation(np.broadcast_shapes(a.shape, b.shape), a.dtype)
        return function(a, b)

    return call


def allocate_aligned(shape: Sequence[int], dtype: DType) -> Array:
    """As numpy.empty, beginning at a cache line: for what matrix products read again and again."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def on_last_axes(slices: Sequence[slice]) -> tuple[Any, ...]:
    """An index that takes `slices` of the last axes and all of those before."""
    return (..., *slices)


def axis_in(axis: int, rank: int) -> int:
    """`axis` counted from the front.

    Raises:
        ValueError: It is outside [-rank, rank).
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in [-{rank}, {rank - 1}]")
    return axis % rank if rank else 0


def available_memory() -> int:
    """Bytes that could be written now without the system ending a process.

    What Linux calls available, within the limit of the container; elsewhere the machine's
    memory. Lazily mapped memory would accept more, and the process would die on writing it.
    """
    return min(_system(), *(_limit(path) for path in _LIMITS))


def _system() -> int:
    try:
        lines = _MEMINFO.read_text("ascii").splitlines()
    except OSError:
        return _physical_memory()
    available = next((line for line in lines if line.startswith(_AVAILABLE)), None)
    return int(available.split()[1]) * 1024 if available else _physical_memory()


def _physical_memory() -> int:
    if sys.platform == "win32":
        return UNKNOWN
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _limit(path: Path) -> int:
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return UNKNOWN
    return int(text) if text.isdecimal() else UNKNOWN  # "max" is none
