"""Provider option `ieee_semantics`: NaN and infinities propagate as in onnxruntime.

OpenVINO's CPU plug-in computes maxima by instructions that drop NaN, exponentials that clamp it,
and some operators by products that turn an infinity into NaN. Each such node is replaced by nodes
that OpenVINO computes right, or left to the next execution provider (docs/special_values.md).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType, DataType, Node, Tensor, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import GraphDef
    from eps.openvino.support.node_facts import NodeFacts
    from ort_lite.ep import Graph

OPTION = "ieee_semantics"
AXES_AS_INPUT = 18
"""Opset of ai.onnx from which on ReduceMax has its axes as an input."""
OLDEST_OPSET = 13
"""Older opsets flatten Softmax's input and support fewer types in the replacements."""

UNREPLACED = frozenset(
    (
        *("ArgMax", "ArgMin", "Attention", "GRU", "GridSample", "Hardmax", "LSTM", "QLinearMatMul"),
        *("RNN", "ScatterElements", "ScatterND", "Shrink", "SoftmaxCrossEntropyLoss"),
        *("DynamicQuantizeLinear", "LRN", "LayerNormalization", "Mod", "QuantizeLinear"),
        *("ThresholdedRelu", "Unique"),
    )
)
"""Operators that lose or produce NaN or infinities, and have no replacement."""

_FLOATS = (DataType.FLOAT, DataType.FLOAT16)
_FORMATS = {DataType.FLOAT: "<f", DataType.FLOAT16: "<e"}


def ieee_problem(facts: NodeFacts) -> str:
    """Why OpenVINO does not get a node when the option is set; "" if it does."""
    node = facts.node
    if node.domain:
        return f"{OPTION}: OpenVINO's {node.op_type} was not tested with NaN"
    if node.op_type in UNREPLACED:
        return f"{OPTION}: OpenVINO's {node.op_type} loses NaN or infinities"
    if node.op_type == "Conv" and _pads_before_special_weights(facts):
        return f"{OPTION}: OpenVINO does not multiply padding by weights, which may be NaN"
    if node.op_type in _REPLACEMENTS and facts.opset < OLDEST_OPSET:
        return f"{OPTION}: {node.op_type} can be replaced only from opset {OLDEST_OPSET} on"
    if node.op_type in _REPLACEMENTS and facts.is_output_used(1):
        return f"{OPTION}: {node.op_type} with a second output cannot be replaced"
    return ""


def _pads_before_special_weights(facts: NodeFacts) -> bool:
    """Whether a Conv has padding and weights that may be NaN or infinite, so that 0 * w is NaN."""
    pads = any(facts.numbers("pads")) or facts.text("auto_pad", "NOTSET").startswith("SAME")
    if not pads:
        return False
    weights = facts.constant(1)
    if weights is None:
        return True
    import numpy as np  # noqa: PLC0415 - lazy: rare

    from ort_lite.ep import to_numpy  # noqa: PLC0415 - lazy: rare

    return not np.isfinite(to_numpy(weights)).all()


def keep_special_values(graph: Graph) -> GraphDef:
    """The partition's definition, with every node replaced that would lose NaN or an infinity."""
    definition = graph.definition
    writer = _Writer(graph)
    nodes: list[Node] = []
    for node in definition.nodes:
        rule = _REPLACEMENTS.get(node.op_type) if not node.domain else None
        if rule is None or writer.element_type(node) not in _FLOATS:
            nodes.append(node)
        else:
            nodes += rule(writer, node)
    return replace(
        definition,
        nodes=tuple(nodes),
        initializers={**definition.initializers, **writer.initializers},
    )


class _Writer:
    """Creates nodes and constants under names that the graph does not use."""

    def __init__(self, graph: Graph) -> None:
        self.initializers: dict[str, Tensor] = {}
        self._graph = graph
        definition = graph.definition
        self._taken = {name for node in definition.nodes for name in node.outputs}
        self._taken |= {info.name for info in definition.inputs} | definition.initializers.keys()

    def element_type(self, node: Node) -> int | None:
        """DataType number of a node's first input."""
        value_type = self._graph.type_of(node.inputs[0])
        if isinstance(value_type, TensorType):
            return value_type.elem_type
        constant = self._graph.constant(node.inputs[0])
        return constant.data_type if constant is not None else None

    def name(self, base: str) -> str:
        """An unused name that begins with `base`."""
        number = 0
        while (name := f"{base}__ieee{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name

    def constant(self, value: float, elem_type: int) -> str:
        """Add a scalar constant; returns its name."""
        name = self.name("value")
        data = memoryview(struct.pack(_FORMATS[DataType(elem_type)], value))
        self.initializers[name] = Tensor(name, elem_type, (), data)
        return name

    def largest_along(self, name: str, axis: int, output: str) -> Node:
        """ReduceMax along `axis` with keepdims=1, in the form of the model's opset."""
        kept = Attribute("keepdims", AttributeType.INT, 1)
        if self._graph.opset_imports.get("", 1) < AXES_AS_INPUT:
            axes = Attribute("axes", AttributeType.INTS, (axis,))
            return Node(
                "ReduceMax", (name,), (output,), attributes={"keepdims": kept, "axes": axes}
            )
        where = self.name("axes")
        data = memoryview(struct.pack("<q", axis))
        self.initializers[where] = Tensor(where, DataType.INT64, (1,), data)
        return Node("ReduceMax", (name, where), (output,), attributes={"keepdims": kept})


def _node(op_type: str, inputs: tuple[str, ...], output: str, **attributes: int) -> Node:
    ints = {key: Attribute(key, AttributeType.INT, value) for key, value in attributes.items()}
    return Node(op_type, inputs, (output,), attributes=ints)


def _flag_nan(writer: _Writer, node: Node) -> tuple[list[Node], str]:
    """Nodes that flag NaN in a node's inputs, broadcast to its output, and the flag's name."""
    nodes: list[Node] = []
    any_nan = ""
    for name in node.inputs:
        flag = writer.name(node.outputs[0])
        nodes.append(_node("IsNaN", (name,), flag))
        if any_nan:
            both = writer.name(node.outputs[0])
            nodes.append(_node("Or", (any_nan, flag), both))
            flag = both
        any_nan = flag
    return nodes, any_nan


def _with_new_output(writer: _Writer, node: Node) -> Node:
    """The node with its output renamed."""
    return replace(node, outputs=(writer.name(node.outputs[0]),))


def _keep_nan_of_input(writer: _Writer, node: Node) -> list[Node]:
    """Keep NaN of the only input; other values are the operator's."""
    plain, flag = _with_new_output(writer, node), writer.name(node.outputs[0])
    return [
        _node("IsNaN", (node.inputs[0],), flag),
        plain,
        _node("Where", (flag, node.inputs[0], plain.outputs[0]), node.outputs[0]),
    ]


def _keep_nan_of_any_input(writer: _Writer, node: Node) -> list[Node]:
    """Return NaN wherever any input has one."""
    elem_type = writer.element_type(node)
    assert elem_type is not None, "the caller has looked"
    nodes, flag = _flag_nan(writer, node)
    plain = _with_new_output(writer, node)
    nan = writer.constant(float("nan"), elem_type)
    return [*nodes, plain, _node("Where", (flag, nan, plain.outputs[0]), node.outputs[0])]


def _keep_infinity_of_gelu(writer: _Writer, node: Node) -> list[Node]:
    """Return infinity for infinity, rather than a product of zero and infinity."""
    elem_type = writer.element_type(node)
    assert elem_type is not None, "the caller has looked"
    plain, flag = _with_new_output(writer, node), writer.name(node.outputs[0])
    endless = writer.constant(float("inf"), elem_type)
    return [
        _node("Equal", (node.inputs[0], endless), flag),
        plain,
        _node("Where", (flag, node.inputs[0], plain.outputs[0]), node.outputs[0]),
    ]


def _replace_flagged(
    writer: _Writer, node: Node, bad: tuple[list[Node], str], spread: Callable[[str, str], Node]
) -> list[Node]:
    """Return NaN wherever `spread`, a maximum, meets a flag of `bad`."""
    elem_type = writer.element_type(node)
    assert elem_type is not None, "the caller has looked"
    number, most, hit = (writer.name(node.outputs[0]) for _ in range(3))
    half = writer.constant(0.5, elem_type)
    nan = writer.constant(float("nan"), elem_type)
    plain = _with_new_output(writer, node)
    return [
        *bad[0],
        _node("Cast", (bad[1],), number, to=elem_type),
        spread(number, most),
        _node("Less", (half, most), hit),
        plain,
        _node("Where", (hit, nan, plain.outputs[0]), node.outputs[0]),
    ]


def _keep_nan_of_extreme(writer: _Writer, node: Node) -> list[Node]:
    """Return NaN wherever the elements under a maximum or minimum include one."""
    flag = writer.name(node.outputs[0])
    op_type = "ReduceMax" if node.op_type == "ReduceMin" else node.op_type

    def spread(number: str, most: str) -> Node:
        inputs = (number, *node.inputs[1:])
        return replace(node, op_type=op_type, inputs=inputs, outputs=(most,))

    return _replace_flagged(writer, node, ([_node("IsNaN", (node.inputs[0],), flag)], flag), spread)


def _keep_nan_of_softmax(writer: _Writer, node: Node) -> list[Node]:
    """Return NaN for a row with NaN or +infinity, whose exponentials have no finite sum."""
    elem_type = writer.element_type(node)
    assert elem_type is not None, "the caller has looked"
    x, (nan, endless, bad) = node.inputs[0], (writer.name(node.outputs[0]) for _ in range(3))
    limit = writer.constant(float("inf"), elem_type)
    flags = [
        _node("IsNaN", (x,), nan),
        _node("Equal", (x, limit), endless),
        _node("Or", (nan, endless), bad),
    ]
    axis = node.attributes.get("axis")
    along = axis.value if axis is not None and isinstance(axis.value, int) else -1

    def spread(number: str, most: str) -> Node:
        return writer.largest_along(number, along, most)

    return _replace_flagged(writer, node, (flags, bad), spread)


def _swap_inputs(op_type: str) -> Callable[[_Writer, Node], list[Node]]:
    """Swap the inputs: a > b is b < a, which is false if either is NaN."""

    def rule(_: _Writer, node: Node) -> list[Node]:
        return [replace(node, op_type=op_type, inputs=node.inputs[::-1])]

    return rule


_REPLACEMENTS: Mapping[str, Callable[[_Writer, Node], list[Node]]] = {
    **dict.fromkeys(("Celu", "Clip", "Exp", "HardSigmoid", "Relu"), _keep_nan_of_input),
    **dict.fromkeys(("Max", "Min"), _keep_nan_of_any_input),
    **dict.fromkeys(("GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMin"), _keep_nan_of_extreme),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _keep_nan_of_softmax),
    "Gelu": _keep_infinity_of_gelu,
    "Greater": _swap_inputs("Less"),
    "GreaterOrEqual": _swap_inputs("LessOrEqual"),
}
