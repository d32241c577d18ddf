"""The progress bar of a compile: on a terminal, and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from small_models import mlp, sandwich

from ort_lite.cli.compile_times import FILE, CompileTimes, key_of
from ort_lite.cli.session_choice import SessionChoice

if TYPE_CHECKING:
    from pathlib import Path

pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals of POSIX's")

COMMAND = [sys.executable, "-m", "ort_lite", "compile", "m.onnx"]


def seen_on_a_terminal(folder: Path) -> str:
    """What the command shows where its stderr is a terminal."""
    terminal, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
    environment["XDG_CACHE_HOME"] = str(folder / "caches")
    with subprocess.Popen(
        COMMAND, cwd=folder, stdout=subprocess.DEVNULL, stderr=side, env=environment
    ) as child:
        os.close(side)
        shown = b""
        try:
            while data := os.read(terminal, 1 << 16):
                shown += data
        except OSError:
            pass  # Linux says EIO where nobody holds the other side any more
    os.close(terminal)
    assert child.returncode == 0, shown
    return shown.decode()


def test_a_terminal_shows_which_partition_of_how_many(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    shown = seen_on_a_terminal(tmp_path)
    assert "compiling for OpenVINO " in shown
    for count in ("0/3", "1/3", "2/3"):
        assert count in shown


def test_a_single_partition_shows_that_time_goes_by_instead_of_no_progress(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    shown = seen_on_a_terminal(tmp_path)
    assert "compiling for OpenVINO " in shown
    assert "0/1" not in shown
    assert "0:00:0" in shown


def test_a_partition_that_was_compiled_before_shows_how_long_that_took(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    assert "last time" not in seen_on_a_terminal(tmp_path)
    done = subprocess.run(
        [*COMMAND, "--force", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    key = key_of(json.loads(done.stdout)["partitions"][0]["name"], SessionChoice().compile_key())
    CompileTimes(tmp_path / "caches" / "ort_lite" / FILE).record({key: 4000.0})
    (tmp_path / "m_ctx.onnx").unlink()
    assert "last time 4000 s" in seen_on_a_terminal(tmp_path)


def test_a_pipe_gets_no_bar(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    done = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "compiling" not in done.stderr + done.stdout
