"""The code that docs/architecture.md names on a model's way from file to answer exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PLACE = re.compile(r"`([\w/]+\.py)`: ((?:`\w+`(?:, )?)+)")


def places() -> list[tuple[str, str]]:
    """Pairs (file, name of a function or class)."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return [
        (file, name) for file, names in PLACE.findall(text) for name in re.findall(r"\w+", names)
    ]


def defined_names(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def test_each_named_function_and_class_exists() -> None:
    missing = {(file, name) for file, name in places() if name not in defined_names(file)}
    assert missing == set()


def test_the_way_has_a_step_in_each_layer() -> None:
    layers = {file.split("/")[1].removesuffix(".py") for file, _ in places()}
    assert layers >= {"session", "start", "model", "planning", "context", "execution"}


def test_each_class_of_the_glossary_exists() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    classes = set(re.findall(r"\(`([A-Z]\w+)`\)", text))
    defined = {
        node.name
        for folder in ("ctx_formats", "ort_lite", "eps")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    assert len(classes) > 15
    assert classes - defined == set()
