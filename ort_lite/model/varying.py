"""Values whose shape changes from one run of a Loop body to the next, whatever the file declares.

A declared shape counts where inference finds none. It does not where inference is blind because
the value has more than one shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import TensorType
from ort_lite.model.bodies import bodies, map_graph_bodies
from ort_lite.model.declared_types import contradict
from ort_lite.model.graph import declared_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctx_formats.onnx_model import GraphDef, Node, ValueInfo, ValueType

    Types = Mapping[str, ValueType]
    Bodies = tuple[GraphDef, GraphDef]

_CARRIED = 1
"""Of a Loop and of its body, the first input that the body gives back: its condition."""


def varying_values(inferred: GraphDef, bare: GraphDef, names: frozenset[str]) -> frozenset[str]:
    """`names` and those of further values without a constant shape.

    It starts with values that a Loop carries and that come back in another shape, and with
    results of an If in a Loop body whose branches give different shapes. An If elsewhere chooses
    once in a run, mostly the same branch in all; what is declared of its results is believed.
    It goes on with what is computed from these, unless inference knows the shape all the same.

    Args:
        inferred: A graph with inferred types, and declared ones where inference is blind.
        bare: The same with inferred types alone.
        names: Of values that are known to vary. Sibling bodies share their names.
    """
    known = set(names)
    while True:
        before = len(known)
        _spread((inferred, bare), known, {}, looped=False)
        if len(known) == before:
            return frozenset(known)


def without_shapes(graph: GraphDef, names: frozenset[str]) -> GraphDef:
    """`graph` and its bodies without the shapes that they declare of the values `names`."""

    def remove_shape(info: ValueInfo) -> ValueInfo:
        if info.name not in names or not isinstance(info.type, TensorType):
            return info
        return replace(info, type=TensorType(info.type.elem_type))

    shapeless = replace(
        graph,
        inputs=tuple(map(remove_shape, graph.inputs)),
        outputs=tuple(map(remove_shape, graph.outputs)),
        value_info={name: remove_shape(info) for name, info in graph.value_info.items()},
    )
    return map_graph_bodies(shapeless, lambda body: without_shapes(body, names))


def _spread(graphs: Bodies, names: set[str], outer: Types, *, looped: bool) -> None:
    """Add to `names`; `looped` if the graphs are inside a Loop body."""
    inferred, bare = graphs
    types = {**outer, **declared_types(bare)}
    types.update({n: TensorType(t.data_type, t.dims) for n, t in bare.initializers.items()})
    for mine, theirs in zip(inferred.nodes, bare.nodes, strict=True):
        pairs = [(a, b) for (_, a), (_, b) in zip(bodies(mine), bodies(theirs), strict=True)]
        if not pairs:
            if not names.isdisjoint(mine.inputs):
                names.update(n for n in mine.outputs if n and not _is_settled(types.get(n)))
            continue
        is_loop = mine.op_type == "Loop" and mine.domain == ""
        for pair in pairs:
            _enter(mine, pair[0], names, is_loop=is_loop)
            _spread(pair, names, types, looped=looped or is_loop)
            for name, info in _results(mine, pair[0]):
                if info.name in names and not _is_settled(types.get(name)):
                    names.add(name)
        if looped and mine.op_type == "If" and mine.domain == "":
            names.update(_differing_results(mine, [pair[1] for pair in pairs], types))
    names.discard("")


def _enter(node: Node, body: GraphDef, names: set[str], *, is_loop: bool) -> None:
    """Add the inputs of a body that vary."""
    if not is_loop:
        if not names.isdisjoint(node.inputs):
            names.update(info.name for info in body.inputs)
        return
    types = declared_types(body)
    given_back = (info.name for info in body.outputs)
    for info, fed, back in zip(
        body.inputs[_CARRIED:], node.inputs[_CARRIED:], given_back, strict=False
    ):
        changes = contradict(info.type, types.get(back))
        if changes or back in names or fed in names:
            names.add(info.name)


def _results(node: Node, body: GraphDef) -> Iterator[tuple[str, ValueInfo]]:
    """Each output of a node with that of its body which it comes from."""
    made = body.outputs[1:] if node.op_type == "Loop" else body.outputs
    return zip(node.outputs, made, strict=False)


def _differing_results(node: Node, branches: list[GraphDef], outer: Types) -> Iterator[str]:
    """The results of an If whose branches give different shapes."""
    first, second = ({**outer, **declared_types(branch)} for branch in branches)
    for name, a, b in zip(node.outputs, branches[0].outputs, branches[1].outputs, strict=False):
        if contradict(first.get(a.name), second.get(b.name)):
            yield name


def _is_settled(value_type: ValueType | None) -> bool:
    """Whether inference knows every size."""
    if not isinstance(value_type, TensorType) or value_type.shape is None:
        return False
    return all(isinstance(dim, int) and dim >= 0 for dim in value_type.shape)
