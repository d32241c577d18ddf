"""Users who can put files into a folder: every folder on the way counts."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from ort_lite.model_cache.ownership import writable_by_others

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX modes and owners")


@pytest.fixture
def entered_by_all() -> Iterator[Path]:
    """Not below pytest's folder, which nobody else can enter."""
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.mark.parametrize(
    ("outer", "inner", "others"),
    [
        (0o755, 0o755, ""),
        (0o755, 0o700, ""),
        (0o700, 0o777, ""),
        (0o755, 0o775, "inner"),
        (0o755, 0o757, "inner"),
        (0o777, 0o755, "outer"),
        (0o1777, 0o755, ""),
        (0o1777, 0o1777, "inner"),
    ],
)
def test_modes_decide(entered_by_all: Path, outer: int, inner: int, others: str) -> None:
    folders = {"outer": entered_by_all / "outer", "inner": entered_by_all / "outer" / "inner"}
    for folder in folders.values():
        folder.mkdir()
    folders["inner"].chmod(inner)
    folders["outer"].chmod(outer)
    found = writable_by_others(folders["inner"])
    assert found == (f"others can write to {folders[others]}" if others else "")


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="gives a folder away: root")
def test_somebody_else_s_folder_is_not_this_user_s(entered_by_all: Path) -> None:
    folder = entered_by_all / "theirs"
    folder.mkdir()
    os.chown(folder, 12345, -1)
    assert writable_by_others(folder) == f"{folder} belongs to user 12345"


def test_a_link_counts_as_what_it_leads_to(entered_by_all: Path) -> None:
    target, link = entered_by_all / "target", entered_by_all / "link"
    target.mkdir()
    target.chmod(0o777)
    link.symlink_to(target)
    assert "target" in writable_by_others(link)


def test_what_is_not_there_is_nobody_s(entered_by_all: Path) -> None:
    assert "cannot be looked at" in writable_by_others(entered_by_all / "gone")
