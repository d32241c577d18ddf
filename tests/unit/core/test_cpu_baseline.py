"""A CPU that is too old for numpy gets an answer instead of SIGILL."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import onnx.parser
import pytest

import ort_lite as ort
from eps.cpu import FACTORY
from ort_lite import cpu_baseline
from ort_lite.cli.app import run_command
from ort_lite.cpu_baseline import baseline_problem, missing_instructions

ROOT = Path(__file__).parents[3]
CORE_2 = sum(1 << bit for bit in (0, 9, 13, 19))  # of 2008: SSE4.1, neither SSE4.2 nor POPCNT

RELU = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
).SerializeToString()


@pytest.fixture
def old_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_baseline, "_features", lambda: CORE_2)


def test_what_is_missing_is_named() -> None:
    assert missing_instructions(CORE_2) == ("SSE4.2", "POPCNT")
    assert missing_instructions((1 << 32) - 1) == ()


def test_this_cpu_which_has_imported_numpy_lacks_nothing() -> None:
    assert baseline_problem() == ""


@pytest.mark.usefixtures("old_cpu")
def test_the_cpu_ep_is_not_there_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy")  # which only a CPU that has it all has imported
    monkeypatch.setattr("eps.cpu._has_sse42", lambda: False)
    assert FACTORY.probe().devices == ()
    assert "lacks SSE4.2, POPCNT" in FACTORY.probe().reason
    with pytest.raises(ort.EPFail, match=r"lacks SSE4\.2, POPCNT"):
        FACTORY.create({})
    with pytest.raises(ort.EPFail, match=r"lacks SSE4\.2, POPCNT"):
        ort.InferenceSession(RELU, providers=["CPUExecutionProvider"])


@pytest.mark.usefixtures("old_cpu")
def test_commands_end_and_doctor_names_the_cause(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["devices"]) == 3
    assert "lacks SSE4.2, POPCNT" in capfd.readouterr().err
    assert run_command(["doctor"]) == 3
    told = " ".join(capfd.readouterr().out.split())
    assert "this CPU lacks SSE4.2, POPCNT" in told
    assert "ExecutionProvider" not in told  # their libraries would end the process


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-user is not here")
@pytest.mark.parametrize(
    ("cpu", "arguments", "code", "words"),
    [
        ("Conroe", ["-c", "import ort_lite; print(ort_lite.__name__)"], 0, "ort_lite"),
        ("Conroe", ["-m", "ort_lite", "devices"], 3, "SSE4.2, POPCNT"),
        ("Nehalem", ["-c", "import numpy, onnx; print('imported')"], 0, "imported"),
    ],
)
def test_no_instruction_is_met_that_a_cpu_lacks(
    cpu: str, arguments: list[str], code: int, words: str
) -> None:
    """In an emulator, which ends a program at an instruction that the CPU does not have."""
    command = ["qemu-x86_64", "-cpu", cpu, sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
