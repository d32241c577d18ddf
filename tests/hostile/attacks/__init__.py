"""Hostile cases, each for every engine that has what it attacks."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path


def load_all() -> None:
    """Import every file of cases."""
    for path in sorted(Path(__file__).parent.glob("on_*.py")):
        import_module(f"attacks.{path.stem}")
