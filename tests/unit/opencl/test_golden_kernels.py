"""The OpenCL C of each generator is what is checked in, so that a reader can look at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_kernels import CASES, FOLDER, list_operations, write_kernels

from eps.opencl.compile.codegen.generate import GENERATORS

REWRITE = "a generator writes another kernel: python tests/golden_kernels.py, and look at the diff"


@pytest.mark.parametrize("name", CASES)
def test_a_generator_writes_the_kernel_that_is_checked_in(name: str) -> None:
    written = write_kernels(CASES[name])
    assert written == (FOLDER / f"{name}.cl").read_text(encoding="utf-8"), REWRITE


def test_every_generator_has_a_case() -> None:
    shown = set().union(*map(list_operations, CASES.values()))
    assert GENERATORS.keys() - shown == set()


def test_the_page_on_the_compiler_shows_the_kernel_of_its_example() -> None:
    page = Path(__file__).parents[3] / "docs" / "opencl.md"
    assert (FOLDER / "pointwise.cl").read_text(encoding="utf-8") in page.read_text(encoding="utf-8")


def test_every_file_belongs_to_a_case() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(CASES)
