"""Results on stdout, as a table or as JSON; progress on stderr, on a terminal only."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from contextlib import contextmanager
from math import isfinite
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SCHEMA_VERSION = 1
"""Version of every `--json` output; grows when a field is removed or changes its meaning."""

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of tables."
)


@contextmanager
def result_writing() -> Iterator[None]:
    """Guard for code that writes to stdout.

    Raises:
        CommandError: stdout cannot be written; click handles a pipe without a reader.
    """
    if sys.stdout is None:  # closed by whoever started the process
        raise CommandError(ExitCode.USAGE, "cannot write the result to stdout: it is closed")
    try:
        yield
        sys.stdout.flush()
    except OSError as exc:
        if exc.errno == errno.EPIPE:
            raise
        _drop_unwritten()
        if sys.platform == "win32" and exc.errno == errno.EINVAL:  # Windows' for EPIPE
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from exc
        raise CommandError(
            ExitCode.USAGE, f"cannot write the result to stdout: {exc.strerror}"
        ) from exc


def escape_unencodable() -> None:
    """Let stdout escape characters that its encoding lacks, as stderr does anyway.

    On Windows a pipe or a file has the code page of the system, cp1252 for one.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_unwritten() -> None:
    """Leave nothing in stdout's buffer, which the interpreter would try to write at exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


def print_json(fields: Mapping[str, Any]) -> None:
    """Print one JSON object with a `schema_version`."""
    with result_writing():
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **fields}, indent=2))


def print_line(text: str) -> None:
    """Print one line of a result to stdout."""
    with result_writing():
        click.echo(escape_unprintable(text))


def print_note(text: str) -> None:
    """Print one line that is not part of the result to stderr."""
    click.echo(escape_unprintable(text), err=True)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """Print a table without frames; columns named in `right` are right-aligned.

    In a pipe or a file each row is one line of any width, for the next program.
    """
    if not sys.stdout.isatty():
        _print_plain_table(columns, rows, right)
        return
    # rich takes longer to import than a small context model takes to load.
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(escape_unprintable(cell)) for cell in row))
    with result_writing():
        console.print(table)


def _print_plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]
) -> None:
    cells = [
        [" ".join(escape_unprintable(cell).split()) for cell in row] for row in (columns, *rows)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        print_line(line.rstrip())


def wrapped_lines(label: str, text: str, *, hanging: int | None = None) -> list[str]:
    """`text` after `label`, in lines that fit the terminal; one line in a pipe.

    Args:
        label: Begins the first line.
        text: On one line.
        hanging: Columns by which further lines are indented; None for the label's.
    """
    if not sys.stdout.isatty():
        return [label + text]
    return wrap(
        text,
        width=get_terminal_size().columns,
        initial_indent=label,
        subsequent_indent=" " * (len(label) if hanging is None else hanging),
        break_on_hyphens=False,
    ) or [label]


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show on a terminal the current activity and its duration."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(escape(doing), total=None)
        yield


def escape_unprintable(text: str) -> str:
    """`text`, with escapes for what would control a terminal or has no encoding at all.

    Names of nodes and paths of models come from untrusted files.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def finite(value: float) -> float | None:
    """`value`, or None for what JSON has no number for."""
    return value if isfinite(value) else None


def count_text(number: int, thing: str) -> str:
    """A number with its noun: `1 entry`, `2 entries`."""
    if number == 1:
        return f"1 {thing}"
    return f"{number} {thing[:-1]}ies" if thing.endswith("y") else f"{number} {thing}s"


def size_text(size: int) -> str:
    """Bytes for a person: `4.7 MB`."""
    value = float(size)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def time_text(seconds: float) -> str:
    """Seconds for a person: `12.3 ms`."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.2f} ms"
