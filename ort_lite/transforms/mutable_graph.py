"""A graph while it is rewritten: its nodes by number, with makers, users, types and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import TensorType
from ort_lite.model.graph import free_names
from ort_lite.model.tensor_values import from_numpy, to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from ctx_formats.onnx_model import Dim, GraphDef, Node, Tensor, ValueType

    Array = np.ndarray[Any, np.dtype[Any]]

ONNX_DOMAINS = frozenset(("", "ai.onnx"))


class MutableGraph:
    """A GraphDef that rules change in place; a node keeps its number until it is removed.

    Numbers are positions in a topological order, and every change keeps them one: a node may
    be replaced by one that reads what was made before it.

    Attributes:
        nodes: None if a node was removed.
        initializers: All constants of this graph, those that a caller may override included.
        finals: Names of the graph's outputs.
        inputs: Names of the graph's inputs, those backed by an initializer included.
        outer: The graph that holds the node whose body this is, or None.
        folded_from: Names of values of this graph that folded nodes have read.
    """

    def __init__(
        self,
        definition: GraphDef,
        opset_imports: Mapping[str, int],
        *,
        constant_inputs: bool = False,
        outer: MutableGraph | None = None,
        type_of: Callable[[str], ValueType | None] | None = None,
        certain: Callable[[str], tuple[int | None, ...] | None] | None = None,
    ) -> None:
        """Index `definition`, whose nodes are in topological order.

        Args:
            definition: With the types that inference found.
            opset_imports: Of the model.
            constant_inputs: Whether an initializer that is also an input is a constant (true
                below IR version 4).
            outer: Where names come from that are not defined here.
            type_of: Gives types that `definition` does not.
            certain: Gives dimensions that do not depend on what the file declares.
        """
        self._definition = definition
        self.opset_imports = dict(opset_imports)
        self.outer = outer
        self.folded_from: set[str] = set()
        self.nodes: list[Node | None] = list(definition.nodes)
        self.initializers: dict[str, Tensor] = dict(definition.initializers)
        self.finals = frozenset(info.name for info in definition.outputs)
        self.inputs = frozenset(info.name for info in definition.inputs)
        self._open = frozenset() if constant_inputs else self.inputs
        self._types = _types(definition)
        self._type_of = type_of
        self._certain = certain
        self._makers: dict[str, int] = {}
        self._users: dict[str, set[int]] = {}
        self._captured: dict[str, int] = {}
        for index, node in enumerate(definition.nodes):
            self._enter(index, node)

    @property
    def opset(self) -> int:
        """The version of ai.onnx."""
        return self.opset_imports.get("", self.opset_imports.get("ai.onnx", 1))

    def node(self, index: int) -> Node:
        """A node that is there."""
        node = self.nodes[index]
        assert node is not None, "rules are asked about nodes that are there"
        return node

    def living_nodes(self) -> list[tuple[int, Node]]:
        """Numbers and nodes, in topological order."""
        return [(i, node) for i, node in enumerate(self.nodes) if node is not None]

    def maker(self, name: str) -> tuple[int, Node] | None:
        """The node that makes a value in this graph."""
        index = self._makers.get(name)
        return None if index is None else (index, self.node(index))

    def users(self, name: str) -> list[int]:
        """Numbers of the nodes that have `name` among their inputs, ascending."""
        return sorted(self._users.get(name, ()))

    def is_pinned(self, name: str) -> bool:
        """Whether something besides nodes of this graph reads a value: an output or a body."""
        return name in self.finals or bool(self._captured.get(name))

    def is_read(self, name: str) -> bool:
        """Whether anything reads a value."""
        return bool(self._users.get(name)) or self.is_pinned(name)

    def sole_maker(self, name: str) -> tuple[int, Node] | None:
        """The node that makes a value which exactly one node and nothing else reads."""
        if self.is_pinned(name) or len(self._users.get(name, ())) != 1:
            return None
        return self.maker(name)

    def type_of(self, name: str) -> ValueType | None:
        """Declared or inferred type, of constants too; None if unknown."""
        tensor = self.constant(name)
        if tensor is not None:
            return TensorType(tensor.data_type, tensor.dims)
        value_type = self._types.get(name)
        if value_type is None and self.outer is not None and not self._defines(name):
            return self.outer.type_of(name)
        return (
            self._type_of(name) if value_type is None and self._type_of is not None else value_type
        )

    def element_type(self, name: str) -> int | None:
        """DataType of a tensor; None for anything else."""
        value_type = self.type_of(name)
        return value_type.elem_type if isinstance(value_type, TensorType) else None

    def shape(self, name: str) -> tuple[Dim, ...] | None:
        """Dimensions of a tensor of known rank."""
        value_type = self.type_of(name)
        return value_type.shape if isinstance(value_type, TensorType) else None

    def certain_shape(self, name: str) -> tuple[int, ...] | None:
        """The shape that a value has in every run; None if that is not certain."""
        return fixed_shape(self.certain_dims(name))

    def certain_dims(self, name: str) -> tuple[int | None, ...] | None:
        """The sizes that a value has in every run, None where they vary; None without the rank."""
        tensor = self.constant(name)
        if tensor is not None:
            return tuple(tensor.dims)
        if self.outer is not None:
            return None if self._defines(name) else self.outer.certain_dims(name)
        return self._certain(name) if self._certain is not None else None

    def constant(self, name: str) -> Tensor | None:
        """The constant called `name`, here or further out; None if a caller may override it."""
        if name in self.initializers:
            return None if name in self._open else self.initializers[name]
        if self.outer is not None and not self._defines(name):
            return self.outer.constant(name)
        return None

    def home(self, name: str) -> MutableGraph:
        """The graph, this or one further out, whose graph defines a name."""
        if self.outer is None or self._defines(name):
            return self
        return self.outer.home(name)

    def array(self, name: str) -> Array | None:
        """The elements of a constant tensor, read-only."""
        tensor = self.constant(name) if name else None
        return None if tensor is None else to_numpy(tensor)

    def replace(self, index: int, node: Node) -> None:
        """Put `node` in the place of another; everything it reads must be made before it."""
        self._leave(index, self.node(index))
        self.nodes[index] = node
        self._enter(index, node)

    def remove(self, index: int) -> None:
        """Remove a node whose outputs no other node reads."""
        self._leave(index, self.node(index))
        self.nodes[index] = None

    def remove_pair(self, first: int, second: int, node: Node) -> None:
        """Put `node` in the place of `second`, which alone reads what `first` makes."""
        self.replace(second, node)
        self.remove(first)

    def bypass(self, index: int, name: str) -> bool:
        """Let users of a node's first output read `name` instead, and take the node out.

        Returns:
            False, and nothing has changed, where a graph output or a body needs the output.
        """
        old = self.node(index).outputs[0]
        if self.is_pinned(old):
            return False
        if self.type_of(name) is None and old in self._types:
            self._types[name] = self._types[old]
        self.redirect(old, name)
        self.remove(index)
        return True

    def redirect(self, old: str, new: str) -> None:
        """Let the nodes that read `old` read `new`."""
        for user in self.users(old):
            node = self.node(user)
            inputs = tuple(new if name == old else name for name in node.inputs)
            self.replace(user, replace(node, inputs=inputs))

    def add_constant(self, base: str, array: Array) -> str:
        """A new initializer; its name starts with `base` and occurs nowhere else."""
        count = 0
        name = base
        while self._is_known(name):
            count += 1
            name = f"{base}_{count}"
        self.initializers[name] = from_numpy(array, name)
        return name

    def freeze(self) -> GraphDef:
        """The graph as it is now; the one that went in, where nothing has changed."""
        nodes = tuple(node for node in self.nodes if node is not None)
        before = self._definition
        same = len(nodes) == len(before.nodes) and all(map(_is, nodes, before.nodes))
        if same and self.initializers == dict(before.initializers):
            return before
        made = {name for node in nodes for name in node.outputs}
        kept = {n: info for n, info in before.value_info.items() if n in made}
        return replace(before, nodes=nodes, initializers=self.initializers, value_info=kept)

    def _is_known(self, name: str) -> bool:
        if self._defines(name) or name in self._types or self._captured.get(name):
            return True
        return self.outer is not None and self.outer._is_known(name)  # noqa: SLF001 - same class

    def _defines(self, name: str) -> bool:
        return name in self._makers or name in self.initializers or name in self.inputs

    def _enter(self, index: int, node: Node) -> None:
        for name in node.outputs:
            if name:
                self._makers[name] = index
        for name in node.inputs:
            if name:
                self._users.setdefault(name, set()).add(index)
        for name in _free(node):
            self._captured[name] = self._captured.get(name, 0) + 1

    def _leave(self, index: int, node: Node) -> None:
        for name in node.outputs:
            if self._makers.get(name) == index:
                del self._makers[name]
        for name in node.inputs:
            self._users.get(name, set()).discard(index)
        for name in _free(node):
            self._captured[name] -= 1


def _is(mine: Node, theirs: Node) -> bool:
    return mine is theirs


def _free(node: Node) -> Sequence[str]:
    return free_names(node) if node.attributes else ()


def _types(definition: GraphDef) -> dict[str, ValueType]:
    return {
        info.name: info.type
        for infos in (definition.value_info.values(), definition.inputs, definition.outputs)
        for info in infos
        if info.type is not None
    }


def fixed_shape(dims: Sequence[int | None] | None) -> tuple[int, ...] | None:
    """`dims` where all of them are known."""
    sizes = tuple(dim for dim in dims or () if dim is not None)
    return sizes if dims is not None and len(sizes) == len(dims) else None
