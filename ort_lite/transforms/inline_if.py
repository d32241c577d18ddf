"""Replaces If nodes whose condition is a constant by the nodes of the branch that it selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import DataType, GraphDef, Node, ValueInfo
from ort_lite.model.bodies import bodies, map_bodies, walk
from ort_lite.model.tensor_values import to_numpy
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctx_formats.onnx_model import Tensor, ValueType

NAME = "IfInlining"
MAX_DEPTH = 64
"""Bodies inside bodies; deeper ones are left as they are."""

BRANCHES = {True: "then_branch", False: "else_branch"}


def inline_constant_ifs(graph: GraphDef, *, constant_inputs: bool = False) -> tuple[GraphDef, int]:
    """`graph` with each If of a constant condition replaced by the branch, and their number.

    ONNX If-1 to If-25. Ifs in bodies are replaced, too; those in a branch that comes out here are
    left to the next call, which knows more types. A name of a branch changes where the model has
    another value of that name.

    Args:
        graph: Of a model.
        constant_inputs: Whether an initializer that is also an input is a constant (true below IR
            version 4).
    """
    if not any(node.op_type == "If" for part in walk(graph) for node in part.nodes):
        return graph, 0
    work = BranchInlining(graph)
    constants = {
        name: tensor
        for name, tensor in graph.initializers.items()
        if constant_inputs or all(name != info.name for info in graph.inputs)
    }
    return work.inline(graph, constants, 0), work.count


class BranchInlining:
    """One pass over a model.

    Attributes:
        count: Ifs replaced so far.
    """

    def __init__(self, graph: GraphDef) -> None:
        """Note the names of a model, so that new ones differ from them.

        Args:
            graph: Of the model.
        """
        self.count = 0
        self._defined: dict[str, int] = {}
        for part in walk(graph):
            for name in defined_names(part):
                self._defined[name] = self._defined.get(name, 0) + 1

    def inline(self, graph: GraphDef, constants: Mapping[str, Tensor], depth: int) -> GraphDef:
        """`graph` and its bodies without Ifs of constant conditions.

        Args:
            graph: The graph of the model or a body.
            constants: Those that are visible in it, its own included.
            depth: How many graphs are around it.
        """
        nodes: list[Node] = []
        initializers, value_info = dict(graph.initializers), dict(graph.value_info)
        before = self.count

        def inline_body(body: GraphDef) -> GraphDef:
            own = defined_names(body)
            visible = {name: tensor for name, tensor in constants.items() if name not in own}
            return self.inline(body, {**visible, **body.initializers}, depth + 1)

        for node in graph.nodes:
            branch = _selected_branch(node, constants)
            if branch is None:
                nodes.append(map_bodies(node, inline_body) if depth < MAX_DEPTH else node)
                continue
            self.count += 1
            part = self.expand(node, branch)
            nodes += part.nodes
            initializers |= part.initializers
            value_info |= part.value_info
        if self.count == before:
            return graph
        return replace(graph, nodes=tuple(nodes), initializers=initializers, value_info=value_info)

    def expand(self, node: Node, branch: GraphDef) -> GraphDef:
        """The branch under names that are free outside, its outputs under those of the If."""
        names = self._fresh_names(branch)
        made = {name for inner in branch.nodes for name in inner.outputs}
        copies: list[Node] = []
        types = _declared_types(branch)
        outputs: dict[str, str] = {}
        for info, target in zip(branch.outputs, node.outputs, strict=True):
            if target and info.name in made and info.name not in outputs:
                outputs[info.name] = target
            elif target:
                source = outputs.get(info.name) or names.get(info.name, info.name)
                copies.append(Node(op_type="Identity", inputs=(source,), outputs=(target,)))
        names |= outputs
        renamed = rename_values(branch, names)
        kept = {names.get(name, name): value_type for name, value_type in types.items()}
        return replace(
            renamed,
            nodes=(*renamed.nodes, *copies),
            value_info={name: ValueInfo(name, value_type) for name, value_type in kept.items()},
        )

    def _fresh_names(self, branch: GraphDef) -> dict[str, str]:
        """New names of those values of a branch that have a namesake elsewhere in the model."""
        names = {}
        for name in defined_names(branch):
            if self._defined[name] == 1:
                continue
            names[name] = self.fresh_name(name)
        return names

    def fresh_name(self, name: str) -> str:
        """A name like another that no value of the model has."""
        count = 1
        while f"{name}_{count}" in self._defined:
            count += 1
        self._defined[fresh := f"{name}_{count}"] = 1
        return fresh


def _selected_branch(node: Node, constants: Mapping[str, Tensor]) -> GraphDef | None:
    """The branch of an If that every run takes; None for anything else."""
    if node.op_type != "If" or node.domain not in ONNX_DOMAINS or len(node.inputs) != 1:
        return None
    tensor = constants.get(node.inputs[0])
    if tensor is None or tensor.data_type != DataType.BOOL:
        return None
    condition = to_numpy(tensor)
    if condition.size != 1:  # the kernel says what is wrong with it
        return None
    branch = dict(bodies(node)).get(BRANCHES[bool(condition.item(0))])
    if branch is None or branch.inputs or branch.sparse_initializers:
        return None
    inner = {name for part in walk(branch) if part is not branch for name in defined_names(part)}
    if not inner.isdisjoint(node.outputs):  # a body in the branch would hide a result of the If
        return None
    return branch if len(branch.outputs) == len(node.outputs) else None


def defined_names(graph: GraphDef) -> tuple[str, ...]:
    """Names of the values that a graph itself defines."""
    names = [info.name for info in graph.inputs]
    names += [*graph.initializers, *graph.sparse_initializers]
    names += [name for node in graph.nodes for name in node.outputs if name]
    return tuple(dict.fromkeys(names))


def _declared_types(graph: GraphDef) -> dict[str, ValueType]:
    infos: Iterable[ValueInfo] = (*graph.outputs, *graph.value_info.values())
    return {info.name: info.type for info in infos if info.type is not None}


def rename_node(node: Node, names: Mapping[str, str]) -> Node:
    """`node` with other names of values, in bodies as far as they mean the same values."""

    def rename_body(body: GraphDef) -> GraphDef:
        own = defined_names(body)
        visible = {old: new for old, new in names.items() if old not in own}
        return rename_values(body, visible) if visible.keys() & set(body.free_names) else body

    node = map_bodies(node, rename_body)
    return replace(
        node,
        inputs=tuple(names.get(name, name) for name in node.inputs),
        outputs=tuple(names.get(name, name) for name in node.outputs),
    )


def rename_values(graph: GraphDef, names: Mapping[str, str]) -> GraphDef:
    """`graph` with other names of values, in bodies as far as they mean the same values."""
    if not names:
        return graph

    def rename_info(info: ValueInfo) -> ValueInfo:
        return replace(info, name=names.get(info.name, info.name))

    return replace(
        graph,
        nodes=tuple(rename_node(node, names) for node in graph.nodes),
        outputs=tuple(map(rename_info, graph.outputs)),
        initializers={
            names.get(name, name): replace(tensor, name=names.get(name, name))
            for name, tensor in graph.initializers.items()
        },
        value_info={
            names.get(name, name): rename_info(info) for name, info in graph.value_info.items()
        },
    )
