"""Distributions installed for one test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plugin.installed_site import SOURCE, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

collect_ignore = ["example_ep"]  # a project of its own; a child process runs its tests


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty one; what it provides is forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(folder)
    yield Site(folder)
    for name in set(sys.modules) - before:
        origin = getattr(sys.modules[name], "__file__", None)
        if origin is not None and folder in Path(origin).parents:
            del sys.modules[name]


@pytest.fixture
def installed(site: Site) -> Site:
    """One with the example EP."""
    site.install(SOURCE)
    return site
