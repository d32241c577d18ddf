"""Loops that read only constants: PyTorch's `as_strided` makes its indices in one.

Every run makes them again, on whatever EP runs loops, and the nodes after them have no known size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import GraphDef, ValueInfo
from ort_lite.model.bodies import walk_nodes
from ort_lite.model.graph import free_names
from ort_lite.model.tensor_values import from_numpy
from ort_lite.session_log import get_logger
from ort_lite.transforms.fold_constants import fits_declaration
from ort_lite.transforms.loop_states import body_of
from ort_lite.transforms.mutable_graph import ONNX_DOMAINS, MutableGraph
from ort_lite.transforms.subexpressions import NONDETERMINISTIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Node
    from ort_lite.transforms.fold_constants import Evaluate

log = get_logger(__name__)

NAME = "LoopFolding"
MAX_TRIPS = 64
"""So often a body runs at most while a session is made: it may be large."""
MAX_BYTES = 1 << 24
"""Of the results of one Loop. Their size is unknown before they are there."""
NESTED = frozenset(("Loop", "Scan", "SequenceMap"))
"""In a body these may run any number of times."""
EMPTY_SEQUENCE = "SequenceEmpty"


def fold_constant_loops(
    graph: GraphDef,
    opset_imports: Mapping[str, int],
    evaluate: Evaluate,
    *,
    max_output: int = MAX_BYTES,
    constant_inputs: bool = False,
) -> tuple[GraphDef, int]:
    """`graph` with constants in place of the results of Loops without other inputs, their number.

    ONNX Loop-1 to Loop-25. A state may begin as an empty sequence (SequenceEmpty-11), but what is
    read of the results must be tensors. Loops inside bodies are left as they are, for a run may not
    come to them.

    Args:
        graph: Of a model.
        opset_imports: Of the model.
        evaluate: Computes the outputs of a graph without inputs; None if it cannot.
        max_output: Bytes of one constant.
        constant_inputs: Whether an initializer that is also an input is a constant (true below IR
            version 4).
    """
    if all(node.op_type != "Loop" for node in graph.nodes):
        return graph, 0
    mutable = MutableGraph(graph, opset_imports, constant_inputs=constant_inputs)
    folded = 0
    for index, node in mutable.living_nodes():
        if _is_constant(mutable, node):
            values = _results(mutable, node, evaluate)
            if values is not None and _is_small(values, max_output):
                mutable.remove(index)
                for name, value in values.items():
                    mutable.initializers[name] = from_numpy(value, name)
                folded += 1
    return (mutable.freeze() if folded else graph), folded


def _is_constant(graph: MutableGraph, node: Node) -> bool:
    """Whether a node is a Loop of few iterations whose results are the same in each run."""
    body = body_of(node)
    if body is None or any(name in graph.finals for name in node.outputs):
        return False
    trips = graph.array(node.inputs[0])
    if trips is None or trips.size != 1 or int(trips.item()) > MAX_TRIPS:
        return False
    read = {*node.inputs[1:], *free_names(node)} - {""}
    return all(
        graph.constant(name) is not None or _empty_sequence(graph, name) for name in read
    ) and all(
        n.domain in ONNX_DOMAINS and n.op_type not in NONDETERMINISTIC | NESTED
        for n in walk_nodes(body)
    )


def _empty_sequence(graph: MutableGraph, name: str) -> Node | None:
    """The node that makes a value, where it makes an empty sequence."""
    made = graph.maker(name)
    return made[1] if made is not None and made[1].op_type == EMPTY_SEQUENCE else None


def _results(graph: MutableGraph, node: Node, evaluate: Evaluate) -> dict[str, np.ndarray] | None:
    """The results of a Loop that anything reads; None where one of them is no tensor."""
    outputs = [name for name in node.outputs if name and graph.is_read(name)]
    if not outputs:
        return None
    types = {name: graph.type_of(name) for name in outputs}
    read = sorted({*node.inputs, *free_names(node)} - {""})
    makers = [maker for name in read if (maker := _empty_sequence(graph, name)) is not None]
    constants = {n: t for n in read if (t := graph.constant(n)) is not None}
    definition = GraphDef(
        name="constant_loop",
        nodes=(*makers, node),
        inputs=(),
        outputs=tuple(ValueInfo(name, value_type) for name, value_type in types.items()),
        initializers=constants,
    )
    values = evaluate(definition, graph.opset_imports)
    if values is None:
        log.debug("Loop %s of constants could not be computed", node.name)
        return None
    computed = dict(zip(outputs, values, strict=True))
    arrays = {n: v for n, v in computed.items() if isinstance(v, np.ndarray)}
    fit = all(fits_declaration(types[name], array) for name, array in arrays.items())
    return arrays if fit and len(arrays) == len(outputs) else None


def _is_small(values: Mapping[str, np.ndarray], max_output: int) -> bool:
    total = sum(value.nbytes for value in values.values())
    return total <= MAX_BYTES and all(value.nbytes <= max_output for value in values.values())
