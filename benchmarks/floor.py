"""The least that a start can take: OpenVINO's C API in bare Python: `floor.py [MODEL ...]`.

Every turn starts a process of each variant: a program that calls the C API through ctypes, with and
without numpy, ort_lite from its context, and openvino with its cache_dir. Models whose inputs have
free dimensions are left out: the program leaves inputs as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

from contexts import prepare
from engines import OURS, RAW
from report import text_table
from samples import HERE, Sample, ask, make_sample
from starts import NO_BYTECODE, written_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TURNS = 9
MODELS = ("squeezenet_rw", "resnet50_rw")
BARE, WITH_NUMPY = "C API", "C API, numpy"
OURS_CONTEXT, RAW_CACHE = "ort_lite context", "openvino cache_dir"
STEPS = ("numpy", "feed", "libraries", "import", "run")
LEGEND = """
Milliseconds from before a process is started to its first answer, and of its steps, medians;
vs OVc: median over turns of the ratio to openvino with its cache_dir.
libraries: what comes before the vendor's import; in ort_lite's row all of ort_lite is in it.
"""


def main() -> int:
    """Measure and print."""
    asked = ask(__doc__, TURNS, default=MODELS)
    rows = []
    for name in asked.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            commands = _commands(make_sample(name, Path(folder)))
            rows += [(name, *row) for row in _rows(commands, asked.turns)]
    columns = ("model", "program", "answer", "vs OVc", *STEPS)
    sys.stdout.write(text_table(columns, rows) + LEGEND)
    return 0


def _commands(sample: Sample) -> dict[str, tuple[str, ...]]:
    blob = prepare(RAW, sample)["external"]
    context = prepare(OURS, sample)["external"]
    if isinstance(blob, str) or isinstance(context, str):
        raise SystemExit(f"{sample.name}: {blob} {context}")
    script, inputs = str(HERE / "floor_start.py"), written_inputs(sample)
    cache = str(sample.feed.parent / "openvino_cache")
    programs = {
        BARE: ("c_api", str(blob), ""),
        WITH_NUMPY: ("c_api", str(blob), "", *inputs),
        OURS_CONTEXT: ("ort_lite", str(context), "", *inputs),
        RAW_CACHE: ("openvino", str(sample.path), cache, *inputs),
    }
    return {name: (sys.executable, script, *program) for name, program in programs.items()}


def _rows(commands: Mapping[str, Sequence[str]], turns: int) -> list[tuple[str, ...]]:
    for command in commands.values():
        _start(command)  # fills the caches, and the system's
    told = [{name: _start(command) for name, command in commands.items()} for _ in range(turns)]
    rows = []
    for name in commands:
        ratio = median(turn[name]["answer"] / turn[RAW_CACHE]["answer"] for turn in told)
        steps = [median(turn[name].get(step, 0.0) for turn in told) for step in STEPS]
        answer = median(turn[name]["answer"] for turn in told)
        shown = (f"{seconds * 1000:.1f}" if seconds else "-" for seconds in steps)
        rows.append((name, f"{answer * 1000:.1f}", f"{ratio:.2f}", *shown))
    return rows


def _start(command: Sequence[str]) -> dict[str, Any]:
    environment = {name: text for name, text in os.environ.items() if name != NO_BYTECODE}
    began = perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found["answer"] = found.pop("at") - began
    return found


if __name__ == "__main__":
    sys.exit(main())
