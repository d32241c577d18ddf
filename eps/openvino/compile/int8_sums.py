"""Whether OpenVINO's CPU plug-in may compute a quantised partition in 8-bit integers.

It turns QuantizeLinear, DequantizeLinear and what is between them into 8-bit kernels, by its low
precision transformations (the property LP_TRANSFORMS_MODE). Seen with OpenVINO 2026.4.1:

- On CPUs without VNNI (AVX2, and AVX-512 before Cascade Lake) the kernels add two products in 16
  bits and saturate, since 2 * 255 * 127 does not fit. A MatMul by int8 weights is then wrong by
  half and more. Weights of at most 64, as quantising with `reduce_range` makes them, always fit.
- A constant that Pad adds is quantised as its input is, and may be clipped.
- Behind a Relu, a product with a negative constant has another sign.

Such a partition is computed in float32, which holds every sum of 1,000 products exactly, and takes
up to twice the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.compile.trials import sum_products
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import openvino

    from ctx_formats.onnx_model import Node, Tensor
    from eps.openvino.options import OpenVINOOptions
    from ort_lite.ep import Graph

MODE = "LP_TRANSFORMS_MODE"
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
OPERANDS = {
    "QLinearConv": (0, 3), "QLinearMatMul": (0, 3), "LSTM": (0, 1), "GRU": (0, 1), "RNN": (0, 1),
    **dict.fromkeys(("Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum"), (0, 1)),
}  # fmt: skip
"""Operators that sum products, with the inputs whose elements they multiply."""
ZERO_POINTS = {DEQUANTIZE: 2, "QLinearConv": 5, "QLinearMatMul": 5}
"""Input with the zero point of the weights."""
LARGEST_WEIGHT = 64
"""Two products with an 8-bit activation fit into 16 bits: 2 * 255 * 64 < 2**15."""
SCALES = {"Mul": (0, 1), "Div": (0, 1), "BatchNormalization": (0, 1)}
"""Operators that multiply, with their factors."""
RECTIFIERS = ("Relu", "Clip", "LeakyRelu", "PRelu", "Max", "Min")
DEPTH, WIDTH = 64, 16
"""Products that the trial sums, and sums."""

_saturates: dict[str, bool] = {}


def float_reason(core: openvino.Core, options: OpenVINOOptions, graph: Graph) -> str:
    """Why a partition has to be computed without 8-bit kernels; "" if it need not.

    Args:
        core: OpenVINO's; it runs a trial, once in a process, where the CPU decides.
        options: The execution provider's.
        graph: The partition.
    """
    if not options.has_cpu or MODE in options.load_config:
        return ""
    graphs = list(with_bodies(graph))
    for is_lossy, why in LOSSY:
        if any(map(is_lossy, graphs)):
            return f"OpenVINO's 8-bit transformations {why}"
    if any(map(_may_saturate, graphs)) and sums_saturate(core):
        return (
            "8-bit sums saturate on this CPU, which has no VNNI, unless weights are quantised with "
            f"reduce_range, to at most {LARGEST_WEIGHT}"
        )
    return ""


def multiplies_in_bytes(core: openvino.Core, options: OpenVINOOptions, graph: Graph) -> bool:
    """Whether 8-bit kernels sum products of integers exactly, and may compute this partition.

    See byte_products.py. The arguments are those of `float_reason`.
    """
    if options.kind != "CPU" or MODE in options.load_config:
        return False
    return not float_reason(core, options, graph) and not sums_saturate(core)


def turn_off(core: openvino.Core, config: dict[str, object], device: str) -> None:
    """Have the device compile without the transformations, by `config` where it takes that.

    Groups (AUTO, HETERO) do not hand the property on while they ask their members what they take,
    so it is set on the Core, which is the session's own.
    """
    set_cpu_property(core, config, device, MODE, "NO")


def set_cpu_property(
    core: openvino.Core, config: dict[str, object], device: str, name: str, value: str
) -> None:
    """Set a property of the CPU plug-in, which groups do not hand on, as for `turn_off`."""
    if device == "CPU":
        config[name] = value
    else:
        core.set_property("CPU", {name: value})


def sums_saturate(core: openvino.Core) -> bool:
    """Whether the CPU device's sums of products of 8-bit integers saturate, by trial."""
    if MODE not in _saturates:
        weights = np.full((DEPTH, WIDTH), 127, np.int8)
        result = sum_products(core, "MatMul", weights, (1, DEPTH), (1, WIDTH))
        _saturates[MODE] = bool(abs(result - DEPTH * 255 * 127).max() > DEPTH)
    return _saturates[MODE]


def with_bodies(graph: Graph) -> Iterator[Graph]:
    """A graph and all bodies in it."""
    yield graph
    for index in range(len(graph.nodes)):
        for body in graph.bodies(index).values():
            yield from with_bodies(body)


def _may_saturate(graph: Graph) -> bool:
    """Whether products of two quantised tensors are summed, neither with small values for sure."""
    for node in graph.nodes:
        places = OPERANDS.get(node.op_type, ())
        names = [node.inputs[i] for i in places if i < len(node.inputs)]
        is_linear = node.op_type.startswith("QLinear")
        if len(names) == 2 and all(is_linear or _is_quantised(graph, name) for name in names):
            zero_point = _zero_point(graph, node) if is_linear else None
            if not any(_is_small(graph, name, zero_point) for name in names):
                return True
    return False


def _is_quantised(graph: Graph, name: str) -> bool:
    """Whether a value comes from a DequantizeLinear, and sums of products are not between."""
    return any(
        node.op_type == DEQUANTIZE for node in _ancestors(graph, name, until=tuple(OPERANDS))
    )


def _is_small(graph: Graph, name: str, zero_point: Tensor | None) -> bool:
    """Whether a value is int8 of at most 64 without a zero point, moved at most."""
    while graph.constant(name) is None:
        index = graph.producer(name)
        if index is None:
            return False
        node = graph.nodes[index]
        if node.op_type == DEQUANTIZE:
            zero_point = _zero_point(graph, node)
        elif node.op_type not in ("Transpose", "Reshape", "Unsqueeze", "Squeeze", "Identity"):
            return False
        name = node.inputs[0]
    weights = graph.constant(name)
    assert weights is not None, "the loop ends there"
    if weights.data_type in (DataType.INT4, DataType.UINT4):
        return True
    if weights.data_type != DataType.INT8 or (
        zero_point is not None and to_numpy(zero_point).any()
    ):
        return False
    return int(np.abs(to_numpy(weights).astype(np.int16)).max(initial=0)) <= LARGEST_WEIGHT


def _zero_point(graph: Graph, node: Node) -> Tensor | None:
    place = ZERO_POINTS[node.op_type]
    return graph.constant(node.inputs[place]) if place < len(node.inputs) else None


def _pads_with_value(graph: Graph) -> bool:
    """Whether a Pad adds another constant than 0."""
    for node in graph.nodes:
        if node.op_type == "Pad" and len(node.inputs) > 2 and node.inputs[2]:
            value = graph.constant(node.inputs[2])
            if value is None or to_numpy(value).any():
                return True
    return False


def _turns_sign(graph: Graph) -> bool:
    """Whether what a Relu makes is multiplied with a negative constant, behind quantised sums."""
    for node in graph.nodes:
        places = SCALES.get(node.op_type, ())
        names = [node.inputs[place] for place in places if place < len(node.inputs)]
        computed = [name for name in names if graph.constant(name) is None]
        constants = [tensor for name in names if (tensor := graph.constant(name)) is not None]
        if len(computed) != 1 or not any(map(_is_negative, constants)):
            continue
        before = _ancestors(graph, computed[0], until=(*OPERANDS, QUANTIZE))
        if any(ancestor.op_type in RECTIFIERS for ancestor in before):
            return True
    return False


def _is_negative(tensor: Tensor) -> bool:
    array = to_numpy(tensor)
    return array.dtype.kind == "f" and bool((array < 0).any())


def _ancestors(graph: Graph, name: str, *, until: tuple[str, ...]) -> Iterator[Node]:
    """Nodes that a value is computed from, without those behind operators named so."""
    names, visited = [name], set[int]()
    while names:
        index = graph.producer(names.pop())
        if index is None or index in visited:
            continue
        visited.add(index)
        node = graph.nodes[index]
        if any(part in node.op_type for part in until):
            continue
        yield node
        names.extend(filter(None, node.inputs))


LOSSY: tuple[tuple[Callable[[Graph], bool], str], ...] = (
    (_pads_with_value, "may clip the constant of a Pad"),
    (_turns_sign, "lose the sign of a factor behind a Relu"),
)
"""What they do wrong on every CPU, after a test for the graphs that it happens in."""
