"""Values that a Loop hands from one iteration to the next without changing them.

TensorFlow's and PaddlePaddle's exporters make states of whatever a loop reads, weights included.
A body may read values around it by their names, where constants are constants to whoever compiles
the body, and no iteration hands anything on.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Node
from ort_lite.model.bodies import walk, with_bodies
from ort_lite.transforms.inline_if import defined_names, rename_values
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef

NAME = "LoopStateElimination"
FIXED = 2
"""Inputs of a Loop and of its body before the states: ONNX Loop-1 to Loop-25."""


def capture_constant_states(graph: GraphDef) -> tuple[GraphDef, int]:
    """`graph` with the bodies of its Loops reading such values from around them, their number.

    Args:
        graph: Of a model; Loops inside bodies are left as they are.
    """
    nodes: list[Node] = []
    count = 0
    for node in graph.nodes:
        states = _constant_states(node)
        if not states:
            nodes.append(node)
            continue
        count += len(states)
        nodes += _capture(node, states)
    return (replace(graph, nodes=tuple(nodes)) if count else graph), count


def body_of(node: Node) -> GraphDef | None:
    """The body of a Loop that has as many inputs and outputs as its operator asks for."""
    if node.op_type != "Loop" or node.domain not in ONNX_DOMAINS or len(node.inputs) < FIXED:
        return None
    attribute = node.attributes.get("body")
    body: GraphDef | None = attribute.value if attribute is not None else None  # type: ignore[assignment]
    states = len(node.inputs) - FIXED
    fits = (
        body is not None
        and len(body.inputs) == FIXED + states
        and len(body.outputs) >= 1 + states
        and len(node.outputs) == len(body.outputs) - 1
    )
    return body if fits else None


def _constant_states(node: Node) -> list[int]:
    """Numbers of the states that the body returns as it got them."""
    body = body_of(node)
    if body is None:
        return []
    origins: dict[str, str] = {}  # of copies
    for n in body.nodes:
        if n.op_type == "Identity":
            origins[n.outputs[0]] = origins.get(n.inputs[0], n.inputs[0])
    results = Counter(info.name for info in body.outputs)
    inside = Counter(name for part in walk(body) for name in defined_names(part))
    states = []
    for number, outer in enumerate(node.inputs[FIXED:]):
        name, result = body.inputs[FIXED + number].name, body.outputs[1 + number].name
        is_another = results[name] > (result == name)
        is_same = origins.get(result, result) == name
        # PaddlePaddle's exporter gives a weight the same name in the body and around it.
        is_hidden = inside[outer] > (outer == name)
        if is_same and outer and not is_hidden and not is_another:
            states.append(number)
    return states


def _capture(node: Node, states: list[int]) -> list[Node]:
    """The Loop without these states, and copies of them for those who read its outputs."""
    body = body_of(node)
    assert body is not None, "it has states"
    gone = set(states)
    names = {body.inputs[FIXED + s].name: node.inputs[FIXED + s] for s in states}
    copies = [
        Node("Identity", (node.inputs[FIXED + s],), (node.outputs[s],))
        for s in states
        if node.outputs[s]
    ]
    # The body's own outputs are taken away first: they may be the values that are renamed.
    smaller = replace(
        body,
        inputs=tuple(v for i, v in enumerate(body.inputs) if i - FIXED not in gone),
        outputs=tuple(v for i, v in enumerate(body.outputs) if i - 1 not in gone),
    )
    smaller = rename_values(smaller, names)
    loop = replace(
        node,
        inputs=tuple(v for i, v in enumerate(node.inputs) if i - FIXED not in gone),
        outputs=tuple(v for i, v in enumerate(node.outputs) if i not in gone),
    )
    return [with_bodies(loop, [smaller]), *copies]
