"""Transposes that cancel each other across the nodes between them.

TensorFlow computes in NHWC and ONNX's Conv in NCHW, so that exporters write a Transpose before and
behind each Conv, with a bias, a normalisation and an activation between. A region of such nodes is
computed in the order of the other side where that takes Transposes out of the graph.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.onnx_model import Node, TensorType, ValueInfo
from ort_lite.model.graph import declared_types, free_names
from ort_lite.model.tensor_values import from_numpy, to_numpy
from ort_lite.transforms.attributes import ints, ints_of
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS
from ort_lite.transforms.transposable import form_in_front, inverse

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from ctx_formats.onnx_model import GraphDef
    from ort_lite.transforms.transposable import Form

NAME = "TransposeOptimizer"
OPERATOR = "Transpose"
MOST_DIMENSIONS = 32
"""Of a permutation that is looked at; numpy has arrays of at most 64."""
Perm = tuple[int, ...]


def move_transposes(
    graph: GraphDef, opset: int, *, constant_inputs: bool = False
) -> tuple[GraphDef, int]:
    """`graph` with fewer Transposes, and how many fewer.

    Args:
        graph: Its nodes sorted.
        opset: Of ai.onnx.
        constant_inputs: As for `inline_constant_ifs`.
    """
    count = 0
    for perm in _perms(graph):
        graph, saved = _Regions(graph, perm, opset, constant_inputs=constant_inputs).rewrite()
        count += saved
    return graph, count


def _perms(graph: GraphDef) -> list[Perm]:
    """Each permutation whose inverse is there, too, in order."""
    perms = dict.fromkeys(perm for node in graph.nodes if (perm := _perm_of(node)) is not None)
    return [perm for perm in perms if inverse(perm) in perms and perm != tuple(range(len(perm)))]


def _perm_of(node: Node) -> Perm | None:
    if node.op_type != OPERATOR or node.domain not in ONNX_DOMAINS:
        return None
    perm = ints_of(node, "perm")
    if not perm or len(perm) > MOST_DIMENSIONS:
        return None
    return perm if sorted(perm) == list(range(len(perm))) else None


@dataclass(slots=True)
class _Region:
    """Nodes that move together.

    Attributes:
        members: Numbers of all its nodes, Transposes included.
        balance: Transposes that go, less those that come.
    """

    members: set[int] = field(default_factory=set)
    balance: int = 0


class _Regions:
    """The regions behind Transposes of one permutation.

    Attributes:
        graph: That they are in.
        perm: The permutation.
        forms: Nodes that may move, by number.
        ends: Numbers of Transposes back.
    """

    def __init__(self, graph: GraphDef, perm: Perm, opset: int, *, constant_inputs: bool) -> None:
        self.graph, self.perm = graph, perm
        self.forms: dict[int, Form] = {}
        self.ends: set[int] = set()
        self._back, self._opset = inverse(perm), opset
        inputs = frozenset() if constant_inputs else {info.name for info in graph.inputs}
        self._constants = {n: t for n, t in graph.initializers.items() if n not in inputs}
        self._readers: dict[str, list[int]] = defaultdict(list)
        self._pinned = {info.name for info in graph.outputs}
        for index, node in enumerate(graph.nodes):
            for name in node.inputs:
                self._readers[name].append(index)
            if node.attributes:
                self._pinned.update(free_names(node))
        self._maker: dict[str, int] = {}  # of each value that is a result of the permutation
        for index, node in enumerate(graph.nodes):
            self._place(index, node)

    def _place(self, index: int, node: Node) -> None:
        """Note what the node is to the permutation, knowing that of the nodes before it."""
        perm = _perm_of(node)
        if perm == self._back and node.inputs[0] in self._maker:
            self.ends.add(index)
        elif perm == self.perm:
            self._maker[node.outputs[0]] = index
        elif (
            perm is None
            and node.domain in ONNX_DOMAINS
            and any(name in self._maker for name in node.inputs)
        ):
            form = form_in_front(node, self.perm, self._opset, self._constant)
            moved = [at for at, name in enumerate(node.inputs) if name in self._maker]
            if form is None or moved != list(form.data):
                return
            self.forms[index] = form
            if form.keeps:
                self._maker.update((name, index) for name in node.outputs if name)

    def _constant(self, name: str) -> np.ndarray[Any, Any] | None:
        tensor = self._constants.get(name)
        return None if tensor is None else to_numpy(tensor)

    def rewrite(self) -> tuple[GraphDef, int]:
        """The graph with every region moved that pays, and the Transposes that this saves."""
        regions = [region for region in self._regions() if region.balance > 0]
        if not regions:
            return self.graph, 0
        moving = set().union(*(region.members for region in regions))
        return _Move(self, moving).graph(), sum(region.balance for region in regions)

    def _regions(self) -> Iterator[_Region]:
        group: dict[int, _Region] = {}
        for index in [*self._maker.values(), *self.forms, *self.ends]:
            group.setdefault(index, _Region({index}))
        for name, maker in self._maker.items():
            for reader in self._readers[name]:
                if reader in group and (reader in self.forms or reader in self.ends):
                    _join(group, maker, reader)
        for region in {id(region): region for region in group.values()}.values():
            region.balance = sum(map(self._balance, region.members))
            yield region

    def _balance(self, index: int) -> int:
        node = self.graph.nodes[index]
        if index in self.ends:
            return 1
        left = sum(self.is_read_outside(name) for name in node.outputs if name in self._maker)
        return 1 - left if node.op_type == OPERATOR else -left

    def is_read_outside(self, name: str) -> bool:
        """Whether something reads a value in the order behind the Transpose."""
        inside = self.forms.keys() | self.ends
        return name in self._pinned or any(reader not in inside for reader in self._readers[name])


class _Move:
    """A graph with regions in front of the Transposes that were before them."""

    def __init__(self, regions: _Regions, moving: set[int]) -> None:
        self._regions, self._moving = regions, moving
        self._before = regions.graph
        self._types = declared_types(self._before)
        self._names = {*self._before.initializers, *(info.name for info in self._before.inputs)}
        self._names.update(name for node in self._before.nodes for name in node.outputs)
        self._names.update(name for node in self._before.nodes for name in free_names(node))
        self._in_front: dict[str, str] = {}
        self._nodes: list[Node] = []
        self._added = dict(self._before.initializers)
        self._infos = dict(self._before.value_info)

    def graph(self) -> GraphDef:
        """The graph."""
        for index, node in enumerate(self._before.nodes):
            if index not in self._moving:
                self._nodes.append(node)
            elif index in self._regions.forms:
                self._move(node, self._regions.forms[index])
            elif index in self._regions.ends:
                source = self._in_front[node.inputs[0]]
                self._nodes.append(
                    replace(node, op_type="Identity", inputs=(source,), attributes={})
                )
            else:
                self._in_front[node.outputs[0]] = node.inputs[0]
                if self._regions.is_read_outside(node.outputs[0]):
                    self._nodes.append(node)
        made = {name for node in self._nodes for name in node.outputs}
        return replace(
            self._before,
            nodes=tuple(self._nodes),
            initializers=self._added,
            value_info={name: info for name, info in self._infos.items() if name in made},
        )

    def _move(self, node: Node, form: Form) -> None:
        inputs = list(node.inputs)
        for position in form.data:
            inputs[position] = self._in_front[inputs[position]]
        for position, array in form.constants.items():
            name = self._new_name(inputs[position])
            self._added[name] = from_numpy(array, name)
            inputs[position] = name
        outputs = node.outputs
        if form.keeps:
            outputs = tuple(name and self._output(name) for name in node.outputs)
        self._nodes.append(
            replace(node, inputs=tuple(inputs), outputs=outputs, attributes=form.attributes)
        )
        for name in node.outputs if form.keeps else ():
            if name and self._regions.is_read_outside(name):
                attributes = ints("perm", self._regions.perm)
                source = (self._in_front[name],)
                self._nodes.append(Node(OPERATOR, source, (name,), attributes=attributes))

    def _output(self, name: str) -> str:
        new = self._in_front[name] = self._new_name(name)
        value_type = self._types.get(name)
        if isinstance(value_type, TensorType):
            dims = value_type.shape
            if dims is not None and len(dims) == len(self._regions.perm):
                dims = tuple(dims[axis] for axis in inverse(self._regions.perm))
            self._infos[new] = ValueInfo(new, TensorType(value_type.elem_type, dims))
        return new

    def _new_name(self, base: str) -> str:
        name = f"{base}_untransposed"
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _join(group: dict[int, _Region], first: int, second: int) -> None:
    large, small = group[first], group[second]
    if large is small:
        return
    if len(large.members) < len(small.members):
        large, small = small, large
    large.members |= small.members
    group.update(dict.fromkeys(small.members, large))
