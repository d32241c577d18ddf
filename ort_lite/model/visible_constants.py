"""Constants where onnx's inference sees them: in the body that reads them.

It looks for the elements of a constant, such as axes and shapes, in the initializers of the graph
that a node is in, and not in those of the graphs around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.model.bodies import map_graph_bodies

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Tensor


def show_constants(graph: GraphDef) -> GraphDef:
    """`graph` with bodies that have the constants which they read from around them as their own.

    Itself where no body reads any. An initializer that is also an input of its graph is
    not a constant: a caller may override it.
    """
    return _show(graph, {})


def _show(graph: GraphDef, around: dict[str, Tensor]) -> GraphDef:
    """As `show_constants`, with those constants that are visible around `graph`."""
    inputs = {info.name for info in graph.inputs}
    own = {name: tensor for name, tensor in graph.initializers.items() if name not in inputs}
    hidden = inputs | {name for node in graph.nodes for name in node.outputs}
    before = {name: around.pop(name) for name in (*hidden, *own) if name in around}
    around |= own
    shown = map_graph_bodies(graph, lambda body: _show_body(body, around))
    for name in own:
        del around[name]
    around |= before
    return shown


def _show_body(body: GraphDef, around: dict[str, Tensor]) -> GraphDef:
    defined = {info.name for info in body.inputs} | body.initializers.keys()
    defined |= {name for node in body.nodes for name in node.outputs}
    read = {name for node in body.nodes for name in node.inputs} - defined
    constants = {name: around[name] for name in sorted(read) if name in around}
    shown = _show(body, around)
    if not constants:
        return shown
    return replace(shown, initializers={**shown.initializers, **constants})
