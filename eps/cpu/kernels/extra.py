"""Lists the kernel modules of com.microsoft, quantised operators and ai.onnx.ml."""

from __future__ import annotations

EXTRA_MODULES: tuple[str, ...] = (
    "contrib_attention",
    "contrib_conv",
    "contrib_fused",
    "contrib_group_attention",
    "contrib_lstm",
    "contrib_matmul",
    "contrib_nbits",
    "contrib_plain",
    "contrib_quant",
    "ml_categories",
    "ml_svm",
    "ml_tree",
    "ml_tree_ensemble",
    "ml_values",
)
"""Modules `contrib_*`, `quant_*` and `ml_*` beside this one; add a new one here."""
