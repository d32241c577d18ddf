"""The command line as a process: entry point, streams, pipes, what it imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from system_limits import WINDOWS

from ort_lite.version import VERSION

ROOT = Path(__file__).parents[3]
PROGRAM = Path(sys.executable).with_name("ort-lite")


def call(
    *arguments: object, stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [str(argument) for argument in arguments]
    if WINDOWS and arguments[0] == PROGRAM:  # the wheel is unpacked there, not installed
        command[:1] = [sys.executable, "-m", "ort_lite"]
    return subprocess.run(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_console_script_tells_its_version() -> None:
    done = call(PROGRAM, "--version")
    assert (done.returncode, done.stdout) == (0, f"ort-lite, version {VERSION}\n")


def test_every_command_explains_itself() -> None:
    listed = call(PROGRAM, "--help").stdout.partition("Commands:")[2]
    commands = ["devices", "doctor", "compile", "inspect", "check", "run", "bench", "explain"]
    assert all(f"\n  {command} " in listed for command in commands)
    assert "--json" in call(PROGRAM, "compile", "--help").stdout


def test_without_click_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['click'] = None; from ort_lite.cli import main; main([])"
    hide = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'click' else real(name, *a)\n"
    )
    done = call(sys.executable, "-c", hide + code)
    assert done.returncode == 2
    assert done.stderr == 'error: ort-lite needs click; pip install "ort-lite[cli]"\n'


def test_colours_stay_away_when_nobody_sees_them(model: Path) -> None:
    done = call(PROGRAM, "devices", FORCE_COLOR="", NO_COLOR="1")
    assert "\x1b" not in done.stdout + done.stderr


def test_names_that_stdout_cannot_encode_are_escaped(tmp_path: Path) -> None:
    """On Windows a pipe has the system's code page."""
    path = tmp_path / "модель.onnx"
    x = helper.make_tensor_value_info("输入", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["输入"], ["y"])], "g", [x], [y])
    opset = [helper.make_opsetid("", 17)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )
    done = call(sys.executable, "-m", "ort_lite", "inspect", path, PYTHONIOENCODING="cp1252")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u8f93\u5165" in done.stdout


def test_a_reader_that_goes_away_ends_it_quietly(model: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = call(PROGRAM, "inspect", model, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_what_the_file_alone_decides_needs_no_sdk(
    context: Path, payload: Path, damage: str
) -> None:
    if damage == "missing":
        payload.unlink()
    else:
        payload.write_bytes(payload.read_bytes()[:5000])
    code = (
        "import sys; from ort_lite.cli.app import run_command\n"
        f"code = run_command(['check', {str(context)!r}])\n"
        "loaded = {'openvino', 'onnx', 'pyopencl'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "sys.exit(code)"
    )
    done = call(sys.executable, "-c", code)
    assert (done.returncode, done.stderr) == (4, "")


def test_inspecting_a_context_needs_no_sdk(context: Path) -> None:
    code = (
        "import sys; from ort_lite.cli.app import run_command\n"
        f"code = run_command(['inspect', {str(context)!r}])\n"
        "loaded = {'openvino', 'onnx', 'pyopencl'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
        "sys.exit(code)"
    )
    done = call(sys.executable, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_logs_go_to_stderr_and_leave_json_whole(model: Path) -> None:
    done = call(PROGRAM, "-vv", "explain", model, "-e", "cpu", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema_version"] == 1
