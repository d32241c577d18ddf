"""Why some node cases of old onnx releases cannot pass though another engine passes them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_MODES = "onnx 1.18 counted the modes of qk_matmul_output in another order"
_FOUR_BITS = "the stored answer saturates; the operator's text now says that 4 bits wrap"
_TRUNCATED = "the stored bfloat16 is cut off, not rounded"
_CACHES = "onnx 1.18 had caches for the whole head; the operator takes rotary_embedding_dim / 2"

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "test_adam_multiple": "one gradient step beyond the runner's tolerance, in every engine",
        "test_attention_3d": "onnx 1.18 split heads by a reshape, without turning axes",
        "test_attention_4d_gqa": "onnx 1.18 repeated key heads as a whole, not each in its place",
        "test_attention_4d_with_past_and_present_qk_matmul_bias": _MODES,
        "test_attention_4d_with_qk_matmul_": _MODES,
        "test_bernoulli": "random by definition",
        "test_cast_FLOAT16_to_FLOAT4E2M1": "NaN was stored as the largest number",
        "test_cast_FLOAT_to_FLOAT4E2M1": "NaN was stored as the largest number",
        "test_cast_FLOAT16_to_INT4": _FOUR_BITS,
        "test_cast_FLOAT16_to_UINT4": _FOUR_BITS,
        "test_cast_FLOAT_to_INT4": _FOUR_BITS,
        "test_cast_FLOAT_to_UINT4": _FOUR_BITS,
        "test_cast_FLOAT_to_BFLOAT16": _TRUNCATED,
        "test_castlike_FLOAT_to_BFLOAT16": _TRUNCATED,
        "test_qlinearmatmul_": "the stored answer wraps where the operator saturates",
        "test_rotary_embedding_no_position_ids_rotary_dim": _CACHES,
        "test_rotary_embedding_with_interleaved_rotary_dim": _CACHES,
        "test_rotary_embedding_with_rotary_dim": _CACHES,
    }
)
"""Beginnings of case names, with the reason; each was computed after, or read in the data."""


def reason_for(name: str) -> str:
    """Why the case cannot pass; "" if it should."""
    return next((reason for start, reason in REASONS.items() if name.startswith(start)), "")
