"""The onnxruntime that takes AMD's processors for Intel's differs in one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from interop.any_processor import AMD, INTEL, TableError, link_package, with_intels_vendor
from system_limits import needs_posix

if TYPE_CHECKING:
    from pathlib import Path

ROWS = b"".join(
    (
        b"\x03\0\0\0\0\0\0\0" + b"AMD@addr" + AMD + bytes(4),
        b"\x01\0\0\0\0\0\0\0" + b"\x05\0\0\0\0\0\0\0" + b"Intel@ad" + INTEL + bytes(4),
    )
)


def test_one_number_changes() -> None:
    before = AMD + b"code" + ROWS + b"more" + AMD
    after = with_intels_vendor(before)
    different = [i for i in range(len(before)) if before[i] != after[i]]
    at = before.index(ROWS) + 16
    assert different == [at, at + 1]
    assert after[at : at + 4] == INTEL


@pytest.mark.parametrize("library", [b"", ROWS[:-8], ROWS + ROWS])
def test_another_build_is_left_alone(library: bytes) -> None:
    with pytest.raises(TableError):
        with_intels_vendor(library)


@needs_posix  # the recipe is for Linux' build of onnxruntime
def test_the_installed_package_stays_what_it_is(tmp_path: Path) -> None:
    package = link_package(tmp_path / "made") / "onnxruntime"
    own = [path for path in package.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(own) == 2
    for library in own:
        (installed,) = (package / "__init__.py").resolve().parent.glob(f"capi/{library.name}")
        assert len(library.read_bytes()) == len(installed.read_bytes())
        assert library.read_bytes() == with_intels_vendor(installed.read_bytes())
