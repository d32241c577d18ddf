"""Compares a quantised graph on an execution provider with onnxruntime, bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from parity.quantised_graphs.graph import run_onnxruntime
from parity.random_graphs.compare import answers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


def unequal_outputs(
    model: onnx.ModelProto, feed: Mapping[str, Array], provider: str, folder: Path
) -> list[str]:
    """Outputs in which a provider is not onnxruntime without optimisations: fresh, again, reloaded.

    A zero may have another sign.
    """
    expected = run_onnxruntime(model, dict(feed))
    lines = []
    for way, outputs in answers(model.SerializeToString(), feed, provider, folder):
        for info, output, wanted in zip(model.graph.output, outputs, expected, strict=True):
            if output.shape != wanted.shape or output.dtype != wanted.dtype:
                lines.append(f"{way}, {info.name}: {output.dtype}{output.shape}, not "
                             f"{wanted.dtype}{wanted.shape}")  # fmt: skip
            elif not (equal := output == wanted).all():
                far = np.abs(output.astype(np.float64) - wanted)[~equal].max()
                lines.append(
                    f"{way}, {info.name}: {(~equal).sum()} of {equal.size} elements, up to {far}"
                )
    return lines
