"""Runs a matrix that is broken on purpose, and records what the report says of it.

`python tests/hw_broken/record.py` takes two minutes and writes docs/reports/hw_matrix_broken.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
MATRIX = Path(__file__).with_name("hw_matrix.yaml")
MODEL = ROOT / ".models/squeezenet_rw.onnx"
SCRATCH = ROOT / ".demo/hw_broken"
RESULTS = SCRATCH / "results"
REPORT = ROOT / "docs/reports/hw_matrix_broken.md"
EXPECTED = {"fetch": 0, "run": 1, "build": 0, "load": 1, "report": 1}
"""Exit codes of the commands."""
ABOUT = """\
<!-- Recorded by `python tests/hw_broken/record.py` from tests/hw_broken/hw_matrix.yaml: every row
but the first has one thing wrong with it; one bit of the context was flipped before its load. -->

"""


def main() -> int:
    """Break, run and record; 1, and no report, if a command or a row does not end as expected."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    codes = {"fetch": fetch(), "run": hw("run")}
    codes["build"] = hw("crossload", "right", "--build-only")
    built = RESULTS / "crossload" / "right-openvino-2026.4.1"
    flip_one_bit(next(built.glob("contexts/*.bin")))
    codes["load"] = hw("crossload", "right", "--contexts", str(built))
    codes["report"] = hw("report", str(RESULTS), "--out", str(SCRATCH / "report"), to=())
    text = timeless(SCRATCH / "report/report.md")
    if codes != EXPECTED or "1 of 6 rows passed" not in text:
        sys.stderr.write(f"{codes}, expected {EXPECTED} and one row that passes:\n{text}")
        return 1
    REPORT.write_text(ABOUT + text, "utf-8")
    sys.stdout.write(f"see {REPORT}\n")
    return 0


def fetch() -> int:
    """Bring the model, make its feed, and an oracle that is one percent off."""
    command = [sys.executable, str(ROOT / "tests/model_set/fetch.py"), MODEL.stem]
    code = subprocess.run(command, check=False).returncode
    feed = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    (output,) = session.get_outputs()
    (values,) = session.run(None, {"data_0": feed})
    np.savez(SCRATCH / "feed.npz", data_0=feed)
    np.savez(SCRATCH / "one_percent_more.npz", **{output.name: values * np.float32(1.01)})
    return code


def hw(command: str, *arguments: str, to: tuple[str, ...] = ("--out", str(RESULTS))) -> int:
    """`ort-lite hw COMMAND` on the broken matrix; its exit code."""
    places = ["--environments", str(ROOT / ".hw-environments")] if to else []
    program = Path(sys.executable).with_name("ort-lite")
    line = [str(program), "hw", command, "-f", str(MATRIX), *to, *places, *arguments]
    return subprocess.run(line, check=False).returncode


def flip_one_bit(path: Path) -> None:
    """In the middle of a payload; a published file is never changed in place."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)


def timeless(report: Path) -> str:
    """A report without when and at which commit, which the commit that carries it says.

    Also without this checkout's folder, which is in commands that the report quotes.
    """
    lines = report.read_text("utf-8").replace(f"{ROOT}{os.sep}", "").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("Run on "))


if __name__ == "__main__":
    sys.exit(main())
