"""Guesses sizes for the dynamic dimensions of an input."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.model.info import NodeArg

IMAGE_SIZE = 224
"""Height and width of an image if the model names none, as ImageNet classifiers expect."""
TEXT_LINE = (48, 320)
"""Height and width of a line of text, as PaddleOCR's recognisers expect."""
ALPHABET = "character"
"""Metadata key under which a recogniser of text lists its alphabet."""
SEQUENCE_LENGTH = 16
EXAMPLE_LENGTH = 512
_SEQUENCE_WORDS = ("seq", "length", "tokens", "time", "frames")
_CHANNELS = (1, 3)
_NONE: Mapping[str, int] = MappingProxyType({})


def guessed_shape(
    arg: NodeArg, metadata: Mapping[str, str], known: Mapping[str, int] = _NONE
) -> tuple[int, ...]:
    """The shape of `arg`, with a guess for each dynamic dimension.

    Symbols in `known`, such as `sequence`, have those sizes (see `sizes_of_symbols`).

    Height and width of what looks like an image (rank 4 with 1 or 3 channels) are those of the
    model's metadata, as Ultralytics writes them (`imgsz`), those of a line of text if the metadata
    has an alphabet, else 224. A dimension named like a sequence is 16 long. Every other one, the
    batch above all, is 1.
    """
    sizes = [dim if isinstance(dim, int) else _by_name(dim) for dim in arg.shape]
    for axis, size in zip(_image_axes(arg), _image_size(metadata), strict=False):
        if not isinstance(arg.shape[axis], int):
            sizes[axis] = size
    for axis, dim in enumerate(arg.shape):
        if isinstance(dim, str) and dim in known:
            sizes[axis] = known[dim]
    return tuple(sizes)


def sizes_of_symbols(
    inputs: Sequence[NodeArg], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """Sizes of symbols that inputs with a shape determine: other inputs have the same."""
    return {
        dim: size
        for arg in inputs
        if arg.name in shapes
        for dim, size in zip(arg.shape, shapes[arg.name], strict=False)
        if isinstance(dim, str)
    }


def example_shape(arg: NodeArg) -> str:
    """A `--shape` that differs from the guess, for a hint: `x=1x3x48x320`."""
    sizes = list(guessed_shape(arg, {}))
    free = [axis for axis, dim in enumerate(arg.shape) if not isinstance(dim, int)]
    if _image_axes(arg):
        for axis, size in zip(_image_axes(arg), TEXT_LINE, strict=True):
            sizes[axis] = size if axis in free else sizes[axis]
    elif free:
        sizes[free[-1]] = EXAMPLE_LENGTH
    return f"{arg.name}={'x'.join(map(str, sizes))}"


def is_open(arg: NodeArg) -> bool:
    """Whether `arg` has a dynamic dimension."""
    return not all(isinstance(dim, int) for dim in arg.shape)


def _by_name(dim: str | None) -> int:
    name = (dim or "").lower()
    return SEQUENCE_LENGTH if any(word in name for word in _SEQUENCE_WORDS) else 1


def _image_axes(arg: NodeArg) -> tuple[int, int] | tuple[()]:
    """The axes of height and width; none where `arg` is not an image."""
    if len(arg.shape) != 4:
        return ()
    if arg.shape[1] in _CHANNELS:
        return (2, 3)
    return (1, 2) if arg.shape[3] in _CHANNELS else ()


def _image_size(metadata: Mapping[str, str]) -> tuple[int, int]:
    try:
        size = json.loads(metadata.get("imgsz", ""))
    except ValueError:
        size = None
    if isinstance(size, int):
        size = [size, size]
    if isinstance(size, list) and len(size) == 2 and all(isinstance(n, int) for n in size):
        height, width = size
        if height > 0 and width > 0:
            return height, width
    return TEXT_LINE if metadata.get(ALPHABET) else (IMAGE_SIZE, IMAGE_SIZE)
