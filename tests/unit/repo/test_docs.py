"""Code in the documentation runs as printed; a block that cannot says why."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from stand_in_programs import python

from ort_lite.cli.app import run_command

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RUN = {"python", "console"}
SHOWN = {"text", "toml", "yaml", "json", "bson", "protobuf", "c", "bash"}
"""Languages of blocks that nobody expects to run."""
EXCUSE = re.compile(r"<!-- not run: .{10,} -->\s*\Z")
FILE = re.compile(r"<!-- file: (\S+) -->\s*\Z")
"""Before a block that is written to a file, for a command further down."""
QUOTE = re.compile(r"<!-- from: (\S+) -->\s*\Z")
"""Before a block that is an excerpt of a file of the repository, and runs there."""
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int
    language: str
    code: str
    excused: bool
    file: str = ""
    quoted: str = ""


def blocks_of(text: str, page: str) -> list[Block]:
    return [
        Block(
            page=page,
            line=text[: match.start()].count("\n") + 1,
            language=match[1].strip(),
            code=match[2],
            excused=bool(EXCUSE.search(text[: match.start()])),
            file=found[1] if (found := FILE.search(text[: match.start()])) else "",
            quoted=found[1] if (found := QUOTE.search(text[: match.start()])) else "",
        )
        for match in FENCE.finditer(text)
    ]


ALL = [b for p in PAGES for b in blocks_of(p.read_text("utf-8"), p.relative_to(ROOT).as_posix())]
TO_RUN = [
    p
    for p in PAGES
    if any(b.language in RUN and not b.excused for b in blocks_of(p.read_text("utf-8"), ""))
]


def test_every_block_says_what_it_is() -> None:
    unmarked = [f"{b.page}:{b.line}" for b in ALL if b.language not in RUN | SHOWN]
    assert unmarked == [], f"languages: {sorted(RUN)} are run, {sorted(SHOWN)} are not"


def test_an_excuse_counts_only_right_before_its_block() -> None:
    excuse = "<!-- not run: needs a device that is not here -->\n"
    text = f"{excuse}```python\n1/0\n```\n```python\n2\n```\n"
    assert [b.excused for b in blocks_of(text, "p")] == [True, False]


@pytest.mark.parametrize("block", [b for b in ALL if b.quoted], ids=lambda b: f"{b.page}:{b.line}")
def test_an_excerpt_is_in_the_file_that_it_names(block: Block) -> None:
    assert block.code in (ROOT / block.quoted).read_text("utf-8")


@pytest.mark.parametrize("page", TO_RUN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_run_in_order(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model_path: Callable[[str], Path],
) -> None:
    """Python in one namespace, `$ ort-lite` and `$ python`, in a folder with a `model.onnx`."""
    shutil.copy(model_path("squeezenet_rw"), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples" / "example_ep")
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks_of(page.read_text("utf-8"), page.name):
        if block.excused or block.quoted or block.language not in RUN:
            continue
        if block.file:
            Path(block.file).write_text(block.code, encoding="utf-8")
            continue
        if block.language == "python":
            where = f"{page.name}:{block.line}"
            exec(compile(block.code, where, "exec"), namespace)
            continue
        commands = [line[2:] for line in block.code.splitlines() if line.startswith("$ ")]
        assert commands, f"{page.name}:{block.line}: a console block without a command"
        for line in commands:
            command, _, code = line.partition("  # exit code ")
            program, *arguments = shlex.split(command)
            if program == "python":
                python(*arguments)
                continue
            assert program == "ort-lite", f"{page.name}:{block.line}: {command}"
            assert run_command(arguments) == int(code or 0), command


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text("utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []
