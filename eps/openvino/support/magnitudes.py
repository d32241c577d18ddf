"""How large the elements of a graph's values may become, as far as that is known before a run.

OpenVINO's CPU plug-in holds int64 in 32 bits, and every model computes with shapes in int64. The
elements of a value are followed as a bound of their magnitude: from constants, element types and
the sizes of tensors through arithmetic to the casts behind it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctx_formats.onnx_model import DataType, Tensor, TensorType
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from ctx_formats.onnx_model import Node
    from ort_lite.ep import Graph

    Rule = Callable[["Magnitudes", Node], "Magnitude | None"]

_SMALL = float(1 << 16)
"""Factors and addends of sizes in shapes and positions are below it, those of hashes are not."""
_MOST_READ = 1 << 10
"""Elements of a constant of floats that are looked at: scales have one, weights have more."""
_LARGEST_LOG = 104.0
"""Magnitude of the logarithm of the least positive float32, rounded up."""
_LARGEST_EXPONENT = 64


class Magnitude(NamedTuple):
    """A bound of the magnitude of a value's finite elements: `largest + per_size * size`.

    Attributes:
        largest: The part that comes from constants and element types.
        per_size: Factor of a size of a tensor or a product of sizes. Such a product may exceed 32
            bits, but a tensor of such a size cannot exist here.
    """

    largest: float
    per_size: float = 0

    def fits(self) -> bool:
        """Whether every element fits int32, and its negative."""
        if self.per_size:
            return max(self) < _SMALL
        return self.largest < 1 << 31


SIZES = Magnitude(0, 1)
_UNIT = Magnitude(1)
_BY_TYPE: Mapping[int, Magnitude] = {
    DataType.BOOL: _UNIT,
    DataType.INT8: Magnitude(1 << 7),
    DataType.UINT8: Magnitude(1 << 8),
    DataType.INT16: Magnitude(1 << 15),
    DataType.UINT16: Magnitude(1 << 16),
    DataType.INT32: Magnitude(1 << 31),
}
_FLOATS = (DataType.FLOAT, DataType.FLOAT16)


class Magnitudes:
    """Magnitudes of the values of one graph; bodies of its nodes are left out."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Magnitude] | None = None) -> None:
        """Follow the values of `graph` from those of `inputs`, by name, and its constants."""
        self._graph = graph
        self._known: dict[str, Magnitude | None] = dict(inputs or {})
        for index, node in enumerate(graph.nodes):
            rule = _RULES.get(node.op_type) if node.domain == "" else None
            if rule is None or graph.bodies(index):
                continue
            magnitude = rule(self, node)
            if magnitude is not None:
                self._known.update((name, magnitude) for name in node.outputs if name)
                if node.op_type in _WITH_INDICES:
                    self._known[node.outputs[0]] = self.of(node.inputs[0])

    def of(self, name: str) -> Magnitude | None:
        """The magnitude of a value; None if it is not known."""
        known = self._known.get(name)
        if known is None and (constant := self._graph.constant(name)) is not None:
            known = self._known[name] = _constant_magnitude(constant)
        value_type = self._graph.type_of(name)
        kind = value_type.elem_type if isinstance(value_type, TensorType) else 0
        of_type = _BY_TYPE.get(kind)
        if known is None or (of_type is not None and of_type.largest <= known.largest):
            return of_type  # arithmetic wraps there
        return known

    def least(self, name: str) -> float:
        """The least magnitude of a constant divisor; 1 for integers, 0 if it is not known."""
        constant, value_type = self._graph.constant(name), self._graph.type_of(name)
        if constant is None:
            floats = not isinstance(value_type, TensorType) or value_type.elem_type in _FLOATS
            return 0 if floats else 1
        if constant.data_type not in _FLOATS:
            return 1
        values = _read_floats(constant)
        return 0 if values is None else float(values.min(initial=np.inf))


def _constant_magnitude(constant: Tensor) -> Magnitude | None:
    if constant.data_type == DataType.INT64 and isinstance(constant.data, memoryview):
        values = np.frombuffer(constant.data, "<i8")
        # Python's integers: the least int64 has no int64 of its magnitude.
        ends = (int(values.min()), int(values.max())) if values.size else (0,)
        return Magnitude(max(map(abs, ends)))
    floats = _read_floats(constant)
    return None if floats is None else Magnitude(float(floats.max(initial=0)))


def _read_floats(constant: Tensor) -> NDArray[np.float64] | None:
    """Magnitudes of the finite elements of a small constant; None for other constants."""
    if constant.data_type not in _FLOATS or prod(constant.dims) > _MOST_READ:
        return None
    values: NDArray[np.float64] = np.abs(to_numpy(constant).astype(np.float64))
    return values[np.isfinite(values)]


def _largest(magnitudes: Magnitudes, names: Iterable[str]) -> Magnitude | None:
    """Of values that are chosen from."""
    known = _all_known(magnitudes, names)
    if not known:
        return None
    return Magnitude(max(one.largest for one in known), max(one.per_size for one in known))


def _all_known(magnitudes: Magnitudes, names: Iterable[str]) -> list[Magnitude]:
    """The magnitudes of all values; none if one of them is not known."""
    all_of_them = [magnitudes.of(name) for name in names if name]
    known = [magnitude for magnitude in all_of_them if magnitude is not None]
    return known if len(known) == len(all_of_them) else []


def _choose(*positions: int) -> Rule:
    """Results are elements of the inputs at these positions; of all inputs if none is given."""

    def rule(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
        names = [node.inputs[i] for i in positions if i < len(node.inputs)] or node.inputs
        return _largest(magnitudes, names)

    return rule


def _constantly(magnitude: Magnitude) -> Rule:
    return lambda _magnitudes, _node: magnitude


def _sum(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    terms = _all_known(magnitudes, node.inputs)
    if not terms:
        return None
    return Magnitude(sum(term.largest for term in terms), sum(term.per_size for term in terms))


def _multiply(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    factors = _all_known(magnitudes, node.inputs)
    if not factors:
        return None
    a, b = factors
    sizes = a.per_size * b.largest + b.per_size * a.largest + a.per_size * b.per_size
    return Magnitude(a.largest * b.largest, sizes)


def _divide(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    dividend, least = magnitudes.of(node.inputs[0]), magnitudes.least(node.inputs[1])
    if dividend is None or not 0 < least < np.inf:
        return None
    return Magnitude(dividend.largest / least, dividend.per_size / least)


def _round(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    known = magnitudes.of(node.inputs[0])
    return known and known._replace(largest=known.largest + 1)


def _power(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    base, exponent = magnitudes.of(node.inputs[0]), magnitudes.of(node.inputs[1])
    if base is None or exponent is None or base.per_size or exponent.per_size:
        return None
    if exponent.largest > _LARGEST_EXPONENT:
        return None
    return Magnitude(max(base.largest, 1.0) ** exponent.largest)


def _accumulate(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    """As many terms as a tensor has elements at most."""
    term = magnitudes.of(node.inputs[0])
    return term and Magnitude(0, max(term.largest + term.per_size, 1))


def _accumulate_squares(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    term = magnitudes.of(node.inputs[0])
    return term and Magnitude(0, max((term.largest + term.per_size) ** 2, 1))


def _product_of_sizes(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    factor = magnitudes.of(node.inputs[0])
    return SIZES if factor is not None and factor.per_size and factor.fits() else None


def _scatter(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    reduction = node.attributes.get("reduction")
    kind = reduction.value if reduction is not None else b"none"
    data, updates = magnitudes.of(node.inputs[0]), magnitudes.of(node.inputs[2])
    if data is None or updates is None or kind == b"mul":
        return None
    if kind != b"add":
        return _largest(magnitudes, (node.inputs[0], node.inputs[2]))
    return Magnitude(data.largest, data.per_size + updates.largest + updates.per_size)


def _fill(_magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    value = node.attributes.get("value")
    if value is None:
        return Magnitude(0)
    return _constant_magnitude(value.value) if isinstance(value.value, Tensor) else None


def _clip(magnitudes: Magnitudes, node: Node) -> Magnitude | None:
    if node.attributes:
        return None
    lower_and_upper = node.inputs[1:] if len(node.inputs) == 3 and all(node.inputs) else ()
    return _largest(magnitudes, lower_and_upper or node.inputs)


_MOVING = (
    *("Cast", "CastLike", "Compress", "Expand", "Flatten", "Gather", "GatherElements", "GatherND"),
    *("Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    *("Abs", "Neg", "Relu"),
)
_WITH_INDICES = ("MaxPool", "TopK")
"""Operators whose first output has elements of their input, and whose second numbers them."""
_COUNTING = ("ArgMax", "ArgMin", "NonZero", "Shape", "Size", *_WITH_INDICES)
"""Operators whose int64 results count or number elements of a tensor."""
_UNITS = ("Sigmoid", "Tanh", "Softmax", "Sin", "Cos", "Erf", "HardSigmoid", "Sign")

_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_MOVING, _choose(0)),
    **dict.fromkeys(("Concat", "Max", "Min"), _choose()),
    **dict.fromkeys(_COUNTING, _constantly(SIZES)),
    **dict.fromkeys(_UNITS, _constantly(_UNIT)),
    **dict.fromkeys(("Add", "Sub", "Sum"), _sum),
    **dict.fromkeys(("Ceil", "Floor", "Round", "Sqrt"), _round),
    **dict.fromkeys(("CumSum", "ReduceSum", "ReduceL1"), _accumulate),
    **dict.fromkeys(("ScatterElements", "ScatterND"), _scatter),
    "Clip": _clip,
    "ConstantOfShape": _fill,
    "Div": _divide,
    "Log": _constantly(Magnitude(_LARGEST_LOG)),
    "Mod": _choose(1),
    "Mul": _multiply,
    "Pad": _choose(0, 2),
    "Pow": _power,
    "Range": _choose(0, 1),
    "ReduceProd": _product_of_sizes,
    "ReduceSumSquare": _accumulate_squares,
    "Where": _choose(1, 2),
}
