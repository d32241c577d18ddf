"""Inputs that are the same on every machine, and the file that a program's answer goes to."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

ANSWER = "PACKAGE_ANSWER"
"""Variable with the path of the file."""
LINES = ("Invoice No 20391", "Total amount 1,284.50 EUR", "Due date 2026-11-22")


def text_image(lines: tuple[str, ...] = LINES, size: tuple[int, int] = (640, 320)) -> Any:
    """Black text on white, as a PIL image."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - few programs need it

    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        draw.text((30, 30 + 80 * row), line, fill="black", font=ImageFont.load_default(size=32))
    return image


def blurred_image(size: tuple[int, int] = (480, 360)) -> Any:
    """Soft patches of colour, as a PIL image."""
    from PIL import Image  # noqa: PLC0415 - as above

    patches = np.random.default_rng(0).integers(0, 255, (12, 16, 3), dtype=np.uint8)
    return Image.fromarray(patches).resize(size, Image.Resampling.BICUBIC)


def png(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def voice(seconds: float = 4, rate: int = 16000) -> np.ndarray:
    """Vowel-like bursts with silence between them, [seconds * rate] in [-0.5, 0.5]."""
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 0.7 * time)) / rate
    tones = sum(
        (np.exp(-(((k * 120 - 500) / 400) ** 2)) + np.exp(-(((k * 120 - 1500) / 300) ** 2)) / 2)
        * np.sin(k * phase)
        for k in range(1, 30)
    )
    noise = np.random.default_rng(0).standard_normal(len(time))
    sound = tones * (time % 2 > 0.6) * (0.6 + 0.4 * np.sin(8 * np.pi * time)) + 0.003 * noise
    return np.asarray(0.5 * sound / np.abs(sound).max(), np.float32)


def give(answer: object) -> None:
    """Write the program's answer as JSON."""
    Path(os.environ[ANSWER]).write_text(json.dumps(plain(answer), ensure_ascii=False), "utf-8")


def plain(value: object) -> object:
    """Arrays as lists, numpy's scalars as Python's, other objects as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
