"""Runs a random model by onnxruntime and by ort_lite, and compares what the feed determines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]
    Feed = Mapping[str, Array]

NOISE = 1e-5
"""Relative change of the feed under which a result may change as it does in onnxruntime."""


def differences(model: bytes, feed: Feed, provider: str, folder: Path) -> list[str]:
    """Where an execution provider departs from onnxruntime: fresh, run again and reloaded."""
    expected, tolerances = judged(model, feed)
    lines = []
    for way, outputs in answers(model, feed, provider, folder):
        for index, output in enumerate(outputs):
            wanted = expected[index]
            if output.shape != wanted.shape or output.dtype != wanted.dtype:
                lines.append(f"{way}, output {index}: {output.dtype}{output.shape}, not "
                             f"{wanted.dtype}{wanted.shape}")  # fmt: skip
            elif not (fits := np.abs(output - wanted) <= tolerances[index]).all():
                far = np.abs(output - wanted)[~fits].max()
                lines.append(
                    f"{way}, output {index}: {(~fits).sum()} of {fits.size} elements, up to {far}"
                )
    return lines


def judged(model: bytes, feed: Feed) -> tuple[list[Array], list[Array]]:
    """onnxruntime's outputs without its optimisations, and how far others may be from each element.

    Rounding, comparisons and places of maxima turn the smallest differences into large ones. What
    onnxruntime's own result changes by when the feed changes by `NOISE` is allowed to others.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    expected: list[Array] = session.run(None, dict(feed))
    random = np.random.default_rng(0)
    spread = [np.zeros(output.shape) for output in expected]
    for _ in range(4):
        noisy = {
            name: value * (1 + NOISE * random.standard_normal(value.shape, np.float32))
            for name, value in feed.items()
        }
        for index, output in enumerate(session.run(None, noisy)):
            change = np.abs(output.astype(np.float64) - expected[index])
            spread[index] = np.maximum(spread[index], change)
    return expected, [
        1e-5
        + 1e-3 * np.abs(output.astype(np.float64))
        + 1e-4 * np.abs(output).max(initial=0)
        + 8 * each
        for output, each in zip(expected, spread, strict=True)
    ]


def answers(
    model: bytes, feed: Feed, provider: str, folder: Path
) -> Iterator[tuple[str, Sequence[Array]]]:
    """What the provider makes of the model on each way to run it, with every node it can take."""
    context = folder / "model_ctx.onnx"
    context.unlink(missing_ok=True)
    options, reload_options = ort.SessionOptions(), ort.SessionOptions()
    options.log_severity_level = reload_options.log_severity_level = 4
    options.add_session_config_entry("session.placement", "all")
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", "1")
    options.add_session_config_entry("ep.context_file_path", str(context))
    with ort.InferenceSession(model, options, providers=[provider]) as session:
        yield "fresh", session.run(None, feed)
        yield "again", session.run(None, feed)
    if context.exists():
        with ort.InferenceSession(context, reload_options, providers=[provider]) as session:
            yield "reloaded", session.run(None, feed)
