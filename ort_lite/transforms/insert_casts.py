"""Cast insertion: nodes of narrow floats compute in float32 where an EP lacks the narrow type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.onnx_model import DataType, Node, TensorType, ValueInfo
from ort_lite.model.bodies import map_bodies
from ort_lite.model.graph import free_names
from ort_lite.model.tensor_values import from_numpy, to_numpy
from ort_lite.transforms.attributes import integer
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Tensor, ValueType

NAME = "InsertCastTransformer"
"""ONNX Runtime's name for it."""

MAX_DEPTH = 64
"""Bodies inside bodies; deeper ones are left as they are."""
FIRST_NUMBERED = 6
"""Cast-6: `to` is a number."""

WIDENED = frozenset(
    (
        *("Abs", "Add", "ArgMax", "ArgMin", "AveragePool", "BatchNormalization", "Ceil"),
        *("Celu", "Clip", "Concat", "Conv", "ConvTranspose", "Cos", "CumSum", "DepthToSpace"),
        *("DequantizeLinear", "Div", "Einsum", "Elu", "Equal", "Erf", "Exp", "Expand"),
        *("Flatten", "Floor", "GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm"),
        *("GlobalAveragePool", "GlobalMaxPool", "Greater", "GreaterOrEqual", "GridSample"),
        *("GroupNormalization", "HardSigmoid", "HardSwish", "Identity"),
        *("InstanceNormalization", "LRN", "LSTM", "LayerNormalization", "LeakyRelu", "Less"),
        *("LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "LpPool", "MatMul", "Max"),
        *("MaxPool", "Mean", "Min", "Mish", "Mul", "Neg", "PRelu", "Pad", "Pow"),
        *("QuantizeLinear", "RMSNormalization", "RNN", "Reciprocal", "ReduceL1", "ReduceL2"),
        *("ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
        *("ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Resize", "Round"),
        *("ScatterElements", "ScatterND", "Selu", "Sigmoid", "Sign"),
        *("SimplifiedLayerNormalization", "Sin", "Slice", "Softmax", "Softplus", "Softsign"),
        *("SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh"),
        *("ThresholdedRelu", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Upsample"),
        "Where",
    )
)
"""Operators of ai.onnx whose float outputs have the type of their float inputs, unless an attribute
names it. Each version that is defined for narrow floats is defined for float32."""
NAMING = ("output_dtype", "precision")
"""Attributes of theirs that may name a narrow type."""

CONTRIB_DOMAIN = "com.microsoft"
WIDENED_CONTRIB = frozenset(
    (
        *("GatherBlockQuantized", "MatMulNBits", "MoE", "QMoE", "QuickGelu", "RotaryEmbedding"),
        *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
    )
)
"""The same of com.microsoft. GroupQueryAttention is not here: its caches keep their type, so that
an EP may write them in place."""


def insert_casts(graph: GraphDef, opset: int, types: frozenset[int]) -> tuple[GraphDef, int]:
    """`graph` with the nodes that compute in `types` computing in float32, and how many.

    A chain of such nodes stays in float32: between them nothing is rounded to the narrow type
    any more, so that each result is as near to the exact one as it was or nearer. Where another
    node, a body, or the graph's caller needs a value, it is cast back. Constants are widened.
    Bodies are treated likewise, each on its own: what goes into one and comes out of it, from
    one iteration of a loop to the next too, keeps the narrow type.

    Args:
        graph: Its nodes sorted, its types inferred.
        opset: Of ai.onnx.
        types: DataType numbers of narrow floats.
    """
    if opset < FIRST_NUMBERED:
        return graph, 0
    return _insert(graph, types, None, 0)


def _insert(
    graph: GraphDef, types: frozenset[int], outer: _Widening | None, depth: int
) -> tuple[GraphDef, int]:
    work = _Widening(graph, types, outer, depth)
    for node in graph.nodes:
        work.add(node)
    return work.finish() if work.count else (graph, 0)


@dataclass(slots=True)
class _Widening:
    """The graph that is built anew, node by node.

    Attributes:
        outer: Of the graph that holds the node whose body this is.
        depth: Number of bodies around this graph.
        wide: Name of a narrow value to the name of the same in float32.
        pending: Narrow values that exist only in float32 so far, with their type.
    """

    graph: GraphDef
    types: frozenset[int]
    outer: _Widening | None
    depth: int
    count: int = 0
    nodes: list[Node] = field(default_factory=list)
    wide: dict[str, str] = field(default_factory=dict)
    pending: dict[str, TensorType] = field(default_factory=dict)
    known: dict[str, ValueType] = field(init=False)
    own: frozenset[str] = field(init=False)
    added: dict[str, ValueInfo] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.graph
        infos = (*graph.value_info.values(), *graph.inputs, *graph.outputs)
        self.known = dict(self.outer.known) if self.outer is not None else {}
        self.known |= {info.name: info.type for info in infos if info.type is not None}
        for name, tensor in graph.initializers.items():
            self.known[name] = TensorType(tensor.data_type, tensor.dims)
        made = {name for node in graph.nodes for name in node.outputs}
        self.own = frozenset({info.name for info in graph.inputs} | made)

    def add(self, node: Node) -> None:
        if self._may_widen(node):
            self._widen(node)
            return
        for name in (*node.inputs, *free_names(node)):
            self._narrow(name)
        self.nodes.append(self._with_bodies(node))

    def finish(self) -> tuple[GraphDef, int]:
        for info in self.graph.outputs:
            self._narrow(info.name)
        initializers = dict(self.graph.initializers)
        initializers |= {n: from_numpy(array, n) for n, array in self.constants.items()}
        made = replace(
            self.graph,
            nodes=tuple(self.nodes),
            initializers=initializers,
            value_info={**self.graph.value_info, **self.added},
        )
        return made, self.count

    def _may_widen(self, node: Node) -> bool:
        known = WIDENED_CONTRIB if node.domain == CONTRIB_DOMAIN else WIDENED
        if node.domain not in (*ONNX_DOMAINS, CONTRIB_DOMAIN) or node.op_type not in known:
            return False
        if any(name in node.attributes for name in NAMING):
            return False
        narrow = {self._narrow_type(name) for name in (*node.inputs, *node.outputs)} - {None}
        return len(narrow) == 1 and not any(map(self._is_mixed, node.inputs))

    def _narrow_type(self, name: str) -> int | None:
        value_type = self.known.get(name) if name else None
        if isinstance(value_type, TensorType) and value_type.elem_type in self.types:
            return value_type.elem_type
        return None

    def _is_mixed(self, name: str) -> bool:
        """Whether an input may not go with others in float32: a float of another type that stays.

        That is float64, a narrow float that the EP has, or a value of unknown type.
        """
        if not name or self._narrow_type(name) is not None:
            return False
        value_type = self.known.get(name)
        others = (DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16)
        return not isinstance(value_type, TensorType) or value_type.elem_type in others

    def _widen(self, node: Node) -> None:
        inputs = tuple(self._widen_input(name) for name in node.inputs)
        outputs = []
        for name in node.outputs:
            narrow = self.known.get(name) if self._narrow_type(name) is not None else None
            if not isinstance(narrow, TensorType):
                outputs.append(name)
                continue
            wide = self._name(name)
            self.added[wide] = ValueInfo(wide, TensorType(DataType.FLOAT, narrow.shape))
            self.wide[name] = wide
            self.pending[name] = narrow
            outputs.append(wide)
        self.nodes.append(replace(node, inputs=inputs, outputs=tuple(outputs)))
        self.count += 1

    def _widen_input(self, name: str) -> str:
        """The name of a value in float32; of anything but narrow floats its own."""
        if self._narrow_type(name) is None:
            return name
        if name not in self.wide:
            wide = self._name(name)
            tensor = self.constant(name)
            if tensor is not None:
                self.constants[wide] = to_numpy(tensor).astype(np.float32)
            else:
                narrow = self.known[name]
                assert isinstance(narrow, TensorType), "asked for by its element type"
                self.added[wide] = ValueInfo(wide, TensorType(DataType.FLOAT, narrow.shape))
                self.nodes.append(_cast(name, wide, DataType.FLOAT))
            self.wide[name] = wide
        return self.wide[name]

    def constant(self, name: str) -> Tensor | None:
        """The constant of that name, here or further out; None if a caller may override it."""
        if name in self.graph.initializers:
            is_input = any(info.name == name for info in self.graph.inputs)
            return None if is_input else self.graph.initializers[name]
        if self.outer is None or name in self.own:
            return None
        return self.outer.constant(name)

    def _with_bodies(self, node: Node) -> Node:
        """`node` with casts in its bodies."""
        if self.depth >= MAX_DEPTH:
            return node

        def insert_in_body(body: GraphDef) -> GraphDef:
            graph, count = _insert(body, self.types, self, self.depth + 1)
            self.count += count
            return graph

        return map_bodies(node, insert_in_body)

    def _narrow(self, name: str) -> None:
        """Make a value in its own type, where it exists in float32 only."""
        narrow = self.pending.pop(name, None)
        if narrow is not None:
            self.nodes.append(_cast(self.wide[name], name, narrow.elem_type))

    def _name(self, name: str) -> str:
        wide = f"{name}/float32"
        while wide in self.known:
            wide += "_"
        return wide


def _cast(source: str, result: str, to: int) -> Node:
    name = f"Cast/{result}"
    return Node("Cast", (source,), (result,), name=name, attributes=integer("to", to))
