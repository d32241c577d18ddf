"""Draws the pictures of docs/quickstart.md from the real output of its commands.

    python .ci/terminal_pictures.py model.onnx [--out docs/pictures]

Every console block that is followed by a picture is run on a terminal of 80 columns, in a folder
with the model and what the page's Python blocks make. The pictures load nothing from elsewhere.
"""

from __future__ import annotations

import argparse
import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "quickstart.md"
COLUMNS = 80
BLOCK = re.compile(
    r"^```(?P<language>python|console)\n(?P<code>.*?)^```\n(?:\n!\[[^\]]*\]\(pictures/(?P<picture>\w+)\.svg\))?",
    re.DOTALL | re.MULTILINE,
)
FONT_FACES = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
"""Fonts that rich's pictures would load from another site."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A command and everything that it wrote, with the terminal's colours."""

    command: str
    output: str

    @property
    def lines(self) -> list[str]:
        """The output without colours and empty lines."""
        text = Text.from_ansi(self.output).plain
        return [line.strip() for line in text.splitlines() if line.strip()]


def record_page(model: Path, folder: Path) -> dict[str, list[Shown]]:
    """Run the page's blocks in `folder`; returns the commands of each picture by its name."""
    shutil.copy(model, folder / "model.onnx")
    pictures = {}
    for block in BLOCK.finditer(PAGE.read_text("utf-8")):
        if block["language"] == "python" and "ort_lite" not in block["code"]:
            subprocess.run([sys.executable, "-c", block["code"]], cwd=folder, check=True)
        if block["picture"]:
            commands = [line[2:] for line in block["code"].splitlines() if line.startswith("$ ")]
            pictures[block["picture"]] = [run_on_terminal(one, folder) for one in commands]
    return pictures


def run_on_terminal(command: str, folder: Path) -> Shown:
    """Run one command of ort-lite, stdout being a terminal; notes of stderr come first."""
    program, *arguments = shlex.split(command)
    if program != "ort-lite":
        raise ValueError(f"{command}: only commands of ort-lite have pictures")
    terminal, side = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment["PYTHONPATH"] = str(ROOT)
    with subprocess.Popen(
        [sys.executable, "-m", "ort_lite", *arguments],
        cwd=folder, env=environment, stdout=side, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        os.close(side)
        shown = b""
        try:
            while data := os.read(terminal, 1 << 16):
                shown += data
        except OSError:
            pass  # Linux says EIO where nobody holds the other side any more
        os.close(terminal)
        notes = child.stderr.read() if child.stderr is not None else b""
    if child.returncode:
        raise RuntimeError(f"{command}: exit code {child.returncode}: {notes.decode()}")
    return Shown(command, (notes + shown).decode().replace("\r\n", "\n"))


def draw(name: str, shown: list[Shown]) -> str:
    """A picture of a terminal with these commands, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for one in shown:
        console.print(Text.assemble(("$ ", "bold green"), (one.command, "bold")))
        console.print(Text.from_ansi(one.output.strip("\n")))
    return console.export_svg(
        title="", code_format=FONT_FACES.sub("", CONSOLE_SVG_FORMAT), unique_id=f"terminal-{name}"
    )


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, shown in record_page(arguments.model, Path(folder)).items():
            (arguments.out / f"{name}.svg").write_text(draw(name, shown), encoding="utf-8")
            print(arguments.out / f"{name}.svg")


if __name__ == "__main__":
    main()
