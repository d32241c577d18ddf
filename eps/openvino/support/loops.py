"""Loops that OpenVINO runs itself, with their bodies (ONNX Loop-1 to Loop-25; 2026.4.1 on CPU).

A body is a graph that the session would otherwise run node by node, in each iteration. Trip counts,
conditions, states and collected values are right in OpenVINO; what it overwrites is not
(eps/openvino/compile/loops.py). Rewritings that a partition gets do not reach into bodies, so that
a body has only what OpenVINO computes as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.openvino.compile.convert import REDUCING
from eps.openvino.compile.loops import FIXED
from eps.openvino.compile.reductions import RANK
from eps.openvino.compile.rewrite import rewrite_partition
from eps.openvino.compile.rotations import adds_products, may_rotate
from eps.openvino.support.magnitudes import Magnitude, Magnitudes
from eps.openvino.support.node_facts import NodeFacts
from eps.openvino.support.ranks import rank_problem
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_formats.onnx_model import Node
    from eps.openvino.support.table import SupportTable
    from ort_lite.ep import Graph

FIRST_RELEASE = (2026, 4)
MOST_ITERATIONS = 1 << 24
"""By a constant trip count, up to which a counter is followed."""
_KEEPING = frozenset(("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"))
"""Operators that keep the magnitude of a counter."""


def loop_problem(
    facts: NodeFacts, table: SupportTable, refusal: Callable[[NodeFacts, SupportTable], str]
) -> str:
    """Why OpenVINO does not get a Loop; "" if it does.

    Args:
        facts: About the Loop.
        table: Operators that OpenVINO computes correctly.
        refusal: Says of a node without bodies why OpenVINO does not get it; "" if it does.
    """
    graph, node = facts.graph, facts.node
    body = graph.bodies(facts.index).get("body")
    states = len(node.inputs) - FIXED
    if facts.release < FIRST_RELEASE:
        return "OpenVINO: Loops are shown to be right from 2026.4 on"
    if body is None or states < 0 or len(body.inputs) != FIXED + states:
        return "OpenVINO: this form of Loop is not converted"
    if len(node.outputs) != len(body.outputs) - 1 or len(node.outputs) < states:
        return "OpenVINO: this form of Loop is not converted"
    if len(node.outputs) > states and not _runs(facts):
        return "OpenVINO: what a Loop collects has no elements if it never runs"
    if not all(isinstance(info.type, TensorType) for info in (*body.inputs, *body.outputs)):
        return "OpenVINO: a state or a result of the Loop's body is not a tensor"
    if any(body.bodies(index) for index in range(len(body.nodes))):
        return "OpenVINO: the Loop's body has bodies itself"
    magnitudes = _follow_counters(facts, body)
    for index, inner in enumerate(body.nodes):
        about = NodeFacts(body, index, magnitudes, facts.release)
        if reason := rank_problem(about) or refusal(about, table):
            return f"in the Loop's body, {inner.op_type}: {reason}"
    fused = next((n.op_type for n in body.nodes if _may_be_fused(body, n)), "")
    if fused or (may_rotate(body) and adds_products(body)) or _is_rewritten(body):
        return f"OpenVINO: {fused or 'an operator'} of the Loop's body would have to be rewritten"
    return ""


def _may_be_fused(body: Graph, node: Node) -> bool:
    """Whether a node is a reduction that OpenVINO may fuse with constants of other channels."""
    if not node.op_type.startswith("Reduce"):
        return node.op_type.startswith(REDUCING)
    value_type = body.type_of(node.inputs[0])
    shape = value_type.shape if isinstance(value_type, TensorType) else None
    return shape is None or len(shape) == RANK


def _is_rewritten(body: Graph) -> bool:
    """Whether a partition of the body's nodes would get other nodes or exact quotients."""
    rewritten = rewrite_partition(body, kind="CPU")
    return bool(rewritten.quotients) or rewritten.definition.nodes != body.definition.nodes


def _runs(facts: NodeFacts) -> bool:
    """Whether every run comes to the body: both limits let it."""
    trips, condition = (facts.constant(i) for i in range(FIXED))
    if facts.has_input(1) and (condition is None or not to_numpy(condition).all()):
        return False
    if trips is not None:
        return bool(to_numpy(trips).min(initial=1) > 0)
    return not facts.has_input(0)


def _follow_counters(facts: NodeFacts, body: Graph) -> Magnitudes:
    """Magnitudes inside a body, with bounds of its counters where the number of trips has one."""
    trips = facts.constant(0)
    most = int(to_numpy(trips).max(initial=0)) if trips is not None else MOST_ITERATIONS + 1
    known: dict[str, Magnitude] = {}
    if most <= MOST_ITERATIONS:
        known[body.inputs[0].name] = Magnitude(max(most, 0))
        constants = Magnitudes(body)
        for place, info in enumerate(body.inputs[FIXED:]):
            first = facts.magnitudes.of(facts.node.inputs[FIXED + place])
            step = _find_step(body, constants, body.outputs[1 + place].name, info.name)
            if first is not None and step is not None:
                known[info.name] = first._replace(largest=first.largest + step * most)
    return Magnitudes(body, known)


def _find_step(body: Graph, constants: Magnitudes, result: str, state: str) -> float | None:
    """By how much a counter changes in an iteration, at most; None for what is not one.

    A counter is a state to which a body adds constants, casts and changes of its shape aside.
    """
    step = 0.0
    while result != state:
        index = body.producer(result)
        node = body.nodes[index] if index is not None else None
        if node is None or node.domain:
            return None
        name = node.inputs[0] if node.inputs else ""
        if node.op_type in ("Add", "Sub"):
            name, other = node.inputs
            if node.op_type == "Add" and body.constant(name) is not None:
                name, other = other, name
            added = constants.of(other) if body.constant(other) is not None else None
            if added is None:
                return None
            step += added.largest
        elif node.op_type not in _KEEPING:
            return None
        result = name
    return step
