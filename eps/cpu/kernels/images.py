"""The kernel of ImageDecoder, which decodes with Pillow."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np

from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

MISSING = 'ImageDecoder needs the pillow package: pip install "ort-lite[image]"'

_MODES = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
"""Pillow's mode for each pixel_format."""

_UNREADABLE = (OSError, SyntaxError, ValueError, IndexError, EOFError, struct.error)
"""Exceptions that Pillow's decoders raise for damaged data."""


def _decoder(info: KernelInfo) -> KernelFn:
    """ONNX ImageDecoder-20: bytes [length] to uint8 [height, width, channels].

    As the operator says, data that cannot be decoded gives an empty result, [0, 0, channels].
    """
    try:
        from PIL import Image  # noqa: PLC0415 - lazy: rare
    except ImportError as exc:
        raise ValueError(MISSING) from exc
    form = info.attr("pixel_format", "RGB")
    if form not in _MODES:
        raise ValueError(f"pixel_format is '{form}', expected one of {', '.join(_MODES)}")
    channels = 1 if form == "Grayscale" else 3

    def decode(encoded: Array) -> Array:
        try:
            with Image.open(io.BytesIO(encoded.tobytes())) as image:
                pixels = np.asarray(image.convert(_MODES[form]))
        except Image.DecompressionBombError as exc:
            raise ValueError(f"ImageDecoder: {exc}") from exc
        except _UNREADABLE:
            return np.empty((0, 0, channels), np.uint8)
        pixels = pixels.reshape(*pixels.shape[:2], channels)
        return np.ascontiguousarray(pixels[:, :, ::-1] if form == "BGR" else pixels)

    return decode


KERNELS: tuple[KernelDef, ...] = (kernel("ImageDecoder", since=(20, 20))(_decoder),)
