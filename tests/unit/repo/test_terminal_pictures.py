"""The quick start's pictures show what its commands write, and load nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pty", reason="Windows has no pseudo-terminals of POSIX's")

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs" / "pictures"
REDRAW = "draw it again: python .ci/terminal_pictures.py .models/squeezenet_rw.onnx"
MACHINES = {"doctor"}
"""Pictures of the machine on which they were drawn, whose lines another one need not have."""


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location(
        "terminal_pictures", ROOT / ".ci" / "terminal_pictures.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def lines_of(picture: str) -> list[str]:
    """The lines of text of a picture, top to bottom."""
    found: dict[float, str] = {}
    for height, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', picture):
        found[float(height)] = found.get(float(height), "") + unescape(text).replace("\xa0", " ")
    return [found[height].strip() for height in sorted(found) if found[height].strip()]


def first_words(lines: list[str]) -> set[str]:
    """The words that begin a line and hold no digits, which differ by machine and run."""
    return {word for line in lines if not re.search(r"\d", word := line.split()[0])}


def test_every_picture_is_of_the_page_s_commands(
    tmp_path: Path, model_path: Callable[[str], Path]
) -> None:
    pictures = load_script().record_page(model_path("squeezenet_rw"), tmp_path)
    assert set(pictures) == {path.stem for path in PICTURES.glob("*.svg")}
    for name, shown in pictures.items():
        drawn = lines_of((PICTURES / f"{name}.svg").read_text("utf-8"))
        commands = [f"$ {one.command}" for one in shown]
        assert [line for line in drawn if line.startswith("$ ")] == commands, REDRAW
        now = first_words([line for one in shown for line in one.lines])
        assert len(now) > 1
        if name not in MACHINES:
            assert now <= first_words(drawn), f"{name}: {REDRAW}"


@pytest.mark.parametrize("path", sorted(PICTURES.glob("*.svg")), ids=lambda p: p.stem)
def test_a_picture_loads_nothing(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "@font-face" not in text
    assert not re.search(r"(?:href|src)=|url\((?!#)|@import|<script", text)
