"""ImageDecoder gives what the operator's text says, whatever the file's own form of pixels."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image
from unit.cpu.single_node import run_node

from ort_lite.status import Fail, RuntimeException

PIXELS = np.random.default_rng(4).integers(0, 256, (5, 7, 3), np.uint8)


def encoded(image: Image.Image, form: str = "PNG") -> np.ndarray:
    stream = io.BytesIO()
    image.save(stream, form)
    return np.frombuffer(stream.getvalue(), np.uint8)


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_colours_come_in_the_order_that_is_asked_for(form: str) -> None:
    data = encoded(Image.fromarray(PIXELS), form)
    np.testing.assert_array_equal(run_node("ImageDecoder", data), PIXELS)
    found = run_node("ImageDecoder", data, pixel_format="BGR")
    np.testing.assert_array_equal(found, PIXELS[:, :, ::-1])


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1"])
def test_files_of_other_pixels_have_three_channels_too(mode: str) -> None:
    image = Image.fromarray(PIXELS).convert(mode)
    found = run_node("ImageDecoder", encoded(image))
    np.testing.assert_array_equal(found, np.asarray(image.convert("RGB")))


def test_grey_is_one_channel() -> None:
    grey = np.ascontiguousarray(PIXELS[:, :, 0])
    found = run_node("ImageDecoder", encoded(Image.fromarray(grey)), pixel_format="Grayscale")
    np.testing.assert_array_equal(found, grey[:, :, None])


@pytest.mark.parametrize(("pixel_format", "channels"), [("RGB", 3), ("BGR", 3), ("Grayscale", 1)])
@pytest.mark.parametrize("keep", [0, 1, 20, 40, 60])
def test_data_that_is_no_image_gives_an_empty_result(
    pixel_format: str, channels: int, keep: int
) -> None:
    """ONNX ImageDecoder-20: "it will return an empty matrix"."""
    data = encoded(Image.fromarray(PIXELS))[:keep]
    found = run_node("ImageDecoder", data, pixel_format=pixel_format)
    assert found.shape == (0, 0, channels)
    assert found.dtype == np.uint8


def test_an_image_that_unpacks_without_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 8)
    with pytest.raises(RuntimeException, match="decompression bomb"):
        run_node("ImageDecoder", encoded(Image.fromarray(PIXELS)))


def test_without_pillow_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(Fail, match=r'needs the pillow package: pip install "ort-lite\[image\]"'):
        run_node("ImageDecoder", np.zeros(3, np.uint8))


def test_another_pixel_format_is_refused() -> None:
    with pytest.raises(Fail, match="pixel_format is 'CMYK', expected one of RGB, BGR, Grayscale"):
        run_node("ImageDecoder", np.zeros(3, np.uint8), pixel_format="CMYK")
