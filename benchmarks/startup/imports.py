"""What `import ort_lite` costs over bare Python, each in a process of its own.

`python -m benchmarks.startup.imports [--turns N]`. Ends with 1 if it brings in numpy, onnx or an
SDK.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from statistics import median
from time import perf_counter

from benchmarks.harness.conditions import conditions
from benchmarks.harness.report import text_table

TURNS = 15
BARE = "pass"
STATEMENTS = (BARE, "import ort_lite", "import numpy", "import onnxruntime", "import openvino")
UNWANTED = ("numpy", "onnx", "ml_dtypes", "openvino", "pyopencl", "onnxruntime")
LEGEND = """
Milliseconds of a whole `python -c`, medians; over bare: the median of the differences in a turn.
"""


def main() -> int:
    """Measure and print; 1 if an import brings in what it should not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each is timed")
    turns = parser.parse_args().turns
    for statement in STATEMENTS:
        seconds_of(statement)  # from the disk and into .pyc files
    times = [{s: seconds_of(s) for s in STATEMENTS} for _ in range(turns)]
    rows = [
        (
            s,
            f"{median(turn[s] for turn in times) * 1000:.1f}",
            f"{median(turn[s] - turn[BARE] for turn in times) * 1000:.1f}",
        )
        for s in STATEMENTS
    ]
    modules = brought_in()
    said = f"import ort_lite brings in {', '.join(modules)}\n" if modules else ""
    sys.stdout.write(
        conditions() + text_table(("statement", "whole", "over bare"), rows) + LEGEND + said
    )
    return 1 if modules else 0


def seconds_of(statement: str) -> float:
    """Seconds of a process that only executes `statement`."""
    began = perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return perf_counter() - began


def brought_in() -> list[str]:
    """Which of UNWANTED `import ort_lite` imports."""
    program = "import sys, ort_lite; sys.stdout.write(' '.join(sys.modules))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [name for name in UNWANTED if name in done.stdout.split()]


if __name__ == "__main__":
    sys.exit(main())
