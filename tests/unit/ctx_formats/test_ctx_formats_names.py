"""The public names of ctx_formats."""

from __future__ import annotations

import ast
from pathlib import Path

import ctx_formats


def test_every_public_name_can_be_imported() -> None:
    for name in ctx_formats.__all__:
        assert getattr(ctx_formats, name).__name__ == name


def test_type_checkers_see_the_names_where_they_are_defined() -> None:
    tree = ast.parse(Path(ctx_formats.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    assert seen == {name: f"ctx_formats.{home}" for name, home in ctx_formats._MODULES.items()}
    assert sorted(ctx_formats.__all__) == sorted(seen) == sorted(dir(ctx_formats))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ctx_formats, "read_models")
