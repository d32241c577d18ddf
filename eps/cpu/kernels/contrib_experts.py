"""com.microsoft QMoE: a few of many gated layers for each token, with weights of 2, 4 or 8 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.arrays import widen_floats
from eps.cpu.kernels.contrib_nbits import DOMAIN
from eps.cpu.kernels.few_bit_panels import multiply_by_panels, scale_steps, unpack_bits
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")
_GELU = (0.7978845608028654, 0.044715)
"""sqrt(2 / pi), and the factor of the cube: Gelu by tanh, as ONNX Runtime's CPU computes it."""
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
    """The activation between the two projections, with QMoE's attributes."""

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
    gate, top = _read_gate(info), int(info.attr("k", 1))
    shared = int(info.attr("expert_weight_bits", 4))
    bits = [int(info.attr(f"fc{i}_expert_weight_bits", shared)) for i in (1, 2)]
    _require_form(info, bits)
    if top < 1:
        raise ValueError(f"QMoE: k is {top}, expected at least 1")
    normalises = bool(info.attr("normalize_routing_weights", 0))

    def run(x: Array, router: Array, *rest: Array | None) -> Array:
        more: list[Array | None] = [None, None, *rest, *[None] * 13]
        first = _projection(bits[0], more[2], more[3], more[11], more[4])
        second = _projection(bits[1], more[5], more[6], more[12], more[7])
        rows = widen_floats(x).reshape(-1, x.shape[-1])
        experts, shares = _route(widen_floats(router), more[14], top, normalises=normalises)
        result = np.zeros((len(rows), second.weights.shape[1]), np.float32)
        for expert in np.unique(experts):
            tokens, places = np.nonzero(experts == expert)
            inner = gate.apply(first.apply(int(expert), rows[tokens], info))
            outer = second.apply(int(expert), inner, info)
            result[tokens] += shares[tokens, places, None] * outer
        return np.asarray(result.reshape(x.shape), x.dtype)

    return run


def _read_gate(info: KernelInfo) -> _Gate:
    kind = _text(info, "activation_type", "relu")
    if kind not in ACTIVATIONS:
        raise ValueError(f"QMoE: activation_type is '{kind}', expected {', '.join(ACTIVATIONS)}")
    gate = _Gate(
        kind=kind,
        fusion=int(info.attr("swiglu_fusion", 0)),
        alpha=float(info.attr("activation_alpha", 1.0)),
        beta=float(info.attr("activation_beta", 0.0)),
        limit=float(info.attr("swiglu_limit", np.inf)),
    )
    if kind == "swiglu" and gate.fusion not in (1, 2):
        raise ValueError(f"QMoE: swiglu_fusion is {gate.fusion}, expected 1 or 2 with swiglu")
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
        router: Scores [tokens, experts]; the largest are taken, the first of equal ones.
        mixing: Shares of all experts; None for a softmax over the scores of those taken, whether
            they are to be normalised or not, as ONNX Runtime's CPU has it.
        top: Experts of a token.
        normalises: Whether given shares are divided by their sum.
    """
    experts = np.argsort(-router, axis=1, kind="stable")[:, :top]
    if mixing is not None:
        shares = np.take_along_axis(widen_floats(mixing), experts, 1)
        if normalises:
            shares = shares / shares.sum(axis=1, keepdims=True)
        return experts, np.asarray(shares, np.float32)
    scores = np.take_along_axis(router, experts, 1)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return experts, np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


KERNELS: tuple[KernelDef, ...] = (kernel("QMoE", domain=DOMAIN)(_quantised_experts),)
