"""From a graph to a plan: bind every node once, compute what is constant, number the slots."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import TensorType
from ctx_formats.tensor_size import element_bits
from eps.cpu.array_pool import ArrayPool
from eps.cpu.plan import KERNEL_ERRORS, BodyPlan, Plan, as_value
from eps.cpu.resolve import plain_domain
from ort_lite.ep import Body, Fail, KernelInfo, OrtLiteError, dense_array, number_slots, to_numpy
from ort_lite.ep import NotImplemented as NotImplementedByCpu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import Node, ValueType
    from eps.cpu.arrays import Array
    from eps.cpu.resolve import Resolution, Resolver
    from ort_lite.ep import Graph, KernelFn, Runnable, Value

MAX_DEPTH = 64
"""Bodies inside bodies; a model that goes deeper is taken for an attack."""
FOLD_BYTES = 1 << 28
"""A larger constant result is computed anew by every run rather than kept."""
FREE_FOLDS = 1 << 26
"""Bytes that folded results may take altogether, beyond `GROWTH` times those of initializers."""
GROWTH = 32
"""Weights of 4 bits become floats, which may then be cast, reshaped and transposed."""
RANDOM = frozenset(
    (
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    )
)
"""Operators that may give something else at every run."""


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds the nodes of one graph.

    Attributes:
        opset_imports: Of the graph.
        compile_body: Makes a plan of a function body.
    """

    opset_imports: Mapping[str, int]
    compile_body: Callable[[Graph], Plan]

    def bind(self, info: KernelInfo, resolution: Resolution) -> KernelFn:
        """The first of own kernels, onnx.reference and function body that takes the node.

        Raises:
            NotImplemented: None does.
            Fail: An attribute or constant of the node has a value that it cannot have.
        """
        try:
            kernel = self._find(info, resolution)
        except KERNEL_ERRORS as exc:
            raise Fail(
                f"Exception during initialization: {info.op_type} node. "
                f"Name:'{info.node.name}': {str(exc) or type(exc).__name__}"
            ) from exc
        if kernel is not None:
            return kernel
        declined = "its kernels take none of its attributes" if resolution.kernels else ""
        reason = resolution.reason or declined or "nothing computes it"
        raise NotImplementedByCpu(
            f"Could not find an implementation for {info.op_type}({info.since_version}) node "
            f"with name '{info.node.name}': {reason}"
        )

    def _find(self, info: KernelInfo, resolution: Resolution) -> KernelFn | None:
        for definition in resolution.kernels:
            fn = definition.factory(info)
            if fn is not None:
                return fn
        op = resolution.op
        if op is None:
            return None
        if resolution.reference:
            from eps.cpu.reference import reference_kernel  # noqa: PLC0415 - lazy: rare

            kernel = reference_kernel(op, info, self.opset_imports)
            if kernel is not None:
                return kernel
        if resolution.function:
            from eps.cpu.function_body import function_graph  # noqa: PLC0415 - lazy: rare

            body = function_graph(op, info, self.opset_imports)
            return None if body is None else _call_body(info, self.compile_body(body))
        return None


def _call_body(info: KernelInfo, plan: Plan) -> KernelFn:
    """A plan of o0, o1, ... from i0, i1, ... (given ones only) as a kernel."""
    present = tuple(i for i, name in enumerate(info.node.inputs) if name)
    made = tuple(i for i, name in enumerate(info.node.outputs) if name)
    count = info.n_outputs

    def call(*inputs: Value) -> tuple[Value, ...]:
        results: list[Value] = [None] * count
        for i, value in zip(made, plan.run([inputs[i] for i in present]), strict=True):
            results[i] = value
        return tuple(results)

    return call


class NodeRefused(NotImplementedByCpu):
    """No kernel takes a node.

    Attributes:
        index: Of the node in the graph that was to be compiled.
    """

    def __init__(self, index: int, message: str) -> None:
        self.index = index
        super().__init__(message)


@dataclass(slots=True)
class _Bound:
    """A node that every run computes."""

    fn: KernelFn
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    node: Node


@dataclass(slots=True)
class Folds:
    """Bytes that the results of nodes which read only constants may still take."""

    left: int = FREE_FOLDS


@dataclass(slots=True)
class GraphCompiler:
    """Compiles one graph, and the bodies that are not prepared yet.

    Attributes:
        bodies: Prepared bodies by node index and key of `Graph.bodies`.
        depth: Number of bodies around this graph.
        pool: Memory for the results of this graph and of its bodies.
    """

    graph: Graph
    resolver: Resolver
    bodies: Mapping[tuple[int, str], Runnable] = field(default_factory=dict)
    depth: int = 0
    pool: ArrayPool = field(default_factory=ArrayPool)
    folds: Folds = field(default_factory=Folds)
    _outputs: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Index the graph's outputs, which every node is compared with."""
        self._outputs = frozenset(info.name for info in self.graph.outputs)

    def compile(self) -> Plan:
        """The plan; it takes the graph's inputs, then its overridable and captured values.

        Raises:
            NodeRefused: No kernel takes some node, here or in a body of it.
            NotImplemented: Bodies are nested too deep.
        """
        if self.depth > MAX_DEPTH:
            raise NotImplementedByCpu(f"subgraphs are nested more than {MAX_DEPTH} deep")
        known: dict[str, Value] = dict(constants_of(self.graph))
        # A body's constants from outside count where they come from.
        own = known if not self.depth else self.graph.definition.initializers.keys() & known.keys()
        self.folds.left += GROWTH * sum(_size(known[name]) for name in own)
        bound = []
        for index in range(len(self.graph.nodes)):
            try:
                made = self._bind(index, known)
            except NotImplementedByCpu as exc:
                raise NodeRefused(index, exc.message) from exc
            if made is not None:
                bound.append(made)
        return self._plan(bound, known)

    def _bind(self, index: int, known: dict[str, Value]) -> _Bound | None:
        """The node ready to run; None if its results are constants, which go into `known`."""
        node = self.graph.nodes[index]
        resolution = self.resolver.resolve(self.graph, index)
        info = self._info(index, known, resolution)
        fn = Binder(self.graph.opset_imports, self._compile_nested).bind(info, resolution)
        inputs = node.inputs + self.graph.implicit_inputs(index)
        if not info.bodies and node.op_type not in RANDOM:
            size = _fold(fn, node, known, self.folds.left) if self._may_fit(node) else None
            if size is not None:
                self.folds.left -= size
                return None
        return _Bound(fn, inputs, node.outputs, node)

    def _may_fit(self, node: Node) -> bool:
        """Whether a node's results, as far as their shapes are known, are not too large to fold."""
        size = sum(_typed_bytes(self.graph.type_of(name)) for name in node.outputs if name)
        return size <= min(FOLD_BYTES, self.folds.left)

    def _info(self, index: int, known: Mapping[str, Value], resolution: Resolution) -> KernelInfo:
        graph = self.graph
        node = graph.nodes[index]
        op = resolution.op
        return KernelInfo(
            node=node,
            domain=plain_domain(node),
            since_version=op.since_version if op else 1,
            defaults=self.resolver.defaults(graph, op) if op else {},
            input_types=tuple(graph.type_of(n) if n else None for n in node.inputs),
            output_types=tuple(graph.type_of(n) if n else None for n in node.outputs),
            constants=tuple(known.get(n) if n else None for n in node.inputs),
            used_outputs=tuple(
                bool(n) and (n in self._outputs or bool(graph.consumers(n))) for n in node.outputs
            ),
            bodies=self._node_bodies(index),
            empty=self.pool.empty,
        )

    def _node_bodies(self, index: int) -> dict[str, Body]:
        implicit = {name: i for i, name in enumerate(self.graph.implicit_inputs(index))}
        bodies = {}
        for key, body in self.graph.bodies(index).items():
            runnable = self.bodies.get((index, key)) or self._compile_nested(body)
            bodies[key] = Body(
                runnable=runnable,
                input_types=tuple(info.type for info in body.inputs),
                output_types=tuple(body.type_of(info.name) for info in body.outputs),
                captured=tuple(implicit[name] for name in body.captured),
            )
        return bodies

    def _compile_nested(self, body: Graph) -> Plan:
        inner = GraphCompiler(body, self.resolver, depth=self.depth + 1, pool=self.pool)
        inner.folds = self.folds
        return inner.compile()

    def _plan(self, bound: list[_Bound], known: Mapping[str, Value]) -> Plan:
        graph = self.graph
        inputs = [info.name for info in (*graph.inputs, *graph.overridable)]
        inputs += graph.captured
        outputs = [info.name for info in graph.outputs]
        used = dict.fromkeys(name for step in bound for name in step.inputs)
        used.update(dict.fromkeys(outputs))
        constants = {name: known[name] for name in used if name in known}
        kind = BodyPlan if self.depth else Plan
        table = number_slots(inputs, bound, outputs, constants)
        return kind(table, [(step.fn, step.node) for step in bound], self.pool)


def _fold(fn: KernelFn, node: Node, known: dict[str, Value], room: int) -> int | None:
    """Compute a node of constants into `known`.

    A node that fails must not fail the session: it may be in a branch that is never taken.

    Returns:
        Bytes of the results; None, with nothing changed, if an input is not constant, or the node
        fails, or makes more than `room`.
    """
    if any(name and name not in known for name in node.inputs):
        return None
    try:
        with np.errstate(all="ignore"):
            result = fn(*(known[name] if name else None for name in node.inputs))
    except (*KERNEL_ERRORS, OrtLiteError):
        return None
    results = result if type(result) is tuple else (result,)
    values = [as_value(value) for value in results]
    size = sum(_size(value) for value in values)
    if size > min(FOLD_BYTES, room):
        return None
    for name, value in zip(node.outputs, values, strict=False):
        if name:
            known[name] = _freeze(value)
    return size


def _size(value: Value) -> int:
    if isinstance(value, list):
        return sum(map(_size, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0


def _typed_bytes(value_type: ValueType | None) -> int:
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    if shape is None or not isinstance(value_type, TensorType):
        return 0
    count = prod(dim for dim in shape if isinstance(dim, int) and dim >= 0)
    try:
        return count * element_bits(value_type.elem_type) // 8
    except ValueError:  # texts, and types that onnx does not have
        return count


def _freeze(value: Value) -> Value:
    """`value` read-only, as plans know constants by."""
    if isinstance(value, list):
        return [_freeze(item) for item in value]
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def constants_of(graph: Graph) -> dict[str, Array]:
    """Every initializer by name, read-only, over the model's own bytes where they are aligned.

    In an ONNX file tensors begin anywhere. BLAS takes none that is not aligned to its element
    type, and numpy would copy it for every product: 60 times the time of a matrix by a vector.
    """
    arrays = {name: _align(to_numpy(tensor)) for name, tensor in graph.initializers.items()}
    for name, sparse in graph.definition.sparse_initializers.items():
        arrays[name] = dense_array(name, sparse)
    return arrays


def _align(values: Array) -> Array:
    if values.flags.aligned:
        return values
    result = values.copy()
    result.flags.writeable = False
    return result
