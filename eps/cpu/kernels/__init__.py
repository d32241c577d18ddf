"""The kernels of the CPU execution provider, a module for each family of operators.

A module holds no state; it lists its kernels in a tuple `KERNELS` of KernelDef.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eps.cpu.kernels.extra import EXTRA_MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ort_lite.kernel_registry import KernelDef

ONNX_MODULES: tuple[str, ...] = (
    "activation",
    "attention",
    "binary",
    "cast",
    "control_flow",
    "conv",
    "conv_integer",
    "conv_transpose",
    "detection",
    "draw",
    "einsum",
    "experimental",
    "fill",
    "gather",
    "grid",
    "matmul",
    "matmul_integer",
    "ngrams",
    "norm",
    "pool",
    "quantize",
    "rearrange",
    "recurrent_attention",
    "reduce",
    "resize",
    "rnn",
    "scan",
    "scatter",
    "select",
    "sequence",
    "shape",
    "signal",
    "slicing",
    "softmax",
    "text",
    "training",
    "unary",
    "where",
)
"""Families of ai.onnx; other domains are in `extra`."""


def all_kernels() -> Iterator[KernelDef]:
    """Every kernel, module by module; imports them."""
    for name in (*ONNX_MODULES, *EXTRA_MODULES):
        yield from importlib.import_module(f"eps.cpu.kernels.{name}").KERNELS
