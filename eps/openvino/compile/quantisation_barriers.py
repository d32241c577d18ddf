"""Keeps OpenVINO from moving or joining what stands next to a quantisation, where it errs.

Seen with the CPU plug-in of OpenVINO 2026.4.1, of which each is wrong by up to the whole range:

- A factor or summand by channel before a QuantizeLinear is joined with it. In free shapes, the
  first channel's then counts for all channels, and none does where others read the value without
  it, too; a negative factor turns the clipping round.
- A Clip between the two is lost. What the convolution's scales by filter become is such a factor.
  Where a convolution or matrix product is right before them, the kernel of that computes them.
- An AveragePool of what was quantised is rounded to those steps where a sum reads it, or where it
  is quantised behind an activation; nothing, or operators such as Relu and Transpose, are between
  them. Padding that it counts is 0 before the zero point is subtracted, not after it.
- ReduceMax, ReduceMin and GlobalMaxPool that are quantised, also behind an activation, compare with
  what the bytes of their result were before, and give the largest or smallest step of few.
- A MaxPool of a product goes before the scales by column, which it takes the largest of.
- A sum of what a Conv computed and a QuantizeLinear rounded is part of the convolution's kernel,
  which does not round between the two where the sum is quantised. Clips and arithmetic with
  constants may stand between.
- A Pad of one batch to more is filled with 0 before the zero point is subtracted, not after it.
- A ConvTranspose by quantised weights of uint8, or with zero points, gives other numbers, and so
  does one whose pads take away a whole window or more.
- A Concat, a QuantizeLinear with a zero point, then Relu, Mul by a scalar or nothing at all, and
  another QuantizeLinear end the process with SIGSEGV in the transformation MoveFakeQuantize. If
  int8 inputs of the model are joined, numbers are wrong.

A maximum with the lowest float changes no number, and nothing is moved past it. Behind a Concat its
inputs are still joined as integers, and the maximum is part of the next kernel. Behind a ReduceMax
it keeps the quantisation out of that kernel.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.compile.normalisation_barriers import LOWEST as INFINITE
from eps.openvino.compile.normalisation_barriers import element_type
from eps.openvino.compile.walks import walk_back
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
SUMS = ("Conv", "ConvTranspose", "MatMul", "Gemm", "QLinearConv", "QLinearMatMul")
"""Operators whose kernels compute arithmetic that follows."""
MATRICES = ("MatMul", "Gemm")
RECURRENT = ("LSTM", "GRU", "RNN", "Einsum")
ARITHMETIC = ("Add", "BatchNormalization", "Div", "Mul", "Sub")
TERMS = ("Add", "Sub", "Sum")
CLIPS = ("Clip", "Max", "Min")
POOLING = ("Pool", "Reduce", "Resize", "Softmax")
"""Parts of names of operators that end the search for a Concat, since the fault ends at them."""
JOIN = "Concat"
EXTREMES = ("ReduceMax", "ReduceMin", "GlobalMaxPool")
POOL, PAD = "AveragePool", "Pad"
LOWEST = {
    DataType.FLOAT: struct.pack("<f", -3.4028234663852886e38),
    DataType.FLOAT16: struct.pack("<e", -65504.0),
}
"""By element type; infinity below it is quantised to the same step."""


def add_barriers(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph with a Max before each such node, or behind a Concat; itself without any.

    Before a sum it stands on each side that a convolution computes.

    Args:
        definition: To be rewritten.
        graph: The same, or before other nodes of it were rewritten; knows the element types.
    """
    chains = _Chains(definition)
    fragile = chains.find_fragile() | chains.find_pools() | chains.find_pads()
    fragile |= chains.find_shifted_weights() | chains.find_pooled_columns()
    places = chains.find_rounded_terms() | dict.fromkeys(fragile, (0,))
    joins = chains.find_joins() | chains.find_extremes()
    if not places and not joins:
        return definition
    writer = NodeWriter(definition, "barrier")
    kept: dict[str, str] = {}
    for node in definition.nodes:
        if id(node) not in places and id(node) not in joins:
            writer.nodes.append(node)
            continue
        is_join = id(node) in joins
        first = 0 if is_join else places[id(node)][0]
        name = node.outputs[0] if is_join else node.inputs[first]  # which may be a constant
        element = element_type(graph, name)
        data = LOWEST.get(element)
        if data is None:
            writer.nodes.append(node)
            continue
        if is_join:
            made = writer.add(node.op_type, *node.inputs, output="", **node.attributes)
            least = writer.constant(element, (), INFINITE[element])
            writer.add("Max", least, made, output=node.outputs[0])  # the second may be NaN
            continue
        lowest = writer.constant(element, (), data)
        inputs = list(node.inputs)
        for place in places[id(node)]:
            name = inputs[place]
            if name not in kept:
                kept[name] = writer.add("Max", name, lowest)
            inputs[place] = kept[name]
        writer.nodes.append(replace(node, inputs=tuple(inputs)))
    return writer.finish(definition)


def _is_one_of(*operators: str) -> Callable[[Node], bool]:
    return lambda node: node.op_type in operators


def _counts_padding(pool: Node) -> bool:
    counts, pads = pool.attributes.get("count_include_pad"), pool.attributes.get("pads")
    sizes = pads.value if pads is not None and isinstance(pads.value, tuple) else ()
    return counts is not None and bool(counts.value) and any(sizes)


def _takes_windows_away(node: Node, window: Sequence[int]) -> bool:
    """Whether a pad of a ConvTranspose may be as wide as its window along that axis."""
    if "output_shape" in node.attributes:
        return True
    pads = node.attributes.get("pads")
    if pads is None or not isinstance(pads.value, tuple):
        return False
    sides = zip(pads.value, (*window, *window), strict=False)
    return any(isinstance(pad, int) and pad >= size for pad, size in sides)


class _Chains:
    """What stands before the QuantizeLinear nodes of a graph."""

    def __init__(self, definition: GraphDef) -> None:
        self._nodes = definition.nodes
        self._constants = definition.initializers
        self._makers = {name: node for node in definition.nodes for name in node.outputs if name}
        self._vectors = self._find_vectors()
        self._readers: dict[str, int] = {}
        for name in (n for node in definition.nodes for n in node.inputs):
            self._readers[name] = self._readers.get(name, 0) + 1
        for info in definition.outputs:
            self._readers[info.name] = self._readers.get(info.name, 0) + 1

    def find_fragile(self) -> set[int]:
        """The `id` of each QuantizeLinear that needs something before it."""
        quantized = [n for n in self._nodes if n.op_type == QUANTIZE and not n.domain]
        return {id(node) for node in quantized if self._loses_constant(node)}

    def find_joins(self) -> set[int]:
        """The `id` of each Concat of what is quantised, and is so again before it is summed."""
        joins = set[int]()
        for node in self._nodes:
            if node.op_type != QUANTIZE or node.domain:
                continue
            before = self._find_before(node.inputs[0])
            if any(other.op_type in (QUANTIZE, DEQUANTIZE) for other in before):
                joins |= {id(other) for other in before if other.op_type == JOIN}
        return joins

    def find_extremes(self) -> set[int]:
        """The `id` of each maximum or minimum of all along some axes."""
        return {id(node) for node in self._nodes if node.op_type in EXTREMES and not node.domain}

    def find_pools(self) -> set[int]:
        """The `id` of each AveragePool of what was quantised and that would be rounded."""
        pools = {
            id(node): node
            for node in self._nodes
            if node.op_type == POOL and not node.domain and self._was_quantised(node)
        }
        if not pools:
            return set()
        fragile = {key for key, node in pools.items() if _counts_padding(node)}
        for node in self._nodes:
            names = self._find_rounding(node)
            before = self._walk_back(names, _is_one_of(*SUMS, QUANTIZE, DEQUANTIZE))
            fragile |= pools.keys() & {id(each) for each in before}
        return fragile

    def _find_rounding(self, node: Node) -> Sequence[str]:
        """Values that a node reads and before which a pool of integers would be rounded.

        A pool that is quantised at once is not: its kernel does both.
        """
        if node.op_type in (*SUMS, "MatMulNBits"):
            return node.inputs
        if node.op_type == QUANTIZE:
            maker = self._makers.get(node.inputs[0])
            return node.inputs[:1] if maker is not None and maker.op_type != POOL else ()
        return ()

    def _was_quantised(self, node: Node) -> bool:
        """Whether its first input is computed from quantised values without a sum."""
        before = self._walk_back(node.inputs[:1], _is_one_of(*SUMS, QUANTIZE))
        return any(each.op_type == DEQUANTIZE for each in before)

    def find_rounded_terms(self) -> dict[int, tuple[int, ...]]:
        """Of each sum by `id`, the inputs that a Conv computed and a QuantizeLinear rounded."""
        sums = [node for node in self._nodes if node.op_type in TERMS and not node.domain]
        terms = {
            id(node): tuple(place for place, name in enumerate(node.inputs) if self._is_term(name))
            for node in sums
        }
        return {key: places for key, places in terms.items() if places}

    def _is_term(self, name: str) -> bool:
        """Whether a Conv computes a value that a QuantizeLinear rounds, in one kernel."""
        rounded = False
        maker = self._maker_of(name)
        while maker is not None and not maker.domain and maker.op_type != "Conv":
            if maker.op_type in (QUANTIZE, DEQUANTIZE):
                rounded = rounded or maker.op_type == QUANTIZE
                computed = [maker.inputs[0]]
            elif maker.op_type in (*ARITHMETIC, *CLIPS):
                computed = [name for name in maker.inputs if name and name not in self._vectors]
            else:
                return False
            if len(computed) != 1:
                return False
            maker = self._maker_of(computed[0])
        return rounded and maker is not None and not maker.domain

    def find_pads(self) -> set[int]:
        """The `id` of each Pad along the first axis of what was quantised."""
        return {
            id(node)
            for node in self._nodes
            if node.op_type == PAD and self._may_pad_first(node) and self._was_quantised(node)
        }

    def _may_pad_first(self, node: Node) -> bool:
        """Whether a Pad adds to the first axis; that of sizes or axes that are computed may."""
        pads = node.attributes.get("pads")  # of Pad-2
        if pads is not None and isinstance(pads.value, tuple):
            sizes = np.array(pads.value)
        else:
            constant = self._constants.get(node.inputs[1])
            if constant is None or len(node.inputs) > 3:
                return True
            sizes = to_numpy(constant)
        return bool(sizes.reshape(2, -1)[:, :1].any())

    def find_pooled_columns(self) -> set[int]:
        """The `id` of each MaxPool of a matrix product."""
        pools = {id(node): node for node in self._nodes if node.op_type == "MaxPool"}
        makers = {key: self._makers.get(node.inputs[0]) for key, node in pools.items()}
        return {key for key, maker in makers.items() if maker and maker.op_type in MATRICES}

    def find_shifted_weights(self) -> set[int]:
        """The `id` of each ConvTranspose by quantised weights that are not int8 around 0.

        And of each that is by quantised weights and whose pads are as wide as a window.
        """
        shifted = set[int]()
        for node in self._nodes:
            if node.op_type != "ConvTranspose":
                continue
            maker = self._makers.get(node.inputs[1])
            if maker is None or maker.op_type != DEQUANTIZE:
                continue
            weights = self._constants.get(maker.inputs[0])
            zero = self._constants.get(maker.inputs[2]) if len(maker.inputs) > 2 else None
            has_zero = zero is not None and bool(to_numpy(zero).any())
            is_other = has_zero or weights is None or weights.data_type != DataType.INT8
            if is_other or (weights and _takes_windows_away(node, weights.dims[2:])):
                shifted.add(id(node))
        return shifted

    def _walk_back(self, names: Sequence[str], stops: Callable[[Node], bool]) -> list[Node]:
        return walk_back(self._makers, names, stops)

    def _find_before(self, name: str) -> list[Node]:
        """Nodes that a value is computed from, without sums and pools, and those behind them."""
        parts = (*SUMS, *RECURRENT, *POOLING)
        return self._walk_back((name,), lambda node: any(part in node.op_type for part in parts))

    def _loses_constant(self, node: Node) -> bool:
        """Whether it follows a Clip or arithmetic with vectors that no sum computes, or a sum.

        The latter where others read the sum, too: its scale is such a factor.
        """
        maker = self._maker_of(node.inputs[0])
        if maker is None:
            return False
        if maker.op_type in SUMS and self._readers[maker.outputs[0]] > 1:
            return True
        clips = maker.op_type in CLIPS
        while maker is not None and maker.op_type in CLIPS:
            maker = self._maker_of(maker.inputs[0])
        has_vector = False
        while maker is not None and maker.op_type in ARITHMETIC:
            computed = [name for name in maker.inputs if name not in self._vectors]
            if len(computed) != 1:
                return clips and has_vector
            has_vector = has_vector or any(self._vectors.get(name) for name in maker.inputs)
            if self._readers[computed[0]] > 1:  # so no kernel of a sum computes this node
                return clips or has_vector
            maker = self._maker_of(computed[0])
        is_sum = maker is not None and maker.op_type in SUMS
        return not is_sum and (clips or has_vector)

    def _maker_of(self, name: str) -> Node | None:
        """The node that computes a value; a Cast only gives it another type."""
        maker = self._makers.get(name)
        while maker is not None and maker.op_type == "Cast":
            maker = self._makers.get(maker.inputs[0])
        return maker

    def _find_vectors(self) -> dict[str, bool]:
        """Names of constants and of what is made of them, and whether each may be a vector."""
        vectors = {
            name: any(size != 1 for size in tensor.dims) for name, tensor in self._constants.items()
        }
        for node in self._nodes:
            read = [name for name in node.inputs if name]
            if read and all(name in vectors for name in read):
                is_step = node.op_type in (QUANTIZE, DEQUANTIZE)
                has_many = vectors[read[0]] if is_step else True
                vectors |= dict.fromkeys(filter(None, node.outputs), has_many)
        return vectors
