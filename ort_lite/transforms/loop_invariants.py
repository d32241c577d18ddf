"""Products in the body of a Loop that are the same in every iteration, computed before it.

A decoder whose steps are iterations projects the encoder's result to keys and values in each of
them, since a body is exported as the layer is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.model.bodies import bodies, with_bodies
from ort_lite.transforms.inline_if import BranchInlining, defined_names, rename_node, rename_values
from ort_lite.transforms.loop_states import FIXED, body_of
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS, MutableGraph
from ort_lite.transforms.subexpressions import NONDETERMINISTIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import GraphDef, Node

NAME = "LoopInvariantMotion"
PRODUCTS = frozenset(
    ("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "MatMulInteger", "ConvInteger")
)
"""What is worth another value that each iteration reads from around the body."""


def move_invariants(
    graph: GraphDef, opset_imports: Mapping[str, int], *, constant_inputs: bool = False
) -> tuple[GraphDef, int]:
    """`graph` with such products, and nodes that read their results, before Loops; their number.

    ONNX Loop-1 to Loop-25. Only where a run comes to the body at least once, so that what fails
    before the Loop would have failed in it.

    Args:
        graph: Of a model; Loops inside bodies are left as they are.
        opset_imports: Of the model.
        constant_inputs: Whether an initializer that is also an input is a constant (true below IR
            version 4).
    """
    if all(node.op_type != "Loop" for node in graph.nodes):
        return graph, 0
    values = MutableGraph(graph, opset_imports, constant_inputs=constant_inputs)
    names = BranchInlining(graph)
    nodes: list[Node] = []
    initializers, value_info = dict(graph.initializers), dict(graph.value_info)
    count = 0
    for node in graph.nodes:
        body = body_of(node) if _runs(values, node) else None
        invariants = _find_invariants(body) if body is not None else None
        if body is None or invariants is None:
            nodes.append(node)
            continue
        moved, results = invariants
        count += len(moved)
        made = {name for n in moved for name in n.outputs if name}
        constants = {name for n in moved for name in n.inputs if name in body.initializers}
        fresh = {name: names.fresh_name(name) for name in sorted(made | constants)}
        for name in constants:
            initializers[fresh[name]] = replace(body.initializers[name], name=fresh[name])
        for name in made & body.value_info.keys():
            value_info[fresh[name]] = replace(body.value_info[name], name=fresh[name])
        nodes += [rename_node(n, fresh) for n in moved]
        nodes.append(with_bodies(node, [_without(body, results, fresh)]))
    if not count:
        return graph, 0
    changed = replace(graph, nodes=tuple(nodes), initializers=initializers, value_info=value_info)
    return changed, count


def _runs(graph: MutableGraph, node: Node) -> bool:
    """Whether every run comes to the body of a Loop: both limits are constants that let it."""
    if node.op_type != "Loop" or len(node.inputs) < FIXED:
        return False
    for name in filter(None, node.inputs[:FIXED]):
        limit = graph.array(name)
        if limit is None or limit.size != 1 or limit.item() < 1:
            return False
    return True


def _find_invariants(body: GraphDef) -> tuple[list[Node], set[str]] | None:
    """Nodes that may run before the Loop, and the values that iterations then read from there.

    Products that read no state, nodes that read only their results, and what these need; None
    where there is no product.
    """
    own = set(defined_names(body)) - set(body.initializers)
    finals = {info.name for info in body.outputs}
    makers: dict[str, Node] = {}
    results: set[str] = set()
    needed: set[int] = set()
    for node in body.nodes:
        is_invariant = (
            node.domain in ONNX_DOMAINS
            and node.op_type not in NONDETERMINISTIC
            and not bodies(node)
            and finals.isdisjoint(node.outputs)
            and all(name in makers or name not in own for name in node.inputs)
        )
        if not is_invariant:
            continue
        made = set(filter(None, node.outputs))
        makers |= dict.fromkeys(made, node)
        if node.op_type in PRODUCTS or not results.isdisjoint(node.inputs):
            results |= made
            needed.add(id(node))
    for node in reversed(body.nodes):
        if id(node) in needed:
            needed |= {id(makers[name]) for name in node.inputs if name in makers}
    return ([node for node in body.nodes if id(node) in needed], results) if results else None


def _without(body: GraphDef, results: set[str], fresh: Mapping[str, str]) -> GraphDef:
    """`body` reading results of moved products by their new names.

    What the products need stays where others read it, too, such as sizes: each value that a body
    reads from around it costs something in every iteration. The rest is removed as unused.
    """
    kept = tuple(node for node in body.nodes if results.isdisjoint(node.outputs))
    return rename_values(replace(body, nodes=kept), {name: fresh[name] for name in results})
