"""Nodes of constants in numpy: the arithmetic on shapes that models are full of.

onnx.reference computes every other node of constants; importing it takes 0.3 s.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.opencl.compile.ir import Unsupported
from ort_lite.ep import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.opencl.compile.lower.node import NodeView

    Array = np.ndarray[Any, np.dtype[Any]]
    Function = Callable[[NodeView, Sequence[Array]], Array]

MAX_FOLDED = 1 << 26
"""Elements of the largest constant that is made when compiling."""
_MOST_WHOLE = 1 << 24
"""float32 has all whole numbers up to this one."""
TOO_LARGE = "its constant value is too large"
_FAILURES = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError)
"""Exceptions of numpy for nodes that are not as ONNX wants them."""


def evaluate_in_numpy(view: NodeView) -> Array | None:
    """The output of a node whose inputs are constants.

    Returns:
        None if the node is not in the table, has other types or versions than the table's, or
        cannot be evaluated: onnx.reference then has the answer, or says what is wrong.

    Raises:
        Unsupported: The output would have more than MAX_FOLDED elements.
    """
    entry = _TABLE.get(view.node.op_type)
    if entry is None or view.node.domain or len(view.node.outputs) != 1:
        return None
    since, function = entry
    inputs = [x.constant for x in view.inputs if x is not None]
    arrays = [x for x in inputs if x is not None and _is_number(x.dtype)]
    if view.opset < since or len(arrays) != len(view.inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(view, arrays))
    except _FAILURES:
        return None


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Whether a type is numpy's own and no text; ml_dtypes' float8_e5m2 is of kind "f", too."""
    return dtype.isbuiltin == 1 and dtype.kind in "biuf"


def _cast(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Cast-6 between numbers that numpy converts as ONNX does."""
    (x,) = inputs
    dtype = numpy_dtype(view.attr("to"))
    if not _is_number(dtype):
        raise TypeError(f"{x.dtype} to {dtype}")
    if x.dtype.kind == "f" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not np.all((x >= limits.min) & (x < limits.max)):  # the CPU decides about these
            raise OverflowError(f"{x.dtype} to {dtype}")
    return x.astype(dtype)


def _slice(_view: NodeView, inputs: Sequence[Array]) -> Array:
    """Slice-10."""
    data, starts, ends, *rest = inputs
    axes = rest[0].tolist() if rest else range(len(starts))
    steps = rest[1].tolist() if len(rest) > 1 else [1] * len(starts)
    chosen = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts.tolist(), ends.tolist(), steps, strict=True):
        chosen[axis] = slice(start, end, step)
    return data[tuple(chosen)]


def _concat(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Concat-4."""
    return np.concatenate(inputs, axis=view.attr("axis"))


def _gather(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Gather-1."""
    data, indices = inputs
    return np.take(data, indices, axis=view.attr("axis", 0))


def _axes(view: NodeView, inputs: Sequence[Array]) -> tuple[int, ...] | None:
    """Axes of Squeeze and Unsqueeze, an input from version 13 on; None if omitted."""
    if len(inputs) > 1:
        return tuple(inputs[1].tolist())
    axes = view.attr("axes")
    return None if axes is None else tuple(axes)


def _squeeze(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Squeeze-1."""
    return np.squeeze(inputs[0], _axes(view, inputs))


def _unsqueeze(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Unsqueeze-1."""
    axes = _axes(view, inputs)
    if axes is None:
        raise TypeError("no axes")
    return np.expand_dims(inputs[0], axes)


def _shape(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Shape-15; earlier versions have no attributes."""
    dims = inputs[0].shape
    return np.array(dims[view.attr("start", 0) : view.attr("end")], np.int64)


def _constant_of_shape(view: NodeView, inputs: Sequence[Array]) -> Array:
    """ConstantOfShape-9."""
    value = view.attr("value", np.zeros(1, np.float32))
    shape = tuple(inputs[0].tolist())
    _require_size(prod(shape))
    return np.full(shape, value.reshape(-1)[0], value.dtype)


def _reshape(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Reshape-5."""
    data, target = inputs
    dims = target.tolist()
    if not view.attr("allowzero", 0):
        dims = [data.shape[i] if n == 0 else n for i, n in enumerate(dims)]
    return data.reshape(dims)


def _expand(_view: NodeView, inputs: Sequence[Array]) -> Array:
    """Expand-8."""
    data, target = inputs
    shape = np.broadcast_shapes(data.shape, tuple(target.tolist()))
    _require_size(prod(shape))
    return np.broadcast_to(data, shape).copy()


def _transpose(view: NodeView, inputs: Sequence[Array]) -> Array:
    """Transpose-1."""
    return np.transpose(inputs[0], view.attr("perm"))


def _range(_view: NodeView, inputs: Sequence[Array]) -> Array:
    """Range-11 of whole numbers, whose count has no rounding."""
    values = [x.item() for x in inputs]
    start, limit, delta = map(int, values)
    if [start, limit, delta] != values or max(abs(start), abs(limit)) > _MOST_WHOLE:
        raise TypeError("fractions")
    steps = range(start, limit, delta)
    _require_size(len(steps))
    return np.array(steps, inputs[0].dtype)


def _require_size(elements: int) -> None:
    """Refuse what has more than MAX_FOLDED elements before memory is allocated for it.

    Raises:
        Unsupported: It has.
    """
    if elements > MAX_FOLDED:
        raise Unsupported(TOO_LARGE)


def _divide(x: Array, y: Array) -> Array:
    """Div-7: of integers truncated, which differs from numpy's where signs differ."""
    if x.dtype.kind == "f":
        return np.divide(x, y)
    if np.any(x < 0) or np.any(y <= 0):
        raise TypeError("signs")
    return np.floor_divide(x, y)


def _elementwise(function: Callable[..., Array]) -> Function:
    """A function of two tensors that broadcast; the result's type is numpy's for equal types."""

    def compute(_view: NodeView, inputs: Sequence[Array]) -> Array:
        x, y = inputs
        if x.dtype != y.dtype:
            raise TypeError(f"{x.dtype} and {y.dtype}")
        return function(x, y)

    return compute


def _fold(function: Callable[..., Array]) -> Function:
    """A function of one or more tensors that broadcast."""

    def compute(_view: NodeView, inputs: Sequence[Array]) -> Array:
        result = inputs[0]
        for x in inputs[1:]:
            result = function(result, x)
        return result

    return compute


_TABLE: dict[str, tuple[int, Function]] = {
    "Add": (7, _elementwise(np.add)),
    "And": (7, _elementwise(np.logical_and)),
    "Cast": (6, _cast),
    "Concat": (4, _concat),
    "ConstantOfShape": (9, _constant_of_shape),
    "Div": (7, _elementwise(_divide)),
    "Equal": (7, _elementwise(np.equal)),
    "Expand": (8, _expand),
    "Gather": (1, _gather),
    "Greater": (7, _elementwise(np.greater)),
    "GreaterOrEqual": (12, _elementwise(np.greater_equal)),
    "Less": (7, _elementwise(np.less)),
    "LessOrEqual": (12, _elementwise(np.less_equal)),
    "Max": (8, _fold(np.maximum)),
    "Min": (8, _fold(np.minimum)),
    "Mul": (7, _elementwise(np.multiply)),
    "Not": (1, lambda _view, inputs: np.logical_not(inputs[0])),
    "Or": (7, _elementwise(np.logical_or)),
    "Range": (11, _range),
    "Reshape": (5, _reshape),
    "Shape": (1, _shape),
    "Slice": (10, _slice),
    "Squeeze": (1, _squeeze),
    "Sub": (7, _elementwise(np.subtract)),
    "Transpose": (1, _transpose),
    "Unsqueeze": (1, _unsqueeze),
    "Where": (9, lambda _view, inputs: np.where(*inputs)),
}
"""For each operator the first version that the function computes, and the function."""
