"""com.microsoft GroupQueryAttention in operators of ai.onnx, which OpenVINO computes right.

OpenVINO's own conversion gives wrong numbers without a past, and fails at run time with one.
Written out, new keys and values are scattered into the cache of each sequence, and a mask leaves
out what is not valid or not to be seen. One product serves all queries that share a head of keys.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, TensorType
from eps.openvino.compile.node_writer import NodeWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

OPERATOR = "GroupQueryAttention"
DOMAIN = "com.microsoft"
LOWEST = -3.4028234663852886e38
TO_THE_END = (1 << 31) - 1

_QUERY, _KEY, _VALUE, _PAST_KEY, _PAST_VALUE, _LENGTHS, _TOTAL, _COS, _SIN = range(9)
PAST = (_PAST_KEY, _PAST_VALUE)
"""Positions of the inputs that hold earlier keys and values."""


def find_head_size(shape: Sequence[object] | None) -> int:
    """The last dimension of a cache [B, G, T, H]; 0 where it is not known."""
    size = shape[3] if shape is not None and len(shape) == 4 else None
    return size if isinstance(size, int) else 0


def write_out_attention(definition: GraphDef, graph: Graph) -> GraphDef:
    """A graph without GroupQueryAttention; `graph` is the same with its types."""
    writer = NodeWriter(definition, "attention")
    for node in definition.nodes:
        if (node.domain, node.op_type) == (DOMAIN, OPERATOR):
            _Attention(node, graph, writer).write()
        else:
            writer.nodes.append(node)
    return writer.finish(definition)


class _Attention:
    """The nodes of one GroupQueryAttention."""

    def __init__(self, node: Node, graph: Graph, writer: NodeWriter) -> None:
        self._node, self._graph, self._writer = node, graph, writer
        self._inputs = (*node.inputs, *("",) * (9 - len(node.inputs)))
        query = graph.type_of(self._inputs[_QUERY])
        self._half = isinstance(query, TensorType) and query.elem_type == DataType.FLOAT16
        self._heads = self._attribute("num_heads", 1)
        self._groups = self._attribute("kv_num_heads", 1)
        past = graph.type_of(self._inputs[_PAST_KEY])
        self._size = find_head_size(past.shape if isinstance(past, TensorType) else None)

    def _attribute(self, name: str, default: int) -> int:
        attribute = self._node.attributes.get(name)
        return attribute.value if attribute and isinstance(attribute.value, int) else default

    def _float(self, name: str) -> float:
        attribute = self._node.attributes.get(name)
        return attribute.value if attribute and isinstance(attribute.value, float) else 0.0

    def write(self) -> None:
        """Add the nodes; the outputs have the names of the node's."""
        w = self._writer
        q, k, v = self._split_heads()
        own = self._write_positions(q)
        if self._attribute("do_rotary", 0):
            angles = [
                w.add(
                    "Unsqueeze",
                    self._widen(w.add("Gather", self._inputs[i], own, axis=0)),
                    w.integers(1),
                )
                for i in (_COS, _SIN)
            ]
            q, k = (self._rotate(x, angles) for x in (q, k))
        outputs = (*self._node.outputs, "", "")
        places = w.add("Unsqueeze", own, w.integers(1, 3))
        keys = self._append(_PAST_KEY, k, places, outputs[1])
        values = self._append(_PAST_VALUE, v, places, outputs[2])
        self._attend(q, keys, values, places, outputs[0])

    def _split_heads(self) -> list[str]:
        """Queries, keys and values [B, heads, S, H]."""
        w, counts = self._writer, (self._heads, self._groups, self._groups)
        if self._inputs[_KEY]:
            parts = [
                w.add("Reshape", self._widen(name), w.integers(0, 0, count, self._size))
                for name, count in zip(self._inputs, counts, strict=False)
            ]
        else:
            shape = w.integers(0, 0, sum(counts), self._size)
            whole = w.add("Reshape", self._widen(self._inputs[_QUERY]), shape)
            ends = (counts[0], counts[0] + counts[1], sum(counts))
            parts = [
                self._slice(whole, 2, begin, end)
                for begin, end in zip((0, *ends), ends, strict=False)
            ]
        return [self._transpose(part) for part in parts]

    def _widen(self, x: str) -> str:
        """A float16 value in float32, in which scores and rotations are computed."""
        return self._writer.add("Cast", x, to=DataType.FLOAT) if self._half else x

    def _transpose(self, x: str) -> str:
        """The middle axes of four swapped."""
        return self._writer.add("Transpose", x, perm=(0, 2, 1, 3))

    def _slice(self, x: str, axis: int, begin: int, end: int) -> str:
        w = self._writer
        return w.add("Slice", x, w.integers(begin), w.integers(end), w.integers(axis))

    def _size_of(self, x: str, axis: int) -> str:
        """The size of an axis, int64 [1]."""
        return self._slice(self._writer.add("Shape", x), 0, axis, axis + 1)

    def _write_positions(self, q: str) -> str:
        """Places of the new positions in the cache, int64 [B, S]: from the first free one on."""
        w = self._writer
        new = self._size_of(q, 2)
        last = w.add("Cast", self._inputs[_LENGTHS], to=DataType.INT64)
        last = w.add("Reshape", last, w.integers(-1, 1))
        before = w.add("Sub", w.add("Add", last, w.integers(1)), new)
        before = w.add("Max", before, w.integers(0))
        count = w.add("Squeeze", new, w.integers(0))
        steps = w.add("Range", w.integers(0, scalar=True), count, w.integers(1, scalar=True))
        return w.add("Add", before, steps)

    def _rotate(self, x: str, angles: Sequence[str]) -> str:
        """Pairs of columns, half a table's width apart, turned."""
        w, table = self._writer, self._graph.type_of(self._inputs[_COS])
        constant = self._graph.constant(self._inputs[_COS])
        dims = constant.dims if constant is not None else getattr(table, "shape", (0, 0))
        half = int(dims[1])
        cos, sin = angles
        a, b = self._slice(x, 3, 0, half), self._slice(x, 3, half, 2 * half)
        # Not as a difference: OpenVINO fuses that to an operator which an exported blob of
        # 2026.4.1 restores with other settings.
        first = w.add("Add", w.add("Mul", a, cos), w.add("Mul", b, w.add("Neg", sin)))
        second = w.add("Add", w.add("Mul", a, sin), w.add("Mul", b, cos))
        rest = [self._slice(x, 3, 2 * half, TO_THE_END)] if 2 * half < self._size else []
        return w.add("Concat", first, second, *rest, axis=3)

    def _append(self, past: int, new: str, places: str, output: str) -> str:
        """The cache with the new positions in their places, in float32."""
        w, cache = self._writer, self._inputs[past]
        total = w.add("Cast", self._inputs[_TOTAL], to=DataType.INT64)
        missing = w.add("Sub", w.add("Reshape", total, w.integers(1)), self._size_of(cache, 2))
        missing = w.add("Max", missing, w.integers(0))
        batch, sizes = self._size_of(cache, 0), w.integers(self._size)
        groups = w.integers(self._groups)
        shape = w.add("Concat", batch, groups, missing, sizes, axis=0)
        zero = w.constant(DataType.FLOAT16, (), bytes(2)) if self._half else w.number(0.0)
        whole = w.add("Concat", cache, w.add("Expand", zero, shape), axis=2)
        index = w.add("Expand", places, w.add("Shape", new))
        new = w.add("Cast", new, to=DataType.FLOAT16) if self._half else new
        return self._widen(w.add("ScatterElements", whole, index, new, output=output, axis=2))

    def _attend(self, q: str, keys: str, values: str, places: str, output: str) -> None:
        w = self._writer
        rows = w.integers(0, self._groups, -1, self._size)
        scale = self._float("scale") or 1 / sqrt(self._size)
        turned = w.add("Transpose", keys, perm=(0, 1, 3, 2))
        scaled = w.add("Mul", w.add("Reshape", q, rows), w.number(scale))
        product = w.add("MatMul", scaled, turned)
        room = self._size_of(keys, 2)
        new = self._size_of(q, 2)
        batch, heads = self._size_of(q, 0), w.integers(self._heads)
        scores = w.add("Reshape", product, w.add("Concat", batch, heads, new, room, axis=0))
        softcap = self._float("softcap")
        if softcap:
            inner = w.add("Tanh", w.add("Div", scores, w.number(softcap)))
            scores = w.add("Mul", inner, w.number(softcap))
        scores = w.add("Add", scores, self._write_mask(room, places))
        weights = w.add("Softmax", scores, axis=-1)
        groups = w.integers(self._groups)
        grouped = w.add("Concat", batch, groups, w.integers(-1), room, axis=0)
        mixed = w.add("MatMul", w.add("Reshape", weights, grouped), values)
        size = w.integers(self._size)
        split = w.add("Concat", batch, heads, new, size, axis=0)
        joined = self._transpose(w.add("Reshape", mixed, split))
        sizes = w.integers(0, 0, self._heads * self._size)
        if self._half:
            w.add("Cast", w.add("Reshape", joined, sizes), output=output, to=DataType.FLOAT16)
        else:
            w.add("Reshape", joined, sizes, output=output)

    def _write_mask(self, room: str, places: str) -> str:
        """What is added to the scores [B, 1, S, T]: 0 for a key that is to be seen."""
        w = self._writer
        count = w.add("Squeeze", room, w.integers(0))
        keys = w.add("Range", w.integers(0, scalar=True), count, w.integers(1, scalar=True))
        is_visible = w.add("LessOrEqual", keys, places)
        window = self._attribute("local_window_size", -1)
        if window > 0:
            oldest = w.add("Sub", places, w.integers(window))
            is_visible = w.add("And", is_visible, w.add("Greater", keys, oldest))
        return w.add("Where", is_visible, w.number(0.0), w.number(LOWEST))
