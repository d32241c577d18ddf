"""The --dim options of a compile, found by comparing a context model with its plain model."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from ort_lite.context.quote_argument import quote_argument
from ort_lite.model.free_dimensions import find_fixed_sizes
from ort_lite.model.loader import load
from ort_lite.options import SessionOptions
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.model.loader import LoadedModel


def dimension_arguments(plain: Path, context: LoadedModel) -> list[str]:
    """--dim for each symbolic dimension of a plain model that a context model has fixed.

    None where `plain` is absent or cannot be read: a compile of it will say what is wrong.
    """
    if not plain.is_file():
        return []
    try:
        with closing(load(plain, SessionOptions(), with_weights=False)) as loaded:
            sizes = find_fixed_sizes(loaded.model.graph.inputs, context.model.graph.inputs)
    except OrtLiteError:
        return []
    texts = [f"{name}={size}" for name, size in sizes.items()]
    return [
        word for text in texts if text.isprintable() for word in ("--dim", quote_argument(text))
    ]
