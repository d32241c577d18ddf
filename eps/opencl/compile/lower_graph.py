"""Lowers a partition of ONNX nodes to a kernel graph; nodes of constants are evaluated."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import GraphDef, Model, TensorType, ValueInfo
from eps.opencl.compile.constant_nodes import MAX_FOLDED, TOO_LARGE, evaluate_in_numpy
from eps.opencl.compile.element_types import C_TYPES, HALF
from eps.opencl.compile.ir import Alias, IrTensor, KernelGraph, Op, Pointwise, Unsupported
from eps.opencl.compile.lower import LOWERINGS
from eps.opencl.compile.lower.node import NodeView, constant
from eps.opencl.compile.lower.quantised import dequantize_constant
from ort_lite.ep import numpy_dtype, onnx_data_type, to_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Node
    from eps.opencl.custom.operators import CustomKernels
    from ort_lite.ep import Graph

    Array = np.ndarray[Any, np.dtype[Any]]


class GraphLowering:
    """Lowers nodes in order.

    Attributes:
        values: A tensor for each name that is known so far.
        written_out: How many nodes of an operator became several operations, and which, apart
            from elementwise ones and views.
    """

    def __init__(self, graph: Graph, custom: CustomKernels | None = None) -> None:
        """Nothing is known but the graph's constants; `custom` are operators of the user's own."""
        self.graph = graph
        self._custom = custom
        self.values: dict[str, IrTensor] = {}
        self.ops: list[Op] = []
        self.written_out: Counter[tuple[str, tuple[str, ...]]] = Counter()

    def value(self, name: str) -> IrTensor | None:
        """The tensor of a name; None if it is not known."""
        tensor = self.values.get(name)
        if tensor is None:
            known = self.graph.constant(name)
            if known is not None:
                tensor = self.values[name] = constant(to_numpy(known))
        return tensor

    def lower(self, index: int) -> None:
        """Lower one node; its outputs become known.

        Raises:
            Unsupported: No kernels for it; nothing was added.
        """
        node = self.graph.nodes[index]
        inputs = tuple(self._input(name) for name in node.inputs)
        before = len(self.ops)
        try:
            results = self._lower_node(node, inputs)
        except Unsupported:
            del self.ops[before:]
            raise
        kinds = [type(op) for op in self.ops[before:] if not isinstance(op, Alias | Pointwise)]
        if len(kinds) > 1:
            self.written_out[node.op_type, tuple(sorted(kind.__name__ for kind in kinds))] += 1
        for name, result in zip(node.outputs, results, strict=False):
            if name:
                self.values[name] = result

    def _input(self, name: str) -> IrTensor | None:
        if not name:
            return None
        tensor = self.value(name)
        if tensor is None:
            raise Unsupported(f"the shape of '{name}' is not known before the run")
        return tensor

    def _lower_node(self, node: Node, inputs: Sequence[IrTensor | None]) -> Sequence[IrTensor]:
        if self._custom is not None and (node.domain, node.op_type) in self._custom.operators:
            from eps.opencl.compile.lower.custom import lower_custom  # noqa: PLC0415 - lazy: rare

            return lower_custom(self._view(node, inputs), self._custom)
        if all(x is None or x.constant is not None for x in inputs):
            return self._fold(node, inputs)
        lowering = LOWERINGS.get((node.domain, node.op_type))
        if lowering is None:
            raise Unsupported(f"no kernels for {node.domain or 'ai.onnx'}:{node.op_type}")
        lowered = lowering(self._view(node, inputs))
        results = [lowered] if isinstance(lowered, IrTensor) else list(lowered)
        if len([n for n in node.outputs if n]) > len(results):
            raise Unsupported("an optional output")
        return results

    def _view(self, node: Node, inputs: Sequence[IrTensor | None]) -> NodeView:
        opset = self.graph.opset_imports.get(node.domain, 1)
        return NodeView(node=node, opset=opset, inputs=tuple(inputs), emit=self.ops.append)

    def _fold(self, node: Node, inputs: Sequence[IrTensor | None]) -> list[IrTensor]:
        if node.op_type == "DequantizeLinear":
            held = dequantize_constant(self._view(node, inputs))
            if held is not None:
                return [held]
        result = evaluate_in_numpy(self._view(node, inputs))
        if result is not None:
            outputs = [result]
        else:
            values = [None if x is None else x.constant for x in inputs]
            outputs = evaluate_node(node, values, self.graph.opset_imports)
        if any(v.size > MAX_FOLDED for v in outputs):
            raise Unsupported(TOO_LARGE)
        return [constant(v) for v in outputs]


def lower_graph(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], custom: CustomKernels | None = None
) -> KernelGraph:
    """The kernel graph of a partition.

    Args:
        graph: Every node of which this EP has taken.
        shapes: Of every input.
        custom: Operators of the user's own.

    Raises:
        Unsupported: With these shapes a node is not supported after all; has its name.
    """
    tracer = GraphLowering(graph, custom)
    inputs = []
    for info in graph.inputs:
        tensor = IrTensor(shapes[info.name], input_dtype(graph, info.name), name=info.name)
        tracer.values[info.name] = tensor
        inputs.append(tensor)
    for index, node in enumerate(graph.nodes):
        try:
            tracer.lower(index)
        except Unsupported as exc:
            raise Unsupported(f"{node.op_type} '{node.name}': {exc}") from exc
    outputs = tuple(tracer.values[info.name] for info in graph.outputs)
    for info, tensor in zip(graph.outputs, outputs, strict=True):
        if tensor.dtype not in C_TYPES and tensor.dtype != HALF:
            raise Unsupported(f"'{info.name}' has element type {tensor.dtype}, which no kernel has")
    return KernelGraph(tuple(inputs), outputs, tracer.ops, _describe(tracer.written_out))


def _describe(written_out: Counter[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """One line for each operator and what its nodes became."""
    lines = []
    for (operator, kinds), count in sorted(written_out.items()):
        parts = ", ".join(f"{kind} x{n * count}" for kind, n in Counter(kinds).items())
        lines.append(f"{operator} x{count} written out as {parts}: no kernel of its own")
    return tuple(lines)


def input_dtype(graph: Graph, name: str) -> str:
    """numpy's name of an input's element type.

    Raises:
        Unsupported: It is not a tensor, or its type is not known.
    """
    declared = graph.type_of(name)
    if not isinstance(declared, TensorType):
        raise Unsupported(f"the type of '{name}' is not known")
    dtype: np.dtype[np.generic] = numpy_dtype(declared.elem_type)
    return dtype.name


RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial")
_FAILURES = (ValueError, TypeError, RuntimeError, IndexError, KeyError, AttributeError)
"""Exceptions of onnx.reference for nodes that it cannot evaluate (seen with onnx 1.23)."""
_IR_VERSION = 10


def evaluate_node(
    node: Node, values: Sequence[Array | None], opsets: Mapping[str, int]
) -> list[Array]:
    """The outputs of a node, given its inputs (None if one is omitted).

    Raises:
        Unsupported: The reference has no such operator, or it gives no tensors.
    """
    import onnx  # noqa: PLC0415 - lazy: rare
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - lazy: rare

    if node.op_type in RANDOM:
        raise Unsupported("random numbers differ from run to run")
    feeds = {n: v for n, v in zip(node.inputs, values, strict=True) if n and v is not None}
    graph = GraphDef(
        name="fold",
        nodes=(replace(node, name=""),),
        inputs=tuple(
            ValueInfo(n, TensorType(onnx_data_type(v.dtype), v.shape)) for n, v in feeds.items()
        ),
        outputs=tuple(ValueInfo(name) for name in node.outputs if name),
    )
    model = Model(graph=graph, ir_version=_IR_VERSION, opset_imports=dict(opsets))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            proto = onnx.load_model_from_string(model_bytes(model))
            outputs = ReferenceEvaluator(proto).run(None, feeds)
    except _FAILURES as exc:
        raise Unsupported(f"its constant value cannot be computed: {exc}".split("\n")[0]) from exc
    if not all(isinstance(v, np.ndarray | np.generic) for v in outputs):
        raise Unsupported("its constant value is not a tensor")
    return [np.asarray(v) for v in outputs]
