"""A graph with its edges resolved: the producer, the consumers and the type of each value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType, GraphDef, Node, ValueInfo
from ort_lite.model.bodies import bodies
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ctx_formats.kernel_types import KernelTypes
    from ctx_formats.onnx_model import Tensor, ValueType


_MAY_HOLD_TENSORS = frozenset(
    (
        *(AttributeType.TENSOR, AttributeType.TENSORS, AttributeType.STRING),
        *(AttributeType.GRAPH, AttributeType.GRAPHS),
        *(AttributeType.SPARSE_TENSOR, AttributeType.SPARSE_TENSORS),
    )
)
"""Of strings, an embedded payload."""


class Variable:
    """A value that is not a constant."""

    __slots__ = ()


VARIABLE = Variable()


class Types:
    """Types of values by name; what one graph does not say, the graph around it does."""

    __slots__ = ("_around", "_own")

    def __init__(self, own: Mapping[str, ValueType], around: Types | None) -> None:
        self._own = own
        self._around = around

    def type_of(self, value: str) -> ValueType | None:
        """The type of a value; None if it is not known."""
        scope: Types | None = self
        while scope is not None:
            value_type = scope._own.get(value)  # noqa: SLF001 - another instance of this class
            if value_type is not None:
                return value_type
            scope = scope._around  # noqa: SLF001 - as above
        return None


class Graph:
    """A GraphDef, immutable, indexed, its nodes in topological order.

    Attributes:
        definition: What the model says; its nodes are sorted as `nodes`.
        nodes: In topological order; a node's index in this tuple is its name here.
        inputs: What a caller must feed: graph inputs that no initializer backs.
        overridable: Graph inputs that an initializer backs and a caller may feed (IR 4 on).
        outputs: In the model's order.
        initializers: Constants by name, those of outer graphs that this one uses included;
            without the overridable ones.
        captured: Names of non-constant values of an outer graph that this graph or a body
            in it uses, in order of first use.
        opset_imports: Domain ("" for ai.onnx) to version.
        kernel_types: By which kernels are found without schemas; None where a model has none.
        types: Of its values.
        is_body: Whether the graph is an attribute of a node of another graph.
    """

    def __init__(
        self,
        definition: GraphDef,
        opset_imports: Mapping[str, int],
        *,
        outer: Graph | None = None,
        part_of: Graph | None = None,
        constant_inputs: bool = False,
        kernel_types: KernelTypes | None = None,
    ) -> None:
        """Resolve `definition`.

        Args:
            definition: Nodes in any order.
            opset_imports: Of the model, or of the function the graph came from.
            outer: Where names that are not defined here may come from.
            part_of: A graph with the same nodes, or more, where names mean the same. Types that
                `definition` does not give come from it, and bodies that it has resolved already:
                otherwise each level of bodies would resolve all levels below it.
            constant_inputs: Whether an initializer that is also a graph input is a constant
                (true below IR version 4).
            kernel_types: Of the model; None for those of `outer`, if it has any.

        Raises:
            InvalidGraph: A value has two makers or none, or nodes form a cycle.
        """
        self.is_body = outer is not None
        self._outer = outer
        self.opset_imports = dict(opset_imports)
        self.kernel_types: KernelTypes | None = kernel_types
        if kernel_types is None and outer is not None:
            self.kernel_types = outer.kernel_types
        self.name = definition.name
        self.outputs = definition.outputs
        in_names = {info.name for info in definition.inputs}
        if len(in_names) != len(definition.inputs):
            raise _duplicate([info.name for info in definition.inputs])
        backed = in_names & definition.initializers.keys()
        self.inputs = tuple(i for i in definition.inputs if i.name not in backed)
        self.overridable = (
            () if constant_inputs else tuple(i for i in definition.inputs if i.name in backed)
        )
        free = {info.name for info in self.overridable}
        self.initializers: dict[str, Tensor] = {
            name: tensor for name, tensor in definition.initializers.items() if name not in free
        }
        # The types alone: the graph around it has the weights of other partitions.
        around = part_of or outer
        self.types: Types = Types(declared_types(definition), around.types if around else None)
        self._own = (
            in_names | definition.initializers.keys() | definition.sparse_initializers.keys()
        )
        self._found_outside: dict[str, Tensor | Variable | None] = {}
        self._bodies_by_id: dict[int, Graph] | None = None
        self.nodes = self._sort(definition.nodes)
        self.definition = replace(definition, nodes=self.nodes)
        self._producers = {
            name: i for i, node in enumerate(self.nodes) for name in node.outputs if name
        }
        resolved = part_of._resolved_bodies() if part_of is not None else {}  # noqa: SLF001 - another instance of this class
        self._bodies = tuple(self._resolve_bodies(node, resolved) for node in self.nodes)
        self.captured = self._resolve_names()
        self._found_outside.clear()
        # It now has all the constants it needs; the graph around it may be another one later.
        self._outer = None
        self._consumers: dict[str, list[int]] = {}
        for i in range(len(self.nodes)):
            for name in dict.fromkeys(self.node_inputs(i)):
                self._consumers.setdefault(name, []).append(i)

    def producer(self, value: str) -> int | None:
        """Index of the node that makes `value`; None for inputs, constants, outer values."""
        return self._producers.get(value)

    def consumers(self, value: str) -> Sequence[int]:
        """Indices of the nodes that use `value`, bodies included, ascending."""
        return self._consumers.get(value, ())

    def bodies(self, index: int) -> Mapping[str, Graph]:
        """The subgraphs of a node: attribute name (of GRAPHS: name#i) to graph."""
        return self._bodies[index]

    def implicit_inputs(self, index: int) -> tuple[str, ...]:
        """Names that the bodies of a node take from this graph or further out."""
        bodies = self._bodies[index]
        if not bodies:
            return ()
        return tuple(dict.fromkeys(n for body in bodies.values() for n in body.captured))

    def node_inputs(self, index: int) -> tuple[str, ...]:
        """Names a node reads: its inputs without the omitted ones, then the implicit ones."""
        named = tuple(name for name in self.nodes[index].inputs if name)
        return named + self.implicit_inputs(index) if self._bodies[index] else named

    def type_of(self, value: str) -> ValueType | None:
        """Declared or inferred type of a value, here or further out; None if unknown."""
        return self.types.type_of(value)

    def constant(self, value: str) -> Tensor | None:
        """The constant called `value`; one of an outer graph, if this graph uses it."""
        return self.initializers.get(value)

    def info(self, value: str) -> ValueInfo:
        """`value` with its type, as an input or output of a partition has it."""
        return ValueInfo(value, self.type_of(value))

    def extract(self, indices: Iterable[int], name: str) -> Graph:
        """The subgraph of some nodes, as a graph of its own.

        Its inputs are the non-constant values that come from outside, in order of first use;
        its outputs what the rest of this graph or its caller needs, in order of making; its
        initializers the constants that it uses, by reference.
        """
        chosen = sorted(set(indices))
        inside = set(chosen)
        made = {out for i in chosen for out in self.nodes[i].outputs if out}
        graph_outputs = {info.name for info in self.outputs}
        needs = dict.fromkeys(
            n for i in chosen for n in self.node_inputs(i) + self._body_constants(i)
        )
        constants: dict[str, Tensor] = {}
        inputs = []
        for need in needs:
            constant = self.constant(need)
            if constant is not None:
                constants[need] = constant
            elif need not in made:
                inputs.append(self.info(need))
        outputs = tuple(
            self.info(out)
            for i in chosen
            for out in self.nodes[i].outputs
            if out and (out in graph_outputs or not inside.issuperset(self.consumers(out)))
        )
        definition = GraphDef(
            name=name,
            nodes=tuple(self.nodes[i] for i in chosen),
            inputs=tuple(inputs),
            outputs=outputs,
            initializers=constants,
            sparse_initializers={
                n: t for n, t in self.definition.sparse_initializers.items() if n in needs
            },
        )
        return Graph(
            definition,
            self.opset_imports,
            part_of=self,
            kernel_types=self.kernel_types,
        )

    def without_constants(self, stripped: dict[Graph, Graph] | None = None) -> Graph:
        """This graph as a session shows it: nodes, values and types, but no weights.

        Args:
            stripped: Graphs that were stripped before, each with the result; this one is added.
        """
        stripped = {} if stripped is None else stripped
        if self not in stripped:
            shown = Graph.__new__(Graph)
            vars(shown).update(vars(self))
            shown._bodies_by_id = None  # noqa: SLF001 - another instance of this class
            shown.nodes = tuple(map(_without_constants, self.nodes))
            shown.initializers = {}
            shown.definition = replace(
                self.definition, nodes=shown.nodes, initializers={}, sparse_initializers={}
            )
            shown._bodies = tuple(  # noqa: SLF001 - another instance of this class
                {key: body.without_constants(stripped) for key, body in bodies.items()}
                for bodies in self._bodies
            )
            stripped[self] = shown
        return stripped[self]

    def _body_constants(self, index: int) -> tuple[str, ...]:
        """Constants of this graph or further out that the bodies of a node use."""
        return tuple(
            name
            for body in self._bodies[index].values()
            for name in body.initializers
            if name not in body._own  # noqa: SLF001 - another instance of this class
        )

    def _resolved_bodies(self) -> Mapping[int, Graph]:
        """The subgraphs of all nodes by the `id` of the GraphDef in the node's attribute."""
        if self._bodies_by_id is None:
            self._bodies_by_id = {
                id(body): graphs[key]
                for node, graphs in zip(self.nodes, self._bodies, strict=True)
                if graphs
                for key, body in bodies(node)
            }
        return self._bodies_by_id

    def _resolve_bodies(self, node: Node, resolved: Mapping[int, Graph]) -> dict[str, Graph]:
        return {
            key: resolved.get(id(body)) or Graph(body, self.opset_imports, outer=self)
            for key, body in bodies(node)
        }

    def _resolve_names(self) -> tuple[str, ...]:
        """Check that every name has a maker; adopt outer constants, list the rest."""
        captured: dict[str, None] = {}
        known = self._own | self._producers.keys()
        uses = (
            (self.nodes[i].name, n) for i in range(len(self.nodes)) for n in self.node_inputs(i)
        )
        results = (("the graph's outputs", info.name) for info in self.outputs)
        for user, name in (*uses, *results):
            if name in known:
                continue
            outer_value = self._outer.find(name) if self._outer is not None else None
            if outer_value is None:
                raise InvalidGraph(
                    f"This is an invalid model. In '{user}': '{name}' is not a graph input, "
                    "initializer, or output of a previous node."
                )
            known.add(name)
            if isinstance(outer_value, Variable):
                captured[name] = None
            else:
                self.initializers[name] = outer_value
        for i in range(len(self.nodes)):
            for name in self._body_constants(i):
                if name not in self._own and self._outer is not None:
                    self.initializers.setdefault(name, self._bodies_constant(i, name))
        return tuple(captured)

    def _bodies_constant(self, index: int, name: str) -> Tensor:
        return next(
            body.initializers[name]
            for body in self._bodies[index].values()
            if name in body.initializers
        )

    def find(self, name: str) -> Tensor | Variable | None:
        """The constant called `name` here or further out; VARIABLE for another value, or None.

        It remembers what came from further out, so that nested graphs, which all look for the
        names that the innermost one uses, do not each ask all graphs around them.
        """
        constant = self.initializers.get(name)
        if constant is not None:
            return constant
        if name in self._own or name in self._producers:
            return VARIABLE
        if self._outer is None:
            return None
        if name not in self._found_outside:
            self._found_outside[name] = self._outer.find(name)
        return self._found_outside[name]

    def _sort(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """`nodes` in a topological order: as they are if they are in one (Kahn otherwise)."""
        maker: dict[str, int] = {}
        for i, node in enumerate(nodes):
            for name in node.outputs:
                if not name:
                    continue
                if name in maker or name in self._own:
                    raise _duplicate([name, name])
                maker[name] = i
        needs = [
            {maker[n] for n in (*node.inputs, *free_names(node)) if n in maker} for node in nodes
        ]
        if all(j < i for i, need in enumerate(needs) for j in need):
            return tuple(nodes)
        from ort_lite.model.topological import topological_order  # noqa: PLC0415 - lazy: reload

        order = topological_order(needs)
        if len(order) != len(nodes):
            raise InvalidGraph("This is an invalid model. Error: the graph is not acyclic.")
        return tuple(nodes[i] for i in order)


def _duplicate(names: Sequence[str]) -> InvalidGraph:
    """The error for the first name that is there twice."""
    name = next(name for at, name in enumerate(names) if name in names[:at])
    return InvalidGraph(f"This is an invalid model. Error: Duplicate definition of name ({name}).")


def _without_constants(node: Node) -> Node:
    """`node` without the attributes that tensors may be in."""
    if not any(attribute.type in _MAY_HOLD_TENSORS for attribute in node.attributes.values()):
        return node
    kept = {n: a for n, a in node.attributes.items() if a.type not in _MAY_HOLD_TENSORS}
    return replace(node, attributes=kept)


def free_names(node: Node) -> tuple[str, ...]:
    """Names that the bodies of a node use and do not define, in order of first use."""
    return tuple(dict.fromkeys(name for _, body in bodies(node) for name in body.free_names))


def declared_types(definition: GraphDef) -> dict[str, ValueType]:
    """Types by name; of an output that `value_info` has too, the latter, which inference made."""
    return {
        info.name: info.type
        for infos in (definition.outputs, definition.value_info.values(), definition.inputs)
        for info in infos
        if info.type is not None
    }
