"""Commands that the CLI prints are right in the shells of the system that it runs on."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from system_limits import UNDER_WINE
from unit.cli.conftest import write_dense
from unit.cli.test_documented_commands import ECHO, split_like_cmd, split_like_powershell

from ort_lite.cli.exit_codes import ExitCode
from ort_lite.context.quote_argument import is_quotable, quote_argument

ANYWHERE = (
    "model.onnx",
    "my model.onnx",
    "a,b.onnx",
    "net (1).onnx",
    "a&b.onnx",
    "a;b.onnx",
    "a^b.onnx",
    "it's.onnx",
    "@new.onnx",
    "x=1x3",
    "openvino-npu[openvino=2026.4.1]",
    "модель.onnx",
    "~home.onnx",
    "#1.onnx",
    "{a}.onnx",
    "ort-lite[cli]==0.1.0",
    "ort-lite @ git+https://example.org/o.git@1",
)
"""Names that one form of quoting passes on in each shell."""
ON_WINDOWS = (r"C:\models\net.onnx", r"C:\my models\net.onnx")
WITH_DOLLARS = ("a$b.onnx", "a`b.onnx", "$it's.onnx")
ON_POSIX = (*WITH_DOLLARS, 'a"b.onnx', r"a\b.onnx", "a!b.onnx", "")


def quote_on_windows(text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        return quote_argument(text)


@pytest.mark.parametrize("text", [*ANYWHERE, *ON_WINDOWS])
def test_quotes_on_windows_are_read_alike_by_cmd_and_powershell(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted = quote_on_windows(text, monkeypatch)
    assert split_like_cmd(quoted) == split_like_powershell(quoted) == [text]


@pytest.mark.parametrize("text", ["a$b.onnx", "a`b.onnx", "$a b.onnx"])
def test_what_powershell_would_replace_is_in_its_single_quotes(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert split_like_powershell(quote_on_windows(text, monkeypatch)) == [text]


@pytest.mark.parametrize("text", [*ANYWHERE, *ON_WINDOWS, *WITH_DOLLARS, '{"CPU": {}}'])
def test_a_text_is_quotable_where_both_shells_of_windows_read_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_quotable(text) or os.name == "nt"
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        assert is_quotable(text) == set(text).isdisjoint('"$`')


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_a_posix_shell_passes_quoted_arguments_on() -> None:
    names = [*ANYWHERE, *ON_WINDOWS, *ON_POSIX]
    command = " ".join(["printf", "'%s\\0'", *map(quote_argument, names)])
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0")[:-1] == names


@pytest.mark.skipif(sys.platform != "win32", reason="cmd and PowerShell are Windows'")
@pytest.mark.parametrize("shell", ["cmd", "powershell"])
def test_the_shells_of_windows_pass_quoted_arguments_on(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None or (UNDER_WINE and shell == "powershell"):
        pytest.skip(f"{shell} is not here; Wine's PowerShell does nothing")
    # A script file has the code page of the system.
    names = [name for name in (*ANYWHERE, *ON_WINDOWS) if name.isascii()]
    names += WITH_DOLLARS if shell == "powershell" else ()
    echo = tmp_path / "echo_arguments.py"
    echo.write_text(ECHO, encoding="utf-8")
    call = f'& "{sys.executable}"' if shell == "powershell" else f'@"{sys.executable}"'
    line = " ".join([f'{call} -I -S "{echo}"', *map(quote_argument, names)])
    script = tmp_path / ("commands.ps1" if shell == "powershell" else "commands.bat")
    script.write_text(line + "\r\n", encoding="ascii")
    options = ["-ExecutionPolicy", "Bypass", "-File"] if shell == "powershell" else ["/d", "/c"]
    done = subprocess.run(
        [program, *options, str(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert json.loads(done.stdout) == names, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "MODEL"], ExitCode.OK),
        (["compile", "MODEL", "-e", "cpu"], ExitCode.COMPILE_FAILED),
        (["share", "MODEL", "-e", "cpu"], ExitCode.COMPILE_FAILED),
        (["run", "photo.png", "MODEL"], ExitCode.USAGE),
    ],
    ids=["check", "compile", "share", "run"],
)
def test_a_hint_quotes_the_model(
    invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: ExitCode,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_dense(tmp_path / "my model, new.onnx")
    name = "my model, new.onnx"
    result = invoke(*(name if word == "MODEL" else word for word in arguments))
    assert result.code == code, result
    (command,) = re.findall(r'ort-lite \w+ (?:"[^"]*"|photo\.png| )+', result.err)
    assert name in shlex.split(command)


@pytest.mark.parametrize("output", ["", "ship.onnx", "ship it.onnx", "out/dense_ctx.onnx"])
@pytest.mark.parametrize("inside", [True, False], ids=["in its folder", "elsewhere"])
def test_the_command_that_compiles_a_model_again_replaces_the_context(
    invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, *, inside: bool
) -> None:
    folder = tmp_path if inside else tmp_path.parent
    prefix = "" if inside else f"{tmp_path.name}/"
    monkeypatch.chdir(folder)
    write_dense(tmp_path / "dense.onnx")
    (tmp_path / "out").mkdir()
    if output.startswith("out/") and not inside:
        write_dense(folder / "dense.onnx")  # its name alone is recorded
    named = ["-o", prefix + output] if output else []
    made = invoke("compile", f"{prefix}dense.onnx", "-e", "openvino", *named)
    assert made.code == ExitCode.OK, made
    context = prefix + (output or "dense_ctx.onnx")
    proto = onnx.load(context)
    for node in proto.graph.node:
        (version,) = [a for a in node.attribute if a.name == "ep_sdk_version"]
        version.s = b"2024.1.0"
    Path(context).write_bytes(proto.SerializeToString())
    result = invoke("run", context, "--shape", "x=1x3")
    assert result.code == ExitCode.INVALID_GRAPH
    (command,) = re.findall(r"ort-lite (compile .+)", result.err)
    split = split_like_cmd if sys.platform == "win32" else shlex.split
    again = invoke(*split(command.strip()))
    assert again.code == ExitCode.OK, again
    assert invoke("run", context, "--shape", "x=1x3").code == ExitCode.OK
