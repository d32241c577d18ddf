"""Formats outputs: type, shape, a few values, and the likeliest classes by name."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.cli.arrays import require_regular
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.next_steps import look_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

SHOWN = 8
"""Largest number of elements printed in full."""
TOP = 5
MAX_LABELS = 1 << 20
"""Largest metadata text, in bytes, that is parsed for class names."""


def type_text(value: object) -> str:
    """Type and shape of an output: `float32[1, 1000]`."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else str(value)


def value_lines(
    name: str, value: object, labels: Sequence[str] = (), top: int | None = None
) -> Iterator[str]:
    """Lines that describe one output.

    Args:
        name: The output's.
        value: An array, or what else ONNX has: a list of arrays, a dict, None.
        labels: Class names; used if the output has one number for each.
        top: Number of largest values to list. None lists five if `labels` fit.
    """
    if not isinstance(value, np.ndarray):
        yield f"{name}: {type_text(value)}"
        return
    yield f"{name}: {type_text(value)}{_summary(value)}"
    classes = value.reshape(-1)
    if value.dtype.kind not in "iuf" or classes.size != max(value.shape, default=0):
        return
    fits = bool(labels) and len(labels) == classes.size
    for index in np.argsort(-classes, kind="stable")[: top if top is not None else TOP * fits]:
        label = f"  {labels[index]}" if fits else ""
        yield f"  {classes[index]:>12.6g}  {index}{label}"


def _summary(array: Array) -> str:
    if not array.size:
        return ""
    if array.size <= SHOWN:
        return " = " + np.array2string(array, max_line_width=1000, separator=", ")
    if array.dtype.kind not in "iuf":
        return ""
    wide = array.astype(np.float64)
    unusual = int(np.count_nonzero(~np.isfinite(wide)))
    note = f", {unusual} not finite" if unusual else ""
    finite = wide[np.isfinite(wide)]
    if not finite.size:
        return note
    return f"  min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}{note}"


def read_labels(path: Path) -> list[str]:
    """Read class names from a file: one on each line, a JSON list, or a JSON object by number.

    Raises:
        CommandError: The file cannot be read, or is none of these.
    """
    require_regular(path, "text or .json")
    try:
        text = path.read_text("utf-8")
        if path.suffix != ".json":
            return text.splitlines()
        return _names(json.loads(text))
    except (OSError, ValueError, RecursionError) as exc:
        kind = look_at(path) if isinstance(exc, UnicodeDecodeError) else ""
        raise CommandError(
            ExitCode.USAGE,
            f"{path} is {kind}, not a list of class names"
            if kind
            else f"cannot read class names from {path}: {exc}",
            hint="--labels FILE has one name on each line, or is JSON",
        ) from exc


def labels_of(metadata: Mapping[str, str]) -> list[str]:
    """Class names from a model's metadata, as Ultralytics writes them; may be empty."""
    text = metadata.get("names", "")
    if not text or len(text) > MAX_LABELS:
        return []
    try:
        return _names(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []


def _names(content: object) -> list[str]:
    """A list of names, or the values of an object whose keys count from 0.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(content, dict):
        by_number = {str(key): value for key, value in content.items()}
        content = [by_number.get(str(i)) for i in range(len(content))]
    if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
        raise ValueError("expected a list of names, or names by number from 0 on")
    return content
