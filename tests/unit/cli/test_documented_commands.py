"""Commands of the documentation mean the same in cmd, in PowerShell and in a POSIX shell.

Each shell's rules are written down here; on Windows the shells themselves split the commands.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from system_limits import UNDER_WINE

ROOT = Path(__file__).parents[3]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMMAND = re.compile(r"(?:\$ | {4})((?:ort-lite|pip|python|[A-Z_]+=\S+) .*)")
CMD_SPECIAL = re.compile(r"[&|<>^%!'`]")
POWERSHELL_SPECIAL = re.compile(r"[&|<>,;(){}$@#`]")
ECHO = "import json, sys; print(json.dumps(sys.argv[1:]))"


def documented() -> list[tuple[str, str]]:
    """Page and command of each command line, without its comment."""
    found = []
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            if (match := COMMAND.fullmatch(line.rstrip())) is not None:
                command = re.sub(r"\s+# .*", "", match[1])
                found.append((page.relative_to(ROOT).as_posix(), command))
    return list(dict.fromkeys(found))


COMMANDS = documented()
IDS = [f"{page}: {command}" for page, command in COMMANDS]


def split_like_cmd(command: str) -> list[str]:
    """Arguments as cmd and then a C program split them: only double quotes quote.

    Raises:
        ValueError: A character outside quotes has another meaning there.
    """
    words = []
    for word in _split_words(command, quotes='"'):
        bare = re.sub(r'"[^"]*"', "", word)
        if (special := CMD_SPECIAL.search(bare)) is not None:
            raise ValueError(f"cmd does not read {special[0]} as text in {word}")
        if "%" in word:
            raise ValueError(f"cmd replaces variables in {word}")
        words.append(word.replace('"', ""))
    return words


def split_like_powershell(command: str) -> list[str]:
    """Arguments as PowerShell 5.1 passes them to a program: a bare comma makes an array.

    Raises:
        ValueError: A character has another meaning there.
    """
    words = []
    for word in _split_words(command, quotes="\"'"):
        bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", word)
        if (special := POWERSHELL_SPECIAL.search(bare)) is not None:
            raise ValueError(f"PowerShell does not read {special[0]} as text in {word}")
        if any("$" in quoted or "`" in quoted for quoted in re.findall(r'"[^"]*"', word)):
            raise ValueError(f"PowerShell replaces variables in {word}")
        words.append(re.sub(r"\"([^\"]*)\"|'([^']*)'", r"\1\2", word))
    return words


def _split_words(command: str, quotes: str) -> list[str]:
    words, open_quote, word = [], "", ""
    for character in f"{command} ":
        if character == " " and not open_quote:
            words += [word] if word else []
            word = ""
            continue
        word += character
        if character == open_quote:
            open_quote = ""
        elif character in quotes and not open_quote:
            open_quote = character
    if open_quote:
        raise ValueError(f"a quotation mark is open in {command}")
    return words


def test_commands_are_found() -> None:
    pages = {page for page, _ in COMMANDS}
    assert {"README.md", "docs/quickstart.md", "docs/command_line.md"} <= pages
    assert len(COMMANDS) > 60


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=IDS)
def test_a_command_is_the_same_in_every_shell(page: str, command: str) -> None:
    right = shlex.split(command)
    assert split_like_cmd(command) == right, page
    assert split_like_powershell(command) == right, page


@pytest.mark.parametrize("command", ["a 'b c'", "a b&c", "a %PATH%", "a b^c", "a b>c"])
def test_what_cmd_reads_otherwise_is_found(command: str) -> None:
    with pytest.raises(ValueError, match="cmd"):
        split_like_cmd(command)


@pytest.mark.parametrize("command", ["a b,c", "a $x", 'a "$x"', "a @b", "a {b}", "a b;c"])
def test_what_powershell_reads_otherwise_is_found(command: str) -> None:
    with pytest.raises(ValueError, match="PowerShell"):
        split_like_powershell(command)


@pytest.mark.skipif(sys.platform != "win32", reason="cmd and PowerShell are Windows'")
@pytest.mark.parametrize("shell", ["cmd", "powershell"])
def test_the_shells_of_windows_split_commands_so(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None or (UNDER_WINE and shell == "powershell"):
        pytest.skip(f"{shell} is not here; Wine's PowerShell does nothing")
    # Each command starts Python, which takes a second and more under Wine.
    chosen = [command for page, command in COMMANDS if page == "README.md" or not UNDER_WINE]
    echo = tmp_path / "echo_arguments.py"
    echo.write_text(ECHO, encoding="utf-8")
    call = f'& "{sys.executable}"' if shell == "powershell" else f'@"{sys.executable}"'
    lines = [f'{call} -I -S "{echo}" {command}' for command in chosen]
    script = tmp_path / ("commands.ps1" if shell == "powershell" else "commands.bat")
    script.write_text("\r\n".join(lines) + "\r\n", encoding="ascii")
    options = ["-ExecutionPolicy", "Bypass", "-File"] if shell == "powershell" else ["/d", "/c"]
    done = subprocess.run(
        [program, *options, str(script)], capture_output=True, text=True, timeout=500, check=False
    )
    shown = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert shown == [shlex.split(command) for command in chosen], done.stderr
