"""com.microsoft MoE and QMoE in operators that OpenVINO has: a product for each expert.

Pairs of a token and one of its experts are sorted by expert, each expert multiplies its rows, and
the results go back to the tokens. A product without rows costs a few microseconds, so that the
weights of the chosen experts alone are read. They stay as they are: those of few bits are weights
of MatMulNBits. docs/adr/0062-experts-on-the-device.md compares the other forms.
"""

from __future__ import annotations

from math import inf, isinf, pi, sqrt
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.onnx_model import AttributeType, DataType, TensorType
from eps.openvino.compile.expert_weights import read_weights
from eps.openvino.compile.node_writer import NodeWriter
from eps.openvino.support.experts import DOMAIN, PROJECTIONS, SHARES

if TYPE_CHECKING:
    import openvino

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

PREFIX = "experts"
TO_THE_END = (1 << 31) - 1
_CUBE = 0.044715
_TOKENS, _SCORES = 0, 1


def write_out_experts(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph without MoE and QMoE; `graph` is the same with its types."""
    writer = NodeWriter(definition, PREFIX)
    weights: set[str] = set()
    for node in definition.nodes:
        if node.domain == DOMAIN and node.op_type in PROJECTIONS:
            _Experts(node, graph, writer).write()
            weights.update(node.inputs)
        else:
            writer.nodes.append(node)
    return _drop_unread(writer.finish(definition), weights)


def keep_order(model: openvino.Model) -> None:
    """Have OpenVINO take the first of equal scores, in place; ONNX's TopK becomes any of them."""
    for node in model.get_ops():
        if node.get_type_name() == "TopK" and any(
            name.startswith(PREFIX) for name in node.output(1).get_names()
        ):
            node.set_attribute("stable", True)  # noqa: FBT003 - of the extension


def _drop_unread(definition: GraphDef, names: set[str]) -> GraphDef:
    """Without those constants among `names` that no node reads: they would be written to a file."""
    bodies = (AttributeType.GRAPH, AttributeType.GRAPHS)
    if any(a.type in bodies for node in definition.nodes for a in node.attributes.values()):
        return definition
    read = {name for node in definition.nodes for name in node.inputs}
    read |= {info.name for info in definition.outputs}
    kept = {
        name: tensor
        for name, tensor in definition.initializers.items()
        if name in read or name not in names
    }
    return replace(definition, initializers=kept)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of tokens and experts, sorted by expert.

    Attributes:
        counts: Pairs of each expert, int64 [experts].
        rows: Token of each pair, int64 [tokens * top].
        places: Of the pairs of the first token, those of the second one, and so on.
    """

    counts: str
    rows: str
    places: str


class _Experts:
    """The nodes of one MoE or QMoE."""

    def __init__(self, node: Node, graph: Graph, writer: NodeWriter) -> None:
        self._node, self._writer = node, writer
        self._inputs = (*node.inputs, *("",) * (SHARES + 1 - len(node.inputs)))
        tokens = graph.type_of(node.inputs[_TOKENS])
        self._half = isinstance(tokens, TensorType) and tokens.elem_type == DataType.FLOAT16
        self._top = self._integer("k", 1)
        shared = self._integer("expert_weight_bits", 4)
        self._weights = [
            read_weights(
                graph, self._inputs, places, self._integer(f"fc{n}_expert_weight_bits", shared)
            )
            for n, places in enumerate(PROJECTIONS[node.op_type], 1)
        ]
        self._count, self._hidden, _ = self._weights[1].weights.shape

    def _integer(self, name: str, default: int) -> int:
        attribute = self._node.attributes.get(name)
        return attribute.value if attribute and isinstance(attribute.value, int) else default

    def _number(self, name: str, default: float) -> float:
        attribute = self._node.attributes.get(name)
        return attribute.value if attribute and isinstance(attribute.value, float) else default

    def write(self) -> None:
        """Add the nodes; the output has the name of the node's."""
        w = self._writer
        experts, shares = self._choose()
        pairs = self._sort(experts)
        whole = self._widen(self._inputs[_TOKENS])
        tokens = w.add("Reshape", whole, w.integers(-1, self._hidden))
        gated = self._activate(self._project(w.add("Gather", tokens, pairs.rows), pairs, 0))
        results = w.add("Gather", self._project(gated, pairs, 1), pairs.places)
        parts = w.add("Reshape", results, w.integers(-1, self._top, self._hidden))
        weighted = w.add("Mul", parts, w.add("Unsqueeze", shares, w.integers(2)))
        mixed = w.add("ReduceSum", weighted, w.integers(1), keepdims=0)
        shape, output = w.add("Shape", self._inputs[_TOKENS]), self._node.outputs[0]
        if self._half:
            mixed = w.add("Cast", mixed, to=DataType.FLOAT16)
        w.add("Reshape", mixed, shape, output=output)

    def _widen(self, x: str) -> str:
        """A float16 value in float32, in which everything is computed."""
        return self._writer.add("Cast", x, to=DataType.FLOAT) if self._half else x

    def _choose(self) -> tuple[str, str]:
        """Experts [tokens, top] of each token and their shares; of equal scores the last expert."""
        w, last = self._writer, self._count - 1
        scores = self._widen(self._inputs[_SCORES])
        turned = w.add("Gather", scores, w.integers(*range(last, -1, -1)), axis=1)
        best, places = w.add_many("TopK", turned, w.integers(self._top), count=2, axis=1)
        experts = w.add("Sub", w.integers(last), places)
        if self._node.op_type == "QMoE" and not self._inputs[SHARES]:
            shares = w.add("Softmax", best, axis=1)  # whether they are to be normalised or not
        else:
            mixing = self._inputs[SHARES]
            of_all = self._widen(mixing) if mixing else w.add("Softmax", scores, axis=1)
            shares = w.add("GatherElements", of_all, experts, axis=1)
            if self._integer("normalize_routing_weights", 0):
                shares = w.add("Div", shares, w.add("ReduceSum", shares, w.integers(1)))
        zero = w.number(0.0)  # onnxruntime's CPU leaves out experts whose share is not above it
        return experts, w.add("Where", w.add("Less", zero, shares), shares, zero)

    def _sort(self, experts: str) -> _Pairs:
        """A counting sort of the pairs by expert."""
        w = self._writer
        flat = w.add("Reshape", experts, w.integers(-1))
        column, axis = w.add("Unsqueeze", flat, w.integers(1)), w.integers(0, scalar=True)
        is_expert = w.add("Equal", column, w.integers(*range(self._count)))
        hits = w.add("Cast", is_expert, to=DataType.INT64)
        counts = w.add("ReduceSum", hits, w.integers(0), keepdims=0)
        first = w.add("CumSum", counts, axis, exclusive=1)
        ranks = w.add("CumSum", hits, axis, exclusive=1)
        rank = w.add("Reshape", w.add("GatherElements", ranks, column, axis=1), w.integers(-1))
        places = w.add("Add", rank, w.add("Gather", first, flat))
        size = w.add("Squeeze", w.add("Shape", flat), w.integers(0))
        numbers = w.add("Range", axis, size, w.integers(1, scalar=True))
        order = w.add("ScatterElements", numbers, places, numbers, axis=0)
        return _Pairs(counts, w.add("Div", order, w.integers(self._top)), places)

    def _project(self, rows: str, pairs: _Pairs, number: int) -> str:
        """The rows of each expert times its weights, one expert after another."""
        w, weights = self._writer, self._weights[number]
        parts = w.add_many("Split", rows, pairs.counts, count=self._count, axis=0)
        results = [weights.multiply(w, part, expert) for expert, part in enumerate(parts)]
        return w.add("Concat", *results, axis=0)

    def _activate(self, x: str) -> str:
        """The activation of [rows, columns]; a gate halves the columns."""
        w, kind = self._writer, self._activation
        if kind == "swiglu":
            return self._gate(x)
        if kind == "silu":
            return w.add("Mul", x, w.add("Sigmoid", x))
        if kind == "relu":
            return w.add("Relu", x)
        if kind == "identity":
            return x
        cube = w.add("Mul", w.add("Mul", x, x), x)  # Gelu by tanh, as onnxruntime's CPU has it
        inner = w.add("Add", x, w.add("Mul", cube, w.number(_CUBE)))
        tanh = w.add("Tanh", w.add("Mul", inner, w.number(sqrt(2 / pi))))
        half = w.add("Mul", x, w.number(0.5))
        return w.add("Mul", half, w.add("Add", tanh, w.number(1.0)))

    def _gate(self, x: str) -> str:
        w = self._writer
        axis, end, half = w.integers(1), w.integers(TO_THE_END), self._weights[1].depth
        if self._integer("swiglu_fusion", 0) == 1:  # gates and the others are neighbours
            step = w.integers(2)
            gate, linear = (w.add("Slice", x, w.integers(n), end, axis, step) for n in (0, 1))
        else:
            gate = w.add("Slice", x, w.integers(0), w.integers(half), axis)
            linear = w.add("Slice", x, w.integers(half), end, axis)
        limit = self._number("swiglu_limit", inf)
        if not isinf(limit):
            gate = w.add("Min", gate, w.number(limit))
            linear = w.add("Clip", linear, w.number(-limit), w.number(limit))
        scaled = w.add("Mul", gate, w.number(self._number("activation_alpha", 1.0)))
        opened = w.add("Mul", gate, w.add("Sigmoid", scaled))
        beta = w.number(self._number("activation_beta", 0.0))
        return w.add("Mul", opened, w.add("Add", linear, beta))

    @property
    def _activation(self) -> str:
        attribute = self._node.attributes.get("activation_type")
        value = attribute.value if attribute else None
        return bytes(value).decode() if isinstance(value, bytes | memoryview) else "relu"
