"""The OpenCL C of each generator is what is checked in, so that a reader can look at it."""

from __future__ import annotations

import pytest
from golden_kernels import CASES, FOLDER, write_kernels

REWRITE = "a generator writes another kernel: python tests/golden_kernels.py, and look at the diff"


@pytest.mark.parametrize("name", CASES)
def test_a_generator_writes_the_kernel_that_is_checked_in(name: str) -> None:
    written = write_kernels(CASES[name])
    assert written == (FOLDER / f"{name}.cl").read_text(encoding="utf-8"), REWRITE


def test_every_file_belongs_to_a_case() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(CASES)
