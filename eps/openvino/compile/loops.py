"""Keeps what comes into a Loop's body until its iteration ends.

OpenVINO's CPU plug-in takes the memory of a body's inputs for other values once nothing in the body
reads them any more, and writes results over them (seen with 2026.4.1): what comes from around the
body is another value in the next iteration then, and a state is overwritten before a result in its
memory was handed on. Here each input is a result of the body, too, which goes nowhere, and values
from around the body are states that it gives back as it got them. Without the former 12 of 1,500
random Loops gave other numbers, without the latter 145. Constants are never overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import GraphDef, Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    import openvino

    from ctx_formats.onnx_model import ValueInfo
    from ort_lite.ep import Graph

LOOP = "Loop"
"""Name of ONNX's operator and of OpenVINO's."""
FIXED = 2
"""Inputs of a Loop and of its body before the states."""


def keep_inputs(model: openvino.Model) -> None:
    """Add, in place, a result for each input that the body of a Loop reads."""
    from eps.openvino.sdk.binding import ov  # noqa: PLC0415 - lazy: reload

    for node in model.get_ops():
        if node.get_type_name() == LOOP:
            body = node.get_function()
            inputs = [one.output(0) for one in body.get_parameters()]
            body.add_results([ov.op.Result(one) for one in inputs if one.get_target_inputs()])


def carry_captured(definition: GraphDef, graph: Graph) -> GraphDef:
    """`definition` with Loops whose bodies get values from around them as states.

    Args:
        definition: The partition's.
        graph: The partition: its Loops, whose bodies have none, and types of its values.
    """
    captured = {
        node.outputs: {name: graph.info(name) for body in bodies for name in body.captured}
        for index, node in enumerate(graph.nodes)
        if node.op_type == LOOP and (bodies := graph.bodies(index).values())
    }
    taken = _names_of(definition)
    nodes = (
        _carry(node, captured[node.outputs], taken) if captured.get(node.outputs) else node
        for node in definition.nodes
    )
    return replace(definition, nodes=tuple(nodes))


def _names_of(graph: GraphDef) -> set[str]:
    names = {name for node in graph.nodes for name in (*node.inputs, *node.outputs)}
    return names | {info.name for info in graph.inputs} | graph.initializers.keys()


def _carry(loop: Node, captured: Mapping[str, ValueInfo], taken: set[str]) -> Node:
    """`loop` with these values as states that its body gives back as it got them.

    New names are added to those that are `taken`.
    """
    attribute = loop.attributes["body"]
    body = attribute.value
    assert isinstance(body, GraphDef), "support/loops.py has seen it"
    taken |= _names_of(body)
    state = {name: _fresh_name(name, "state", taken) for name in captured}
    kept = {name: _fresh_name(name, "kept", taken) for name in captured}
    last = tuple(_fresh_name(name, "last", taken) for name in captured)
    states = len(loop.inputs) - FIXED
    given_back = tuple(replace(info, name=kept[name]) for name, info in captured.items())
    results = tuple(replace(info, name=state.get(info.name, info.name)) for info in body.outputs)
    inner = replace(
        body,
        nodes=(
            *(replace(n, inputs=tuple(state.get(x, x) for x in n.inputs)) for n in body.nodes),
            *(Node("Identity", (state[name],), (kept[name],)) for name in captured),
        ),
        inputs=(*body.inputs, *(replace(v, name=state[n]) for n, v in captured.items())),
        outputs=(*results[: 1 + states], *given_back, *results[1 + states :]),
    )
    return replace(
        loop,
        inputs=(*loop.inputs, *captured),
        outputs=(*loop.outputs[:states], *last, *loop.outputs[states:]),
        attributes={**loop.attributes, "body": replace(attribute, value=inner)},
    )


def _fresh_name(name: str, suffix: str, taken: set[str]) -> str:
    """A name like another that is not among `taken`; it is added."""
    fresh, count = f"{name}/{suffix}", 1
    while fresh in taken:
        fresh, count = f"{name}/{suffix}_{count}", count + 1
    taken.add(fresh)
    return fresh
