"""Distributions installed for one test."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plugin.behind import GATED, PATIENCE, compiling
from plugin.installed_site import SOURCE, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plugin.gated_ep import Gate


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


@pytest.fixture
def gated(site: Site) -> Site:
    """A site with the EP whose compile waits."""
    site.install(SOURCE)
    groups = {"ort_lite.execution_providers": {GATED: "plugin.gated_ep:FACTORY"}}
    site.add_distribution("gated", groups)
    return site


@pytest.fixture
def gate(gated: Site) -> Iterator[Gate]:
    """What the compiles of this test wait for; no thread of theirs outlives it."""
    gated_ep = importlib.import_module("plugin.gated_ep")  # importable while the site is there
    gated_ep.FACTORY.gate = made = gated_ep.Gate()
    yield made
    made.opened.set()
    for thread in compiling():
        thread.join(PATIENCE)
    assert compiling() == []
