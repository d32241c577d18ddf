"""Shells complete commands, options and their values."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from ort_lite.cli.app import root


def completed(*words: str) -> list[str]:
    """Completions of the last word."""
    shell = ShellComplete(root, {}, "ort-lite", "_ORT_LITE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["comp"], ["compile"]),
        (["cache", "ex"], ["explain", "export"]),
        (["run", "--dev"], ["--device"]),
        (["compile", "--device", ""], ["cpu", "gpu", "npu"]),
        (["run", "-e", "openv"], ["openvino"]),
        (["run", "--compare", "c"], ["cpu"]),
        (["bench", "-c", "session.ep_context_cache_d"], ["session.ep_context_cache_dir="]),
        (["run", "--policy", "prefer_n"], ["prefer_npu"]),
    ],
)
def test_a_word_is_completed(words: list[str], expected: list[str]) -> None:
    assert completed(*words) == expected


@pytest.mark.parametrize("words", [["run", "mod"], ["run", "m.onnx", "pho"], ["run", "-i", "x"]])
def test_inputs_and_models_are_completed_as_files(words: list[str]) -> None:
    shell = ShellComplete(root, {}, "ort-lite", "_ORT_LITE_COMPLETE")
    (item,) = shell.get_completions(words[:-1], words[-1])
    assert item.type == "file"


SCRIPTS = {
    "bash": 'eval "$(_ORT_LITE_COMPLETE=bash_source ort-lite)"; COMP_WORDS=(ort-lite comp);'
    " COMP_CWORD=1; _ort_lite_completion ort-lite; echo ${COMPREPLY[0]}",
    "zsh": "autoload -U compinit; compinit -D;"
    ' eval "$(_ORT_LITE_COMPLETE=zsh_source ort-lite)"; print ${_comps[ort-lite]}',
    "fish": "_ORT_LITE_COMPLETE=fish_source ort-lite | source; complete -C 'ort-lite comp'",
}
ANSWERS = {"bash": "compile", "zsh": "_ort_lite_completion", "fish": "compile\tCompile a model"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_documented_line_works_in_the_shell(name: str, tmp_path: Path) -> None:
    shell = shutil.which(name)
    if shell is None:
        pytest.skip(f"{name} is not installed")
    program = tmp_path / "ort-lite"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ort_lite "$@"\n', "utf-8")
    program.chmod(0o755)
    line = SCRIPTS[name].split(";")[2 if name == "zsh" else 0].strip()
    assert line in (Path(__file__).parents[3] / "docs" / "command_line.md").read_text("utf-8")
    done = subprocess.run(
        [shell, "-c", SCRIPTS[name]],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
             "HOME": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(ANSWERS[name])
