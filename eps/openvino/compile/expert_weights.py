"""The weights of all experts for one projection, as inputs of products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType
from eps.openvino.support.experts import find_block
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from eps.openvino.compile.node_writer import NodeWriter
    from eps.openvino.support.experts import Places
    from ort_lite.ep import Graph

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertWeights:
    """Weights [experts, N, K] of floats, or [experts, N, K * bits / 8] of bytes.

    Scales and biases of float16 become float32 one expert at a time.

    Attributes:
        scales: [experts, N, blocks]; None for floats.
        zeros: Zero points, packed along blocks; None for the middle of the range.
        bias: [experts, N], or None.
    """

    weights: Array
    bits: int
    scales: Array | None = None
    zeros: Array | None = None
    bias: Array | None = None

    @property
    def depth(self) -> int:
        """Inputs of a column."""
        size = int(self.weights.shape[2])
        return size if self.scales is None else size * 8 // self.bits

    def multiply(self, writer: NodeWriter, rows: str, expert: int) -> str:
        """Rows [M, K] times the weights of an expert, with its bias."""
        result = self._multiply(writer, rows, expert)
        if self.bias is None:
            return result
        return writer.add("Add", result, _constant(writer, self.bias[expert]))

    def _multiply(self, writer: NodeWriter, rows: str, expert: int) -> str:
        if self.scales is None:
            return writer.add("Gemm", rows, _constant(writer, self.weights[expert]), transB=1)
        scales, width = self.scales[expert], self.scales.shape[1]
        packed = self.weights[expert].reshape(*scales.shape, -1)
        inputs = [rows, _constant(writer, packed), _constant(writer, scales)]
        if self.zeros is not None:
            inputs.append(_constant(writer, self.zeros[expert]))
        return writer.add_contrib(
            "MatMulNBits", *inputs, bits=self.bits, N=width, K=self.depth,
            block_size=self.depth // scales.shape[1],
        )  # fmt: skip


def read_weights(graph: Graph, inputs: tuple[str, ...], places: Places, bits: int) -> ExpertWeights:
    """The weights of a projection.

    Args:
        graph: Has the constants.
        inputs: Of the node, "" for those that it lacks.
        places: Of the projection.
        bits: Of a weight of few bits.
    """

    def read(place: int) -> Array | None:
        tensor = graph.constant(inputs[place]) if place and inputs[place] else None
        return None if tensor is None else to_numpy(tensor)

    weights, scales, zeros = (read(at) for at in (places.weights, places.scales, places.zeros))
    assert weights is not None, "only such nodes are accepted"
    if scales is not None and scales.shape[2:] in ((), (1,)):
        depth = weights.shape[2] * 8 // bits
        blocks = depth // find_block(depth)
        zeros = None if zeros is None else _spread_zeros(zeros, scales.shape, bits, blocks)
        scales = np.repeat(scales.reshape(*weights.shape[:2], 1), blocks, axis=2)
    return ExpertWeights(
        weights=weights, bits=bits, scales=scales, zeros=zeros, bias=read(places.bias)
    )


def _spread_zeros(packed: Array, shape: tuple[int, ...], bits: int, blocks: int) -> Array:
    """The zero point of a column for each of its blocks, packed along them."""
    if bits == 8:
        steps = packed
    else:
        pairs = np.stack([packed & 15, packed >> 4], axis=-1)
        steps = pairs.reshape(*packed.shape[:-1], -1)[..., : shape[-1]]
    steps = np.repeat(steps.reshape(*shape[:2], 1), blocks, axis=2)
    if bits == 8:
        return steps
    if blocks % 2:
        steps = np.pad(steps, ((0, 0), (0, 0), (0, 1)))
    return np.asarray(steps[..., 0::2] | steps[..., 1::2] << 4)


def _constant(writer: NodeWriter, array: Array) -> str:
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    kind = DataType.UINT8 if array.dtype == np.uint8 else DataType.FLOAT
    data: Array = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return writer.large_constant(kind, array.shape, data.data)
