"""Each command as a new user tries it: with nothing, with the wrong thing, for help, at 80 columns.

In a pipe stdout has results alone; an error is one line on stderr with the next step.
"""

from __future__ import annotations

import re
import sys
from io import StringIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click
import onnx
import pytest
from system_limits import WINDOWS
from unit.cli.conftest import write_dense

from ort_lite.cli.app import root
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.rows import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS = 80
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
NEW_NAME = {"keygen", "cache keygen"}
"""Commands whose argument names files to write: any name is right."""
NEXT_STEP = re.compile(
    r"Hint: |ort-lite [a-z]+|Give the path|expected|name (another|a file|the)|exists already"
)


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Names of each command, groups included, with those of the groups around it."""
    yield path
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from walk(inner, (*path, name))


def find(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


ALL = [" ".join(path) for path in walk(root)]
LEAVES = [line for line in ALL if not isinstance(find(tuple(line.split())), click.Group)]
PATHS = [
    (line, one)
    for line in LEAVES
    for one in find(tuple(line.split())).params
    if isinstance(one.type, click.Path)
]
"""Each command with each of its parameters that names a file or a folder."""
WITH_ARGUMENTS = [
    line
    for line in LEAVES
    if line not in NEW_NAME
    and any(isinstance(one, click.Argument) for one in find(tuple(line.split())).params)
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with things that are not models, and caches of its own."""
    folder = tmp_path / "home"
    (folder / "folder").mkdir(parents=True)
    (folder / "photo.png").write_bytes(PNG)
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "notes.txt").write_text("a text", encoding="utf-8")
    model = onnx.load(write_dense(folder / "apart.onnx"))
    kept = {"save_as_external_data": True, "location": "apart.data", "size_threshold": 0}
    onnx.save_model(model, folder / "apart.onnx", **kept)
    (folder / "apart.data").unlink()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return folder


def require_one_line(err: str, command: str) -> None:
    """An error without a traceback that names the next step."""
    assert len(err.splitlines()) == 1, f"{command}: {err}"
    assert err.startswith("error: "), f"{command}: {err}"
    assert "Traceback" not in err
    assert NEXT_STEP.search(err), f"{command} names no next step: {err}"


@pytest.mark.parametrize("command", ALL)
def test_help_fits_80_columns(invoke, command: str) -> None:
    result = invoke(*command.split(), "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: ort-lite {command}".rstrip())
    assert len(result.out.splitlines()) > 4
    assert [line for line in result.out.splitlines() if len(line) > COLUMNS] == []


@pytest.mark.parametrize("command", ALL)
def test_an_unknown_option_is_one_line(invoke, command: str) -> None:
    result = invoke(*command.split(), "--nosuch")
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    require_one_line(result.err, command)


@pytest.mark.parametrize("command", LEAVES)
def test_a_command_without_arguments_works_or_says_what_it_needs(invoke, command: str) -> None:
    result = invoke(*command.split())
    if result.code in (ExitCode.OK, ExitCode.NO_HARDWARE):
        assert result.out
        assert "Traceback" not in result.err
    else:
        assert (result.code, result.out) == (ExitCode.USAGE, "")
        require_one_line(result.err, command)


WRONG = ("photo.png", "empty.onnx", "notes.txt", "folder", "none.onnx", "apart.onnx")
SHOWN = ("inspect", "apart.onnx")
"""Not wrong: a model is inspected without its weight files."""


@pytest.mark.parametrize(
    ("command", "wrong"), [pair for pair in product(WITH_ARGUMENTS, WRONG) if pair != SHOWN]
)
def test_the_wrong_thing_is_one_line(invoke, home: Path, command: str, wrong: str) -> None:
    before = sorted(path.name for path in home.iterdir())
    arguments: list[str] = []
    for one in find(tuple(command.split())).params:
        if isinstance(one, click.Option) and one.required:
            arguments += [one.opts[0], "target.onnx" if "--output" in one.opts else wrong]
        elif isinstance(one, click.Argument):
            arguments.append(wrong)
    result = invoke(*command.split(), *arguments)
    codes = {ExitCode.USAGE, ExitCode.INVALID_GRAPH}
    codes |= {ExitCode.COMPILE_FAILED} if wrong == "apart.onnx" else set()
    assert result.code in codes, result
    assert result.out == ""
    require_one_line(result.err, command)
    assert sorted(path.name for path in home.iterdir()) == before, "nothing is left behind"


@pytest.mark.parametrize(
    ("command", "one"), PATHS, ids=[f"{line} {one.opts[0]}" for line, one in PATHS]
)
def test_an_empty_path_is_not_the_working_folder(
    invoke, command: str, one: click.Parameter
) -> None:
    """As a shell passes it on from a variable that is not set."""
    arguments: list[str] = []
    for other in find(tuple(command.split())).params:
        if isinstance(other, click.Argument):
            arguments.append("" if other is one else "m.onnx")
        elif other is one or other.required:
            arguments += [other.opts[-1], "" if other is one else "name"]
    result = invoke(*command.split(), *arguments)
    assert (result.code, result.out) == (ExitCode.USAGE, "")
    assert "the name is empty; expected a path" in result.err
    require_one_line(result.err, command)


@pytest.mark.parametrize("command", ["cache ls", "hw plan", "devices", "sign"])
def test_verbose_goes_anywhere(invoke, command: str) -> None:
    words = command.split()
    code = invoke(*words).code
    for place in range(len(words) + 1):
        result = invoke(*words[:place], "-v", *words[place:])
        assert result.code == code
        assert "Traceback" not in result.err


class Terminal(StringIO):
    """Text that a program takes for a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_the_plan_keeps_the_names_of_rows_whole(invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rows of this project; of 80 columns, rich uses 79 in an old Windows console."""
    file = Path(__file__).parents[3] / "hw_matrix.yaml"
    monkeypatch.setenv("COLUMNS", str(COLUMNS if WINDOWS else COLUMNS - 1))
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    assert invoke("hw", "plan", "-f", file).code == 0
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= COLUMNS
    names = list(expand(read_matrix(file)))
    assert [line.split()[0] for line in lines[3 : 3 + len(names)]] == names


@pytest.mark.parametrize(
    "command", ["devices", "doctor", "inspect MODEL", "explain MODEL", "run MODEL", "cache ls"]
)
def test_results_fit_a_terminal_of_80_columns(
    invoke, model: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    result = invoke(*(model if word == "MODEL" else word for word in command.split()))
    assert result.code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    wide = [
        line
        for line in shown.splitlines()
        if len(line.rstrip()) > COLUMNS and str(model) not in line
    ]
    assert wide == []
    assert shown.strip() or command == "cache ls"
