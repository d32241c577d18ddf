"""Distributions that are installed and cannot work: named, and out of everybody else's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plugin.installed_site import EXAMPLE, SOURCE, Site
from small_models import feed, mlp

import ort_lite as ort
from ort_lite.providers import catalog

if TYPE_CHECKING:
    from pathlib import Path

CPU = "CPUExecutionProvider"
NAME = "BrokenExecutionProvider"


def install_broken(site: Site, target: str, source: str | None = None) -> None:
    """A distribution whose entry point leads to `target`, in a module of that source."""
    site.add_distribution("broken-ep", {catalog.GROUP: {NAME: target}})
    if source is not None:
        (site.folder / "broken_ep.py").write_text(source, encoding="utf-8")


@pytest.mark.parametrize(
    ("target", "source", "text"),
    [
        ("broken_ep:FACTORY", None, "No module named 'broken_ep'"),
        ("broken_ep:FACTORY", "", "module 'broken_ep' has no attribute 'FACTORY'"),
        ("broken_ep:FACTORY", "import no_such_sdk", "No module named 'no_such_sdk'"),
        ("broken_ep:FACTORY", "from sys import nonsense", "cannot import name 'nonsense'"),
    ],
    ids=["no module", "no factory", "imports a missing SDK", "imports a missing name"],
)
def test_it_is_named_with_what_is_wrong(
    site: Site, target: str, source: str | None, text: str
) -> None:
    install_broken(site, target, source)
    with pytest.raises(ort.EPFail, match=text) as found:
        ort.InferenceSession(mlp().SerializeToString(), providers=[NAME], enable_fallback=0)
    assert f"'{NAME}' is installed but its factory {target} cannot be imported" in str(found.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("raise OSError('libsdk.so: cannot open shared object file')", "libsdk.so: cannot open"),
        ("raise RuntimeError('driver too old')", "driver too old"),
        ("def (", "invalid syntax"),
    ],
    ids=["a library is missing", "the SDK does not start", "no Python"],
)
def test_whatever_its_import_raises_is_an_error_of_ours(site: Site, source: str, text: str) -> None:
    install_broken(site, "broken_ep:FACTORY", source)
    with pytest.raises(ort.EPFail, match=text):
        ort.InferenceSession(mlp().SerializeToString(), providers=[NAME], enable_fallback=0)
    ort.InferenceSession(mlp().SerializeToString()).close()


@pytest.mark.parametrize(
    "source",
    ["FACTORY = 3", "class FACTORY:\n    name = 'Broken'", "def FACTORY():\n    pass"],
    ids=["number", "no create", "function"],
)
def test_what_is_no_factory_is_named(site: Site, source: str) -> None:
    install_broken(site, "broken_ep:FACTORY", source)
    with pytest.raises(ort.EPFail, match=f"{NAME}.* broken_ep:FACTORY"):
        ort.InferenceSession(mlp().SerializeToString(), providers=[NAME], enable_fallback=0)


def test_a_factory_of_another_name_is_refused(installed: Site) -> None:
    """Its EPContext nodes would carry a source that no catalog knows."""
    installed.add_distribution("renamed", {catalog.GROUP: {NAME: "example_ep:FACTORY"}})
    with pytest.raises(ort.EPFail, match=f"{NAME}.*{EXAMPLE}"):
        ort.InferenceSession(mlp().SerializeToString(), providers=[NAME], enable_fallback=0)


@pytest.mark.parametrize("damage", ["not text", "a folder", "no folder"])
def test_an_unreadable_distribution_of_somebody_else_s_is_passed_over(
    site: Site, damage: str
) -> None:
    info = site.add_distribution("other", {})
    points = info / "entry_points.txt"
    points.unlink()
    if damage == "not text":
        points.write_bytes(b"[console_scripts]\nx = \xff\n")
    elif damage == "a folder":
        points.mkdir()
    else:
        (info / "METADATA").unlink()
        info.rmdir()
        info.write_bytes(b"")
    assert CPU in ort.get_available_providers()


def test_a_session_without_it_does_not_notice(site: Site) -> None:
    install_broken(site, "broken_ep:FACTORY")
    with ort.InferenceSession(mlp().SerializeToString(), providers=[CPU]) as session:
        assert session.run(None, feed(mlp()))[0].shape == (2, 3)


def test_a_session_that_names_no_provider_goes_on_without_it(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    install_broken(site, "broken_ep:FACTORY")
    with (
        caplog.at_level("INFO"),
        ort.InferenceSession(mlp().SerializeToString()) as session,
    ):
        assert NAME not in session.get_providers()
    assert f"{NAME} is left out: the execution provider '{NAME}' is installed but" in caplog.text


def test_two_distributions_with_one_name_are_refused(installed: Site) -> None:
    installed.add_distribution("impostor", {catalog.GROUP: {EXAMPLE: "impostor:FACTORY"}})
    with pytest.raises(
        ort.Fail,
        match=f"two installed distributions provide '{EXAMPLE}': .*impostor:FACTORY.*uninstall one",
    ):
        ort.get_available_providers()


def test_one_distribution_in_two_folders_is_one(
    installed: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editable install beside a plain one: the first on sys.path wins, as for any import."""
    other = Site(tmp_path / "other")
    other.folder.mkdir()
    other.install(SOURCE)
    monkeypatch.syspath_prepend(other.folder)
    assert ort.get_available_providers().count(EXAMPLE) == 1


def test_entry_points_of_other_groups_are_left_alone(site: Site) -> None:
    site.add_distribution("other", {"console_scripts": {"other": "other:main"}})
    before = ort.get_available_providers()
    site.add_distribution(
        "both", {"console_scripts": {NAME: "both:main"}, "ort_lite.execution_providers.x": {}}
    )
    assert ort.get_available_providers() == before


def test_a_dist_info_without_entry_points_is_passed_over(site: Site) -> None:
    info = site.add_distribution("plain", {})
    (info / "entry_points.txt").unlink()
    assert CPU in ort.get_available_providers()
