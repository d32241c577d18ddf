"""MoE and QMoE that are written out for OpenVINO, and when; tests compare with onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import DataType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.openvino.support.node_facts import NodeFacts

DOMAIN = "com.microsoft"
ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")
BITS = (4, 8)
SHARES = 14
"""Input of QMoE with the shares of all experts."""
OLDEST_OPSET = 13
"""Opset of ai.onnx from which on Split and ReduceSum have their sizes and axes as inputs."""
SMALLEST_BLOCK = 16
"""Of MatMulNBits."""


@dataclass(frozen=True, slots=True)
class Places:
    """Inputs of one projection; 0 for those that an operator does not have."""

    weights: int
    bias: int
    scales: int = 0
    zeros: int = 0


PROJECTIONS: Mapping[str, tuple[Places, Places]] = {
    "MoE": (Places(2, 3), Places(4, 5)),
    "QMoE": (Places(2, 4, 3, 11), Places(5, 7, 6, 12)),
}
FLOAT_TYPES: Mapping[str, tuple[set[int], ...]] = {
    "MoE": ({DataType.FLOAT},),
    "QMoE": ({DataType.FLOAT}, {DataType.FLOAT16}),
}
"""Of tokens and scores."""
_OTHERS: Mapping[str, tuple[int, ...]] = {
    "MoE": (6, 7),
    "QMoE": (8, 9, 10, 13, *range(15, 21)),
}
"""Inputs of a third projection, and scales of weights that are floats."""


def experts_problem(facts: NodeFacts) -> str:
    """Why a MoE or QMoE is not written out; "" if it is."""
    name = facts.node.op_type
    if facts.graph.opset_imports.get("", 1) < OLDEST_OPSET:
        return f"{name} is written out from opset {OLDEST_OPSET} on"
    if any(facts.has_input(place) for place in _OTHERS[name]):
        return f"{name} of three projections, or with scales of floats, is not written out"
    forms = ("use_sparse_mixer", "weights_prepacked")
    if facts.text("quant_type", "int") != "int" or any(facts.number(key, 0) > 0 for key in forms):
        return f"this form of {name} is not written out"
    kind = facts.text("activation_type", "relu")
    if kind not in ACTIVATIONS:
        return f"{name} with the activation {kind} is not written out"
    is_gated = kind == "swiglu"
    if is_gated and facts.number("swiglu_fusion", 0) not in (1, 2):
        return f"{name} with gates that are a third projection is not written out"
    floats = (0, 1, SHARES) if facts.has_input(SHARES) else (0, 1)
    if {facts.elem_type(place) for place in floats} not in FLOAT_TYPES[name]:
        return f"{name} of these element types is not written out"
    return _size_problem(facts, is_gated=is_gated)


def _size_problem(facts: NodeFacts, *, is_gated: bool) -> str:
    name = facts.node.op_type
    shapes, depths = [], []
    for number, places in enumerate(PROJECTIONS[name], 1):
        if problem := _constant_problem(facts, places):
            return problem
        weights = facts.constant(places.weights)
        assert weights is not None, "checked just now"
        if len(weights.dims) != 3:
            return f"{name}: weights {list(weights.dims)}"
        bits = count_bits(facts, number)
        shapes.append(weights.dims)
        depths.append(weights.dims[2] * 8 // bits if places.scales else weights.dims[2])
        if places.scales and (problem := _block_problem(facts, places, bits, depths[-1])):
            return problem
    (experts, width, _), (others, hidden, _) = shapes
    inner = width // 2 if is_gated else width
    if experts != others or depths != [hidden, inner] or not hidden or not inner:
        return f"{name}: weights {list(shapes[0])} and {list(shapes[1])} do not fit each other"
    if not 0 < facts.number("k", 1) <= experts:
        return f"{name}: the best {facts.number('k', 1)} of {experts} experts"
    return ""


def _constant_problem(facts: NodeFacts, places: Places) -> str:
    """Why weights and what belongs to them cannot be read when compiling."""
    floats = (DataType.FLOAT, DataType.FLOAT16) if places.scales else (DataType.FLOAT,)
    types = {
        places.weights: (DataType.UINT8,) if places.scales else floats,
        places.scales: floats,
        places.zeros: (DataType.UINT8,),
        places.bias: floats,
    }
    needed = (places.weights, places.scales)
    for place, kinds in types.items():
        if place and (facts.has_input(place) or place in needed):
            tensor = facts.constant(place)
            if tensor is None or tensor.data_type not in kinds:
                names = " or ".join(kind.name.lower() for kind in kinds)
                return f"input {place} of {facts.node.op_type} is not a constant of {names}"
    return ""


def _block_problem(facts: NodeFacts, places: Places, bits: int, depth: int) -> str:
    """Why weights of few bits are not those of a MatMulNBits."""
    weights, scales = facts.constant(places.weights), facts.constant(places.scales)
    assert weights is not None, "constants are checked first"
    assert scales is not None, "constants are checked first"
    if bits not in BITS:
        return f"{facts.node.op_type} with weights of {bits} bits is not written out"
    if scales.dims[:2] != weights.dims[:2] or len(scales.dims) not in (2, 3):
        return f"{facts.node.op_type}: scales {list(scales.dims)}"
    blocks = scales.dims[2] if len(scales.dims) == 3 else 1
    block = find_block(depth) if blocks == 1 else depth // max(blocks, 1)
    whole = depth if blocks == 1 else block * blocks
    if block < SMALLEST_BLOCK or block & (block - 1) or whole != depth:
        return f"{facts.node.op_type} with {blocks} blocks of {depth} weights is not written out"
    zeros = facts.constant(places.zeros)
    packed = (*scales.dims[:-1], -(-scales.dims[-1] * bits // 8))
    if zeros is not None and zeros.dims != packed:
        return f"{facts.node.op_type}: zero points {list(zeros.dims)}"
    return ""


def count_bits(facts: NodeFacts, number: int) -> int:
    """Bits of a weight of QMoE's first or second projection; 1 for a number that is none."""
    shared = facts.number("expert_weight_bits", 4)
    return max(1, facts.number(f"fc{number}_expert_weight_bits", shared))


def find_block(depth: int) -> int:
    """Size of the blocks of weights that share one scale along all of `depth`."""
    return depth & -depth
