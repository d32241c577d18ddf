"""A driver update: contexts of the model cache are compiled again behind the session."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest
from plugin.behind import CPU, GATED, PATIENCE, check, options, start

from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import replace
from ort_lite.model_cache.store import CacheStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plugin.gated_ep import Gate

    Install = Callable[[str], None]


@pytest.fixture
def install_driver(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Install:
    """`install_driver("2")`: the device's driver has this version from now on."""
    provider = importlib.import_module("plugin.gated_ep").GatedExecutionProvider
    basic = provider("gate").identity
    assert isinstance(basic, HardwareIdentity)

    def install(version: str) -> None:
        identity = replace(basic, driver_version=version)
        monkeypatch.setattr(provider, "identity", property(lambda _: identity))

    return install


def cached(folder: Path) -> dict[str, str]:
    return {"session__ep_context_cache": "1", "session__ep_context_cache_dir": str(folder)}


def compile_with(gate: Gate, folder: Path) -> None:
    gate.opened.set()
    with start(None, options(**cached(folder))) as session:
        assert session.background_compile(None).state == "done"
        assert session.load_report().cache.state == "stored"
    gate.opened.clear()
    gate.entered.clear()


def test_the_session_answers_while_it_is_compiled_for_the_new_driver(
    gate: Gate, install_driver: Install, tmp_path: Path
) -> None:
    install_driver("1")
    compile_with(gate, tmp_path)
    (old,) = CacheStore(tmp_path).entry_keys()
    install_driver("2")
    with start(None, options(**cached(tmp_path))) as session:
        assert session.load_report().cache.state == "missed"
        assert gate.entered.wait(PATIENCE)
        check(session)
        assert session.get_providers() == [CPU]
        assert CacheStore(tmp_path).entry_keys() == [old]
        gate.opened.set()
        assert session.background_compile(None).state == "done"
        assert session.load_report().cache.state == "stored"
        check(session)
        assert session.get_providers() == [GATED, CPU]
    assert old in CacheStore(tmp_path).entry_keys()
    assert gate.count == 2


def test_the_old_context_serves_when_the_driver_is_rolled_back(
    gate: Gate, install_driver: Install, tmp_path: Path
) -> None:
    for version in ("1", "2"):
        install_driver(version)
        compile_with(gate, tmp_path)
    for version in ("1", "2"):
        install_driver(version)
        with start(None, options(**cached(tmp_path))) as session:
            assert session.load_report().cache.state == "hit"
            check(session)
    assert gate.count == 2


def test_a_compile_that_fails_for_the_new_driver_leaves_the_old_context(
    gate: Gate, install_driver: Install, tmp_path: Path
) -> None:
    install_driver("1")
    compile_with(gate, tmp_path)
    before = CacheStore(tmp_path).entry_keys()
    install_driver("2")
    gate.error = RuntimeError("the driver's compiler fails")
    gate.opened.set()
    with start(None, options(**cached(tmp_path))) as session:
        assert session.background_compile(None).state == "failed"
        check(session)
        assert session.get_providers() == [CPU]
    assert CacheStore(tmp_path).entry_keys() == before
