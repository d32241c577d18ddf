"""The matrix file of an `ort-lite hw` command, and its rows."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.path_type import PATH
from ort_lite.context.quote_argument import quote_argument

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix

MATRIX_FILE = Path("hw_matrix.yaml")
RESULTS_FOLDER = Path("hw-results")
"""Where `hw run` writes results, and `hw report` looks for them."""
file_option = click.option(
    *("-f", "--file", "file"), type=PATH, default=MATRIX_FILE,
    show_default=True, help="The matrix file.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Project:
    """A matrix and its file; paths in it are relative to the file's folder."""

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


def next_command(name: str, file: Path, results: Path = RESULTS_FOLDER) -> str:
    """`ort-lite hw <name>` for the same matrix and folder of results, as a shell takes it."""
    words = [quote_argument(str(results))] if results != RESULTS_FOLDER else []
    words += ["--file", quote_argument(str(file))] if file != MATRIX_FILE else []
    return " ".join(("ort-lite hw", name, *words))


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors of the matrix into errors of the command.

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
        file: Path of the matrix.
        outdated: Accept evidence that no longer matches its row.

    Raises:
        CommandError: It does not exist, or is invalid.
    """
    from ort_lite.cli.next_steps import look_at
    from ort_lite.hw.errors import MatrixError
    from ort_lite.hw.read_matrix import read_matrix
    from ort_lite.hw.rows import expand

    create = "run ort-lite hw init MODEL to create a matrix, or name another file with --file"
    if not file.is_file():
        problem = "is a folder" if file.is_dir() else "does not exist"
        raise CommandError(ExitCode.USAGE, f"{file} {problem}", hint=create)
    try:
        matrix = read_matrix(file, outdated=outdated)
    except MatrixError as exc:
        kind = look_at(file).partition(";")[0]
        if not kind or not isinstance(exc.__cause__, UnicodeDecodeError):
            raise CommandError(ExitCode.USAGE, str(exc)) from exc
        what = f"{file} is {kind}, not a hardware matrix"
        raise CommandError(ExitCode.USAGE, what, hint=create) from exc
    return Project(file, matrix, expand(matrix))
