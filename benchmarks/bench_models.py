"""ort_lite against onnxruntime, plain and with OpenVINO, on the model set.

`python benchmarks/bench_models.py [NAMES]`. Each engine runs each model in a process of its own.
Prints medians and ratios; ends with 1 if an output is further than 1e-4 from onnxruntime's, or if a
reloaded model does not give the compiled one's numbers bit for bit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from model_set.manifest import load_manifest
from model_set.store import ensure_models

OURS, PEER, FLOOR, RAW = "ort_lite", "onnxruntime+openvino", "openvino", "onnxruntime"
TOLERANCE = 1e-4
QUANTISED = {"rawi_lstm_int8": 2e-2}
"""Dynamic quantisation rounds by the run-time range: engines differ by steps of int8."""
COLUMNS = (
    *("model", "nodes on OV", "max rel.", "bits", "session", "external", "vs EP", "vs OV"),
    *("embedded", "vs EP", "run", "vs EP", "vs OV", "vs CPU"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model: what is printed, and whether the numbers are right."""

    cells: tuple[str, ...]
    right: bool


def main(names: list[str]) -> int:
    """Measure and print a row for each model."""
    ensure_models(names)
    print("".join(f"{c:>13}" if i else f"{c:<20}" for i, c in enumerate(COLUMNS)))
    rows = []
    for name in names or load_manifest():
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            row = measure(name, Path(folder))
        print("".join(f"{c:>13}" if i else f"{c:<20}" for i, c in enumerate(row.cells)), flush=True)
        rows.append(row)
    print("\nvs EP: ort_lite's time over that of onnxruntime with onnxruntime-ep-openvino.")
    print("vs OV: over that of the openvino package alone: import_model of a map, or infer().")
    print("vs CPU: over that of onnxruntime's CPU execution provider.")
    return 0 if all(row.right for row in rows) else 1


def measure(name: str, folder: Path) -> Row:
    """All engines on one model."""
    engines = (OURS, PEER, FLOOR, RAW)
    ours, peer, floor, raw = (run_engine(engine, name, folder) for engine in engines)
    outputs = {
        kind: load(folder / f"{OURS}-{name}-{kind}.npz")
        for kind in ("model", "external", "embedded")
    }
    reference = load(folder / f"{RAW}-{name}-model.npz")
    apart = max(difference(found, reference) for found in outputs.values())
    same_bits = all(
        [a.tobytes() for a in outputs[kind]] == [a.tobytes() for a in outputs["model"]]
        for kind in ("external", "embedded")
    )
    nodes = ours["nodes"]
    whole = f"{nodes.get('OpenVINOExecutionProvider', 0)}/{sum(nodes.values())}"
    cells = (
        *(name, whole, f"{apart:.1e}", "same" if same_bits else "DIFFER"),
        milliseconds(ours["session_model"]),
        *(milliseconds(ours["session_external"]), ratio(ours, peer, "session_external")),
        ratio(ours, floor, "session_external"),
        *(milliseconds(ours["session_embedded"]), ratio(ours, peer, "session_embedded")),
        *(milliseconds(ours["run"]), ratio(ours, peer, "run"), ratio(ours, floor, "run")),
        ratio(ours, raw, "run"),
    )
    right = same_bits and apart <= QUANTISED.get(name, TOLERANCE)
    return Row(cells=cells, right=right)


def run_engine(engine: str, name: str, folder: Path) -> dict[str, Any]:
    """What measure.py finds; {} where the engine cannot do it, which is said on stderr."""
    command = [sys.executable, str(HERE / "measure.py"), engine, name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        sys.stderr.write(f"{engine} on {name} ended with {done.returncode}: {last}\n")
        if engine in (OURS, RAW):
            sys.exit(1)
        return {}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def load(path: Path) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Outputs in order."""
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def difference(
    found: list[np.ndarray[Any, np.dtype[Any]]], reference: list[np.ndarray[Any, np.dtype[Any]]]
) -> float:
    """Largest difference over the reference's largest magnitude, over all outputs."""
    return max(
        float(np.abs(a.astype(np.float64) - b).max()) / max(float(np.abs(b).max()), 1e-30)
        for a, b in zip(found, reference, strict=True)
    )


def milliseconds(seconds: float) -> str:
    """`12.34 ms`."""
    return f"{seconds * 1000:.2f} ms"


def ratio(ours: dict[str, Any], theirs: dict[str, Any], key: str) -> str:
    """Our time over theirs."""
    return f"{ours[key] / theirs[key]:.2f} x" if key in theirs else "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
