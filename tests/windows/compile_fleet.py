"""Compiles models for the NPUs of hw_matrix.yaml with OpenVINO's Windows build under Wine.

`python tests/windows/compile_fleet.py [--folder FOLDER] [ROW ...] [--out DIR]` is `ort-lite hw
compile` on a Linux machine: Intel's NPU compiler comes with OpenVINO for Windows alone. Wine is not
Windows, but the compiler is the vendor's own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from windows.machine import ROOT, MissingError, build_machine, windows_path  # noqa: E402 - the path is first


def main() -> int:
    """Build the machine, and run the command in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", default=["openvino-npu-*"])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "windows")
    parser.add_argument("--out", type=Path, default=Path("hw-fleet"))
    options = parser.parse_args()
    try:
        machine = build_machine(options.folder.resolve())
    except MissingError as exc:
        print(f"windows: {exc}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    out = ["--out", windows_path(options.out)]
    command = machine.command("-m", "ort_lite", "hw", "compile", *options.rows, *out)
    process = subprocess.Popen(
        command,
        cwd=machine.checkout,
        env=machine.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    for line in process.stdout:  # Wine's programs want a pipe
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
