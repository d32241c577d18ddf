"""Nodes that compute the same behind a Transpose as in front of it, and what they look like there.

`y = f(Transpose(x))` is `Transpose(f'(x))` for every elementwise f, and for others that name axes:
f' has its axes, and constants that go by axis, in the order of x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.transforms.attributes import int_of, integer, ints, ints_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.onnx_model import Attribute, Node

    Array = np.ndarray[Any, np.dtype[Any]]
    Constant = Callable[[str], Array | None]

SOFTMAX_BY_AXIS = 13
"""Opset from which Softmax takes one axis, and not all that follow it."""
PADS_ARE_AN_INPUT = 11
STEPS_BY_AXIS = 13
"""Opset from which QuantizeLinear and DequantizeLinear name the axis of their scales."""
BROADCAST_AS_NUMPY = 7
UNARY = frozenset(
    (
        *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cast", "Ceil", "Celu", "Clip"),
        *("Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
        *("Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal"),
        *("Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus"),
        *("Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu"),
    )
)
"""Elementwise in their first input; any others are scalars."""
BROADCASTING = frozenset(
    (
        *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max"),
        *("Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor"),
    )
)
REDUCING = frozenset(
    f"Reduce{name}"
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum")
) | {"ReduceSumSquare"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A node as it is in front of the Transpose.

    Attributes:
        data: Positions of the inputs that are there in the order of x, constants left out.
        constants: Position of an input to the constant that takes its place.
        attributes: Of the node.
        keeps: Whether its outputs are in the order of x, and not what they are behind it.
    """

    data: Sequence[int]
    constants: Mapping[int, Array] = field(default_factory=dict)
    attributes: Mapping[str, Attribute]
    keeps: bool = True


def form_in_front(node: Node, perm: Sequence[int], opset: int, constant: Constant) -> Form | None:
    """The form of a node in front of the Transpose whose result it reads; None if it has none.

    Args:
        node: Of ai.onnx. The inputs named in `Form.data` must all be results of the permutation.
        perm: As in the Transpose.
        opset: Of the model.
        constant: The elements of a constant; None for what a run computes.
    """
    if node.op_type in UNARY:
        return Form(data=(0,), attributes=node.attributes)
    if node.op_type in BROADCASTING:
        return _broadcasting(node, perm, opset, constant)
    if node.op_type in REDUCING:
        return _reducing(node, perm, constant)
    maker = _BY_AXES.get(node.op_type)
    return None if maker is None else maker(node, perm, opset, constant)


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    return tuple(int(axis) for axis in np.argsort(perm))


def _broadcasting(node: Node, perm: Sequence[int], opset: int, constant: Constant) -> Form | None:
    if opset < BROADCAST_AS_NUMPY:
        return None
    constants = {}
    data = []
    for position, name in enumerate(node.inputs):
        array = constant(name)
        if array is None:
            data.append(position)
        elif array.ndim > len(perm):
            return None
        elif array.size != 1:
            constants[position] = _in_front(array, perm)
    return Form(data=data, constants=constants, attributes=node.attributes)


def _in_front(array: Array, perm: Sequence[int]) -> Array:
    """A constant with the dimensions that broadcasting gives it, in the other order."""
    whole = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    return whole.transpose(inverse(perm))


def _reducing(node: Node, perm: Sequence[int], constant: Constant) -> Form | None:
    axes_input = node.inputs[1] if len(node.inputs) > 1 else ""
    listed = constant(axes_input) if axes_input else None
    axes = ints_of(node, "axes") if listed is None else tuple(int(axis) for axis in listed.flat)
    if not axes or (axes_input and listed is None):
        return None
    places = _places(axes, perm)
    if places is None:
        return None
    keeps = bool(int_of(node, "keepdims", 1))
    numbers = _count_from_first(axes, len(perm))
    rest = [place for axis, place in enumerate(perm) if axis not in numbers]
    if not _stays_fast(numbers, perm) or (not keeps and rest != sorted(rest)):
        return None
    if axes_input:
        constants = {1: np.array(sorted(places), np.int64)}
        return Form(data=(0,), constants=constants, attributes=node.attributes, keeps=keeps)
    attributes = {**node.attributes, **ints("axes", sorted(places))}
    return Form(data=(0,), attributes=attributes, keeps=keeps)


def _count_from_first(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    return tuple(axis + rank if axis < 0 else axis for axis in axes)


def _places(axes: Sequence[int], perm: Sequence[int]) -> list[int] | None:
    numbers = _count_from_first(axes, len(perm))
    if len(set(numbers)) != len(axes) or not all(0 <= axis < len(perm) for axis in numbers):
        return None
    return [perm[axis] for axis in numbers]


def _stays_fast(axes: Sequence[int], perm: Sequence[int]) -> bool:
    """Whether sums along the last axis, whose elements lie side by side, stay along the last.

    A Softmax that was moved off it took OpenVINO longer than the two Transposes around it: CaiT's
    talking heads 47 ms instead of 32.
    """
    last = len(perm) - 1
    return last not in axes or last in [perm[axis] for axis in axes]


def _by_axis(node: Node, perm: Sequence[int], default: int) -> Mapping[str, Attribute] | None:
    """The attributes with `axis` in front of the Transpose."""
    places = _places((int_of(node, "axis", default),), perm)
    return None if places is None else {**node.attributes, **integer("axis", places[0])}


def _concat(node: Node, perm: Sequence[int], _: int, constant: Constant) -> Form | None:
    attributes = _by_axis(node, perm, 1) if "axis" in node.attributes else None
    arrays = {position: constant(name) for position, name in enumerate(node.inputs)}
    constants = {position: array for position, array in arrays.items() if array is not None}
    if attributes is None or any(array.ndim != len(perm) for array in constants.values()):
        return None
    return Form(
        data=[position for position, array in arrays.items() if array is None],
        constants={position: _in_front(array, perm) for position, array in constants.items()},
        attributes=attributes,
    )


def _split(node: Node, perm: Sequence[int], _: int, __: Constant) -> Form | None:
    attributes = _by_axis(node, perm, 0)
    return None if attributes is None else Form(data=(0,), attributes=attributes)


def _softmax(node: Node, perm: Sequence[int], opset: int, _: Constant) -> Form | None:
    attributes = _by_axis(node, perm, -1) if opset >= SOFTMAX_BY_AXIS else None
    if attributes is None:
        return None
    axis = int_of(node, "axis", -1) % len(perm)
    return Form(data=(0,), attributes=attributes) if _stays_fast([axis], perm) else None


def _quantize(node: Node, perm: Sequence[int], opset: int, constant: Constant) -> Form | None:
    """QuantizeLinear and DequantizeLinear, by tensor or by axis."""
    scale = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if scale is None or int_of(node, "block_size", 0):
        return None
    if scale.ndim > 1 or (scale.ndim == 1 and opset < STEPS_BY_AXIS):
        return None
    attributes = node.attributes if scale.ndim == 0 else _by_axis(node, perm, 1)
    return None if attributes is None else Form(data=(0,), attributes=attributes)


def _pad(node: Node, perm: Sequence[int], opset: int, constant: Constant) -> Form | None:
    pads = constant(node.inputs[1]) if len(node.inputs) > 1 else None
    axes_given = len(node.inputs) > 3 and node.inputs[3]
    if opset < PADS_ARE_AN_INPUT or pads is None or axes_given or pads.size != 2 * len(perm):
        return None
    back = inverse(perm)
    begins, ends = pads[: len(perm)], pads[len(perm) :]
    moved = [*(begins[axis] for axis in back), *(ends[axis] for axis in back)]
    return Form(data=(0,), constants={1: np.array(moved, np.int64)}, attributes=node.attributes)


_BY_AXES: Mapping[str, Callable[[Node, Sequence[int], int, Constant], Form | None]] = {
    "Concat": _concat,
    "DequantizeLinear": _quantize,
    "LogSoftmax": _softmax,
    "Pad": _pad,
    "QuantizeLinear": _quantize,
    "Softmax": _softmax,
    "Split": _split,
}
