"""com.microsoft MoE and QMoE: for each token, the weighted sum of its best few gated layers."""

from __future__ import annotations

from math import isinf, sqrt
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.expert_op import ExpertMatMul
from eps.opencl.compile.ir import GatherElements, IrTensor, Softmax, TopIndices, Unsupported
from eps.opencl.compile.lower.node import NodeView, call, constant, number
from eps.opencl.compile.lower.pooling import reduce_axes
from eps.opencl.compile.lower.shape import slice_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.expression import Expr
    from eps.opencl.compile.lower.node import Array

BITS = (4, 8)
FLOAT_BITS = 32
BLOCKS = (128, 64, 32, 16)
"""Weights summed at a time where a column has one scale, or none."""
ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")
_CUBE = 0.044715
_FLOAT_PLACES = ((2, 3), (4, 5))
"""Inputs of MoE, of both projections: weights, bias."""
_PLACES = ((2, 3, 11, 4), (5, 6, 12, 7))
"""Inputs of QMoE, of both projections: weights, scales, zero points, bias."""
_THIRD = {"MoE": (6, 7), "QMoE": (8, 9, 10, 13)}
_SCALES_OF_FLOATS = range(15, 21)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Projection:
    """One projection of all experts; see `ExpertMatMul` for the forms of its constants.

    Attributes:
        depth: Inputs of a column.
    """

    depth: int
    bits: int
    block: int
    weights: Array
    scales: Array | None = None
    zeros: Array | None = None
    bias: Array | None = None

    def emit(self, node: NodeView, x: IrTensor, picks: IrTensor, *, pairs: bool) -> IrTensor:
        """The products [T, top, N] of tokens x with the weights of their experts."""
        inputs = [x, picks, constant(self.weights)]
        places = []
        for operand in (self.scales, self.zeros, self.bias):
            places.append(0 if operand is None else len(inputs))
            inputs += [] if operand is None else [constant(operand)]
        output = IrTensor((*picks.shape, self.weights.shape[1]), "float32")
        node.emit(
            ExpertMatMul(
                inputs=tuple(inputs), output=output, bits=self.bits, block=self.block,
                scales=places[0], zeros=places[1], bias=places[2], pairs=pairs,
            )
        )  # fmt: skip
        return output


def _quantised_experts(node: NodeView) -> IrTensor:
    """QMoE-1 with weights of 4 or 8 bits, quantised by columns or by blocks."""
    if node.attr("quant_type", "int") != "int":
        raise Unsupported(f"weights of type {node.attr('quant_type')}")
    if node.attr("weights_prepacked", 0) > 0:
        raise Unsupported("weights in another order")
    if any(node.has(place) for place in _SCALES_OF_FLOATS):
        raise Unsupported("scales of weights that are floats")
    shared = node.attr("expert_weight_bits", 4)
    depth = node.input(0).shape[-1] if node.input(0).shape else 0
    first = _read_quantised(node, _PLACES[0], node.attr("fc1_expert_weight_bits", shared), depth)
    inner = _inner_size(node, first.weights.shape[1])
    bits = node.attr("fc2_expert_weight_bits", shared)
    second = _read_quantised(node, _PLACES[1], bits, inner)

    def share(router: IrTensor, picks: IrTensor) -> IrTensor:
        if not node.has(14):  # over the chosen ones, whether shares are to be normalised or not
            return _softmax(node, _pick(node, router, picks))
        node.require_float32(14)
        if node.input(14).shape != router.shape:
            raise Unsupported(f"shares {list(node.input(14).shape)} for {list(router.shape)}")
        return _normalise(node, _pick(node, node.input(14), picks))

    return _mix(node, (first, second), share)


def _experts(node: NodeView) -> IrTensor:
    """MoE-1 with weights of floats."""
    first, second = (_read_floats(node, places) for places in _FLOAT_PLACES)

    def share(router: IrTensor, picks: IrTensor) -> IrTensor:
        return _normalise(node, _pick(node, _softmax(node, router), picks))

    return _mix(node, (first, second), share)


def _mix(
    node: NodeView,
    projections: tuple[_Projection, _Projection],
    share: Callable[[IrTensor, IrTensor], IrTensor],
) -> IrTensor:
    """The weighted sum of the experts of each token.

    Args:
        node: MoE or QMoE.
        projections: Of all experts.
        share: Makes the weights [T, top] of the sum of the router's scores and the experts.
    """
    first, second = projections
    x, router = _require_inputs(node, first, second)
    top = int(node.attr("k", 1))
    if not 0 < top <= router.shape[1]:
        raise Unsupported(f"the best {top} of {router.shape[1]} experts")
    picks = IrTensor((router.shape[0], top), "int64")
    node.emit(TopIndices((router,), picks, axis=1, largest=True, last=True))
    shares = share(router, picks)
    tokens = node.reshape(x, (router.shape[0], x.shape[-1]))
    gated = first.emit(node, tokens, picks, pairs=_has_pairs(node))
    results = second.emit(node, _activate(node, gated), picks, pairs=False)
    parts = node.pointwise(_share, [results, node.reshape(shares, (*shares.shape, 1))])
    return node.reshape(reduce_axes(node, parts, "sum", (1,)), x.shape)


def _share(result: Expr, share: Expr) -> Expr:
    """Part of an expert; ONNX Runtime's CPU leaves out those whose share is not above 0, or NaN."""
    zero = number(0, share)
    taken = call("gt", share, zero, dtype="bool")
    return call("where", taken, call("mul", result, share), zero, dtype=result.dtype)


def _require_inputs(
    node: NodeView, first: _Projection, second: _Projection
) -> tuple[IrTensor, IrTensor]:
    """Tokens and the router's scores, of shapes that fit the weights."""
    node.require_float32(0, 1)
    name, x, router = node.node.op_type, node.input(0), node.input(1)
    if node.attr("use_sparse_mixer", 0) > 0:
        raise Unsupported("a sparse mixer")
    if any(node.has(place) for place in _THIRD[name]):
        raise Unsupported("experts of three projections")
    experts, width = first.weights.shape[:2]
    depth = x.shape[-1] if x.shape else 0
    fits = second.depth == _inner_size(node, width) and first.depth == depth
    if not fits or second.weights.shape[:2] != (experts, depth):
        raise Unsupported(f"weights {list(first.weights.shape)}, {list(second.weights.shape)}")
    if not second.depth:
        raise Unsupported("experts with no inner columns")
    if not x.size or router.shape != (x.size // depth, experts):
        raise Unsupported(f"scores {list(router.shape)} for tokens {list(x.shape)}")
    return x, router


def _read_floats(node: NodeView, places: Sequence[int]) -> _Projection:
    weights = node.constant(places[0], "a weight of experts")
    if weights.dtype != np.float32 or weights.ndim != 3:
        raise Unsupported(f"weights {weights.dtype}{list(weights.shape)}")
    depth = weights.shape[2]
    block = _choose_block(depth)
    return _Projection(
        depth=depth, bits=FLOAT_BITS, block=block,
        weights=_pad(weights, -(-depth // block) * block),
        bias=_read_bias(node, places[1], weights.shape[:2]),
    )  # fmt: skip


def _read_quantised(node: NodeView, places: Sequence[int], bits: int, depth: int) -> _Projection:
    """A projection with weights of few bits for inputs of `depth`."""
    if bits not in BITS:
        raise Unsupported(f"weights of {bits} bits")
    weights = node.constant(places[0], "a weight of experts")
    scales = node.constant(places[1], "the scale of a weight")
    if weights.dtype != np.uint8 or weights.ndim != 3 or weights.shape[2] * 8 != depth * bits:
        raise Unsupported(f"weights {weights.dtype}{list(weights.shape)} for inputs of {depth}")
    matrix = weights.shape[:2]
    blocks = scales.shape[2] if scales.ndim == 3 else 1
    if scales.dtype != np.float32 or scales.shape[:2] != matrix or scales.ndim not in (2, 3):
        raise Unsupported(f"scales {scales.dtype}{list(scales.shape)}")
    block = _choose_block(depth) if blocks == 1 else depth // max(1, blocks)
    if blocks != 1 and (block < 16 or block & (block - 1) or block * blocks != depth):
        raise Unsupported(f"{blocks} blocks of {depth} weights")
    zeros = None
    if node.has(places[2]):
        packed = node.constant(places[2], "a zero point")
        zeros = _read_zeros(packed, bits, scales.shape).reshape(*matrix, blocks)
    return _Projection(
        depth=depth, bits=bits, block=block,
        weights=_pad(weights, -(-depth // block) * block * bits // 8),
        scales=scales.reshape(*matrix, blocks), zeros=zeros,
        bias=_read_bias(node, places[3], matrix),
    )  # fmt: skip


def _read_zeros(packed: Array, bits: int, shape: tuple[int, ...]) -> Array:
    """Zero points of the shape of the scales, from bytes along its last axis."""
    if packed.dtype != np.uint8 or packed.shape != (*shape[:-1], -(-shape[-1] * bits // 8)):
        raise Unsupported(f"zero points {packed.dtype}{list(packed.shape)}")
    if bits == 8:
        return packed
    steps = np.stack([packed & 15, packed >> 4], axis=-1)
    return steps.reshape(*shape[:-1], -1)[..., : shape[-1]]


def _read_bias(node: NodeView, place: int, shape: tuple[int, ...]) -> Array | None:
    if not node.has(place):
        return None
    bias = node.constant(place, "a bias of experts")
    if bias.dtype != np.float32 or bias.shape != shape:
        raise Unsupported(f"a bias {bias.dtype}{list(bias.shape)}")
    return bias


def _choose_block(depth: int) -> int:
    return next((block for block in BLOCKS if depth % block == 0), BLOCKS[-1])


def _pad(weights: Array, depth: int) -> Array:
    """Zeros after each column up to `depth` elements; they are multiplied with zeros."""
    missing = depth - weights.shape[2]
    return np.pad(weights, ((0, 0), (0, 0), (0, missing))) if missing else weights


def _softmax(node: NodeView, x: IrTensor) -> IrTensor:
    output = IrTensor(x.shape, "float32")
    node.emit(Softmax((x,), output, 1))
    return output


def _pick(node: NodeView, x: IrTensor, picks: IrTensor) -> IrTensor:
    output = IrTensor(picks.shape, "float32")
    node.emit(GatherElements((x, picks), output, 1))
    return output


def _normalise(node: NodeView, shares: IrTensor) -> IrTensor:
    """Shares over their sum, if the node asks for it."""
    if not node.attr("normalize_routing_weights", 0):
        return shares
    total = reduce_axes(node, shares, "sum", (1,))
    return node.pointwise(lambda a, t: call("div", a, t), [shares, total])


def _kind(node: NodeView) -> str:
    kind = str(node.attr("activation_type", "relu"))
    if kind not in ACTIVATIONS:
        raise Unsupported(f"activation {kind}")
    return kind


def _inner_size(node: NodeView, width: int) -> int:
    """Inputs of the second projection where the first one makes `width`."""
    if _kind(node) != "swiglu":
        return width
    if width % 2 or node.attr("swiglu_fusion", 0) not in (1, 2):
        raise Unsupported(f"swiglu_fusion {node.attr('swiglu_fusion', 0)} of {width} columns")
    return width // 2


def _has_pairs(node: NodeView) -> bool:
    """Whether gates and what they are multiplied with are neighbours among the columns."""
    return _kind(node) == "swiglu" and node.attr("swiglu_fusion", 0) == 1


def _activate(node: NodeView, x: IrTensor) -> IrTensor:
    """The activation between the projections; gates are the first half of the columns."""
    kind = _kind(node)
    if kind == "swiglu":
        half = x.shape[2] // 2
        parts = [
            slice_tensor(node, x, [slice(None), slice(None), columns])
            for columns in (slice(half), slice(half, None))
        ]
        return node.pointwise(lambda a, b: _gate(node, a, b), parts)
    functions = {"relu": _relu, "gelu": _gelu, "silu": _silu}
    return node.pointwise(functions[kind], [x]) if kind in functions else x


def _gate(node: NodeView, gate: Expr, linear: Expr) -> Expr:
    alpha, beta = node.attr("activation_alpha", 1.0), node.attr("activation_beta", 0.0)
    limit = float(node.attr("swiglu_limit", np.inf))
    if not isinf(limit):
        gate = call("min", gate, number(limit, gate))
        linear = call("max", linear, number(-limit, linear))
        linear = call("min", linear, number(limit, linear))
    open_gate = call("mul", gate, call("sigmoid", call("mul", gate, number(alpha, gate))))
    return call("mul", open_gate, call("add", linear, number(beta, linear)))


def _relu(a: Expr) -> Expr:
    return call("max", a, number(0, a))


def _silu(a: Expr) -> Expr:
    return call("mul", a, call("sigmoid", a))


def _gelu(a: Expr) -> Expr:
    """By tanh, as ONNX Runtime's CPU computes it."""
    cube = call("mul", call("mul", a, a), a)
    inner = call("add", a, call("mul", cube, number(_CUBE, a)))
    gate = call("tanh", call("mul", inner, number(sqrt(2 / np.pi), a)))
    return call("mul", call("mul", a, number(0.5, a)), call("add", gate, number(1, a)))


CONTRIB: Mapping[str, Callable[[NodeView], IrTensor]] = {
    "MoE": _experts,
    "QMoE": _quantised_experts,
}
