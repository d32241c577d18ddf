"""Converts an image to a model's input tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ort_lite.cli.exit_codes import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ort_lite.cli.pixel_form import PixelForm
    from ort_lite.model.info import NodeArg

    Array = np.ndarray[Any, np.dtype[Any]]

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def load_image(
    path: Path, arg: NodeArg, shape: tuple[int, ...], form: PixelForm
) -> tuple[Array, str]:
    """Load an image in the shape and type of the input `arg`.

    Args:
        path: File in a format that Pillow reads.
        arg: An input of rank 3 or 4 with 1 or 3 channels, before or after height and width.
        shape: Of the input, without dynamic sizes.
        form: For floating-point inputs; integers take the values 0 to 255 as they are.

    Returns:
        The array, [1, channels, height, width] in the layout of `arg`, and a line that describes
        the conversion.

    Raises:
        CommandError: Pillow is not installed, the file is not an image, or the input cannot be one.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as exc:
        raise CommandError(
            ExitCode.USAGE, f"reading {path} needs Pillow", hint='pip install "ort-lite[image]"'
        ) from exc
    channels, height, width = _layout(arg, shape, path)
    try:
        with Image.open(path) as opened:
            before = opened.size
            picture = opened.convert("L" if channels.size == 1 else "RGB").resize((width, height))
    except FileNotFoundError as exc:
        raise CommandError(ExitCode.USAGE, f"{path} does not exist") from exc
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError) as exc:
        raise CommandError(ExitCode.USAGE, f"cannot read {path} as an image: {exc}") from exc
    pixels = np.asarray(picture).reshape(height, width, channels.size)
    if form.bgr:
        pixels = pixels[:, :, ::-1]
    note = f"{path.name}: {before[0]}x{before[1]} resized to {width}x{height}"
    if arg.type in ("tensor(float)", "tensor(float16)", "tensor(double)"):
        pixels = _normalize(pixels, form)
        note += f", {form.text()}"
    elif arg.type != "tensor(uint8)":
        raise CommandError(
            ExitCode.USAGE,
            f"input {arg.name} is a {arg.type}; an image converts to floats or uint8 only",
        )
    if channels.axis < len(shape) - 1:
        pixels = pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels.reshape(shape), dtype=_DTYPES[arg.type]), note


_DTYPES: Mapping[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}


@dataclass(frozen=True, slots=True)
class _Channels:
    axis: int
    size: int


def _layout(arg: NodeArg, shape: tuple[int, ...], path: Path) -> tuple[_Channels, int, int]:
    """Channels, height and width of an image input."""
    rank = len(shape)
    if rank in (3, 4) and (rank == 3 or shape[0] == 1):
        first = rank - 3
        if shape[first] in (1, 3):
            return _Channels(first, shape[first]), shape[first + 1], shape[first + 2]
        if shape[-1] in (1, 3):
            return _Channels(rank - 1, shape[-1]), shape[first], shape[first + 1]
    dims = "x".join("?" if dim is None else str(dim) for dim in arg.shape)
    raise CommandError(
        ExitCode.USAGE,
        f"{path} cannot be input {arg.name}, a {arg.type} of {dims or 'no dimensions'}: an "
        "image input has batch size 1 and 1 or 3 channels, before or after height and width",
        hint=f"provide {arg.name} as .npy",
    )


def _normalize(pixels: Array, form: PixelForm) -> Array:
    scaled = pixels.astype(np.float32) * np.float32(form.scale)
    normalized: Array = (scaled - np.asarray(form.mean, np.float32)) / np.asarray(
        form.std, np.float32
    )
    return normalized
