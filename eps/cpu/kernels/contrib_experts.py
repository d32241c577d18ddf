"""com.microsoft MoE and QMoE: a few of many gated layers for each token.

Weights are floats, or have 2, 4 or 8 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.arrays import widen_floats
from eps.cpu.kernels.contrib_nbits import DOMAIN
from eps.cpu.kernels.few_bit_panels import multiply_by_panels, scale_steps, unpack_bits
from eps.cpu.products import matmul
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")
_GELU = (0.7978845608028654, 0.044715)
"""sqrt(2 / pi), and the factor of the cube: Gelu by tanh, as ONNX Runtime's CPU computes it."""
_FC3_OF_FLOATS = (6, 7)
_FC3 = (8, 9, 10, 13)
_SCALES_OF_FLOATS = range(15, 21)


@dataclass(frozen=True, slots=True)
class _Projection:
    """The weights of one projection of all experts, packed.

    Attributes:
        weights: uint8 [experts, N, K * bits / 8].
        scales: [experts, N], or [experts, N, blocks].
        zeros: Packed along the last axis of `scales`; None for the middle of the range.
        bias: [experts, N], or None.
    """

    bits: int
    weights: Array
    scales: Array
    zeros: Array | None
    bias: Array | None

    def apply(self, expert: int, x: Array, info: KernelInfo) -> Array:
        """x [rows, K] times the weights of an expert, as float32 [rows, N]."""
        width = self.weights.shape[1]
        packed, scales = self.weights[expert], widen_floats(self.scales[expert])
        factor = scales.reshape(width, -1, 1)
        blocks = factor.shape[1]
        zeros = None
        if self.zeros is not None:
            steps = unpack_bits(self.zeros[expert], self.bits)
            kept = steps[..., :width] if self.scales.ndim == 2 else steps[..., :blocks]
            zeros = kept.astype(np.float32).reshape(width, blocks, 1)
        middle = np.full((1, 1, 1), 1 << (self.bits - 1), np.float32)

        def unpack(columns: slice) -> Array:
            steps = unpack_bits(packed[columns], self.bits)
            shift = middle if zeros is None else zeros[columns]
            return scale_steps(steps.reshape(len(steps), blocks, -1), shift, factor[columns])

        result = multiply_by_panels(x, width, unpack, info)
        if self.bias is not None:
            result += widen_floats(self.bias[expert])
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    """The activation between the two projections, with the operator's attributes."""

    kind: str
    fusion: int
    alpha: float
    beta: float
    limit: float

    def apply(self, x: Array) -> Array:
        """The activation of [rows, N]; swiglu halves N."""
        if self.kind == "swiglu":
            half = x.shape[1] // 2
            parts = (x[:, 0::2], x[:, 1::2]) if self.fusion == 1 else (x[:, :half], x[:, half:])
            gate = np.minimum(parts[0], np.float32(self.limit))
            linear = np.clip(parts[1], np.float32(-self.limit), np.float32(self.limit))
            return np.asarray(
                gate * _sigmoid(np.float32(self.alpha) * gate) * (linear + np.float32(self.beta))
            )
        if self.kind == "silu":
            return np.asarray(x * _sigmoid(x))
        if self.kind == "gelu":
            root, cube = np.float32(_GELU[0]), np.float32(_GELU[1])
            half = np.float32(0.5)
            return np.asarray(half * x * (1 + np.tanh(root * (x + cube * x * x * x))))
        return np.maximum(x, 0) if self.kind == "relu" else x


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def _quantised_experts(info: KernelInfo) -> KernelFn:
    """QMoE-1 with integer weights: token by token, its k best experts and their weighted sum."""
    gate, top = _read_gate(info), _read_top(info)
    shared = int(info.attr("expert_weight_bits", 4))
    bits = [int(info.attr(f"fc{i}_expert_weight_bits", shared)) for i in (1, 2)]
    _require_form(info, bits)
    normalises = bool(info.attr("normalize_routing_weights", 0))

    def run(x: Array, router: Array, *rest: Array | None) -> Array:
        more: list[Array | None] = [None, None, *rest, *[None] * 13]
        first = _projection(bits[0], more[2], more[3], more[11], more[4])
        second = _projection(bits[1], more[5], more[6], more[12], more[7])
        rows = widen_floats(x).reshape(-1, x.shape[-1])
        route = _route(widen_floats(router), more[14], top, normalises=normalises)

        def compute(expert: int, some: Array) -> Array:
            return second.apply(expert, gate.apply(first.apply(expert, some, info)), info)

        return np.asarray(_mix(rows, route, compute).reshape(x.shape), x.dtype)

    return run


def _experts(info: KernelInfo) -> KernelFn:
    """MoE-1: as QMoE-1 with weights [experts, N, K] of floats, and shares from all experts."""
    gate, top = _read_gate(info), _read_top(info)
    if int(info.attr("use_sparse_mixer", 0)):
        raise ValueError("MoE: use_sparse_mixer is 1, expected 0")
    if any(info.node.inputs[index : index + 1] not in ((), ("",)) for index in _FC3_OF_FLOATS):
        raise ValueError("MoE: a third projection, expected fc1 and fc2")
    normalises = bool(info.attr("normalize_routing_weights", 0))

    def run(x: Array, router: Array, *rest: Array | None) -> Array:
        first, first_bias, second, second_bias = [*rest, None, None][:4]
        assert first is not None, "required by the schema"
        assert second is not None, "required by the schema"
        rows, scores = widen_floats(x).reshape(-1, x.shape[-1]), widen_floats(router)
        route = _route(scores, _softmax(scores), top, normalises=normalises)

        def project(some: Array, weights: Array, bias: Array | None, expert: int) -> Array:
            result = matmul(some, widen_floats(weights[expert]).T, info.empty)
            return result if bias is None else result + widen_floats(bias[expert])

        def compute(expert: int, some: Array) -> Array:
            inner = gate.apply(project(some, first, first_bias, expert))
            return project(inner, second, second_bias, expert)

        return np.asarray(_mix(rows, route, compute).reshape(x.shape), x.dtype)

    return run


def _mix(rows: Array, route: tuple[Array, Array], compute: Callable[[int, Array], Array]) -> Array:
    """The weighted sum of each token's experts, as float32 [tokens, hidden].

    As by ONNX Runtime's CPU, experts whose share is 0, negative or NaN are left out.

    Args:
        rows: Tokens [tokens, hidden].
        route: Experts of each token and their shares, see `_route`.
        compute: The result of an expert for some rows.
    """
    experts, shares = route
    result = np.zeros(rows.shape, np.float32)
    for expert in np.unique(experts):
        tokens, places = np.nonzero((experts == expert) & (shares > 0))
        result[tokens] += shares[tokens, places, None] * compute(int(expert), rows[tokens])
    return result


def _read_top(info: KernelInfo) -> int:
    top = int(info.attr("k", 1))
    if top < 1:
        raise ValueError(f"{info.op_type}: k is {top}, expected at least 1")
    return top


def _read_gate(info: KernelInfo) -> _Gate:
    name, kind = info.op_type, _text(info, "activation_type", "relu")
    if kind not in ACTIVATIONS:
        raise ValueError(f"{name}: activation_type is '{kind}', expected {', '.join(ACTIVATIONS)}")
    gate = _Gate(
        kind=kind,
        fusion=int(info.attr("swiglu_fusion", 0)),
        alpha=float(info.attr("activation_alpha", 1.0)),
        beta=float(info.attr("activation_beta", 0.0)),
        limit=float(info.attr("swiglu_limit", np.inf)),
    )
    if kind == "swiglu" and gate.fusion not in (1, 2):
        raise ValueError(f"{name}: swiglu_fusion is {gate.fusion}, expected 1 or 2 with swiglu")
    return gate


def _require_form(info: KernelInfo, bits: list[int]) -> None:
    """Refuse what is not computed, as ONNX Runtime's CPU does.

    Raises:
        ValueError: Names the attribute or the input.
    """
    kind = _text(info, "quant_type", "int")
    if kind != "int":
        raise ValueError(f"QMoE: quant_type is '{kind}', expected 'int'")
    if any(one not in (2, 4, 8) for one in bits):
        raise ValueError(f"QMoE: weights of {bits} bits, expected 2, 4 or 8")
    for name in ("use_sparse_mixer", "weights_prepacked"):
        if int(info.attr(name, 0)) > 0:
            raise ValueError(f"QMoE: {name} is {info.attr(name)}, expected 0")
    present = {index for index, name in enumerate(info.node.inputs) if name}
    if present & {*_FC3, *_SCALES_OF_FLOATS}:
        raise ValueError("QMoE: fc3 or scales of float weights, expected fc1 and fc2 of integers")


def _text(info: KernelInfo, name: str, default: str) -> str:
    value = info.attr(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def _projection(
    bits: int, weights: Array | None, scales: Array | None, zeros: Array | None, bias: Array | None
) -> _Projection:
    if weights is None or scales is None:
        raise ValueError("QMoE: no weights or scales of fc1 or fc2, expected both")
    return _Projection(bits, weights, scales, zeros, bias)


def _route(
    router: Array, mixing: Array | None, top: int, *, normalises: bool
) -> tuple[Array, Array]:
    """The experts of each token and their shares, both [tokens, top].

    Args:
        router: Scores [tokens, experts]; the largest are taken, the last of equal ones, as
            by ONNX Runtime's CPU.
        mixing: Shares of all experts; None for a softmax over the scores of those taken, whether
            they are to be normalised or not, as ONNX Runtime's CPU has it for QMoE.
        top: Experts of a token.
        normalises: Whether given shares are divided by their sum.

    Raises:
        ValueError: There are fewer experts than each token is to have.
    """
    if top > router.shape[1]:
        raise ValueError(f"k is {top}, expected at most the {router.shape[1]} experts")
    last = router.shape[1] - 1
    experts = last - np.argsort(-router[:, ::-1], axis=1, kind="stable")[:, :top]
    if mixing is not None:
        shares = np.take_along_axis(widen_floats(mixing), experts, 1)
        if normalises:
            shares = shares / shares.sum(axis=1, keepdims=True)
        return experts, np.asarray(shares, np.float32)
    return experts, _softmax(np.take_along_axis(router, experts, 1))


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


KERNELS: tuple[KernelDef, ...] = (
    kernel("MoE", domain=DOMAIN)(_experts),
    kernel("QMoE", domain=DOMAIN)(_quantised_experts),
)
