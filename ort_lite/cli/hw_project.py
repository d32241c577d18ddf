"""The matrix file that a command of `ort-lite hw` is about, and its rows."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix

file_option = click.option(
    *("-f", "--file", "file"), type=click.Path(path_type=Path), default=Path("hw_matrix.yaml"),
    show_default=True, help="The matrix.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Project:
    """A matrix and where it lies; its paths are relative to its folder."""

    file: Path
    matrix: Matrix
    rows: Mapping[str, ExpandedRow]

    @property
    def root(self) -> Path:
        """The folder of the matrix file."""
        return self.file.resolve().parent

    def select(self, names: Sequence[str], lane: str = "") -> tuple[ExpandedRow, ...]:
        """Rows by name, of one lane if that is given.

        Raises:
            CommandError: A name fits no row.
        """
        from ort_lite.hw.rows import select

        with usage_errors():
            chosen = select(self.rows, names)
        return tuple(row for row in chosen if not lane or row.lane == lane)


@contextmanager
def usage_errors() -> Iterator[None]:
    """What is wrong with the matrix, as an error of the command.

    Raises:
        CommandError: In place of MatrixError.
    """
    from ort_lite.hw.errors import MatrixError

    try:
        yield
    except MatrixError as exc:
        raise CommandError(ExitCode.USAGE, str(exc)) from exc


def read_project(file: Path, *, outdated: bool = False) -> Project:
    """Read and check a matrix.

    Args:
        file: Where it lies.
        outdated: Take evidence that no longer answers to its row.

    Raises:
        CommandError: There is none, or it is wrong.
    """
    from ort_lite.hw.read_matrix import read_matrix
    from ort_lite.hw.rows import expand

    if not file.is_file():
        raise CommandError(
            ExitCode.USAGE, f"{file} is not there", hint="ort-lite hw init writes one"
        )
    with usage_errors():
        matrix = read_matrix(file, outdated=outdated)
    return Project(file, matrix, expand(matrix))
