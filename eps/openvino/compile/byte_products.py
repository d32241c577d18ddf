"""Products of 8-bit integers with constant weights, in the form that OpenVINO's 8-bit kernels take.

Its low precision transformations turn a matrix product of a QuantizeLinear and a DequantizeLinear,
both with constant scales, by dequantised constants into a kernel that sums in int32. The scale and
the zero point of dynamically quantised rows are known in a run alone. Rows without either are
quantised by the constant 1, which changes no whole number, and the zero point's share of each sum
is subtracted from it:

    sum((a - az) * (b - bz)) = sum(a * w) - az * sum(w)    with w = b - bz

Constants of uint8 whose differences with their zero point exceed int8 are moved by 128, and the
rest r = bz - 128 is multiplied with the sums of the rows:

    sum((a - az) * (b - bz)) = sum(a * v) - az * sum(v) - r * (sum(a) - az * K)    with v = b - 128

All are whole numbers, which float32 holds up to 2**24, as in integer_sums.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node

    Array = np.ndarray[Any, np.dtype[Any]]

MIDDLE = 128
"""Of uint8."""
INT8 = range(-128, 128)


@dataclass(frozen=True, slots=True)
class ByteWeights:
    """Constant weights, of int8.

    Attributes:
        name: Of the constant.
        columns: The sums of its columns.
        depth: How many products are summed.
        rest: By column, or one number: how much the zero point is besides 128; None for 0.
    """

    name: str
    columns: Array
    depth: int
    rest: Array | None


class ByteProducts:
    """Nodes and constants that come in place of a graph's products."""

    def __init__(self, definition: GraphDef) -> None:
        """Begin with none of `definition`."""
        self._definition = definition
        self._writer = NodeWriter(definition, "bytes")
        self._rows: dict[str, str] = {}

    def read_weights(self, name: str, point: str) -> ByteWeights | None:
        """Weights [K, N] less their zero point "" or [], [1] or [N]; None if they are computed."""
        constants = self._definition.initializers
        weights, zero = constants.get(name), constants.get(point)
        if weights is None or len(weights.dims) != 2 or (point and zero is None):
            return None
        if weights.data_type not in (DataType.INT8, DataType.UINT8):
            return None
        numbers = to_numpy(weights).astype(np.int16)
        points = np.zeros(1, np.int16) if zero is None else to_numpy(zero).astype(np.int16)
        if not numbers.size:
            return None
        moved, rest = numbers - points, None
        if moved.min() < INT8[0] or moved.max() > INT8[-1]:
            if weights.data_type == DataType.INT8:
                return None
            moved, rest = numbers - MIDDLE, points.reshape(-1) - MIDDLE
        if weights.data_type == DataType.UINT8 or points.any():
            name = self._writer.constant(
                DataType.INT8, weights.dims, moved.astype(np.int8).tobytes()
            )
        return ByteWeights(name, moved.sum(axis=0, dtype=np.int64), len(moved), rest)

    def multiply(self, rows: str, point: str, weights: ByteWeights, output: str) -> list[Node]:
        """Nodes that compute `output`, in float32.

        Args:
            rows: Whole numbers [..., K] in float32, within the range of uint8.
            point: Zero point of the rows in float32, of one element; "" for 0.
            weights: The other operand.
            output: Name of the sums.
        """
        writer = self._writer
        writer.nodes.clear()
        one = writer.number(1)
        if rows not in self._rows:
            zero = writer.constant(DataType.UINT8, (), bytes(1))
            steps = writer.add("QuantizeLinear", rows, one, zero)
            self._rows[rows] = writer.add("DequantizeLinear", steps, one, zero)
        a = self._rows[rows]
        b = writer.add("DequantizeLinear", weights.name, one)
        terms: list[str] = []
        if weights.rest is not None:
            ones = self._floats(np.ones((weights.depth, 1)))
            totals = writer.add("MatMul", rows, ones)
            if point:
                share = writer.add("Mul", point, writer.number(weights.depth))
                totals = writer.add("Sub", totals, share)
            terms.append(writer.add("Mul", totals, self._floats(weights.rest)))
        if point:
            terms.append(writer.add("Mul", point, self._floats(weights.columns)))
        total = writer.add("MatMul", a, b, output="" if terms else output)
        for index, term in enumerate(terms, 1):
            total = writer.add("Sub", total, term, output=output if index == len(terms) else "")
        return list(writer.nodes)

    def add_constants(self, definition: GraphDef) -> GraphDef:
        """`definition` with the constants of all products, and without those that none reads."""
        read = {name for node in definition.nodes for name in node.inputs}
        read |= {info.name for info in definition.outputs}
        constants = {**definition.initializers, **self._writer.initializers}
        kept = {name: tensor for name, tensor in constants.items() if name in read}
        return replace(definition, initializers=kept)

    def _floats(self, numbers: Array) -> str:
        data = numbers.astype(np.float32)
        return self._writer.constant(DataType.FLOAT, data.shape, data.tobytes())
