"""Lists the kernel modules of com.microsoft, quantised operators and ai.onnx.ml."""

from __future__ import annotations

EXTRA_MODULES: tuple[str, ...] = ("contrib_fused", "contrib_lstm", "contrib_quant")
"""Modules `contrib_*`, `quant_*` and `ml_*` beside this one; add a new one here."""
