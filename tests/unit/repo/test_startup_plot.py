"""The plot of benchmarks/startup/first_answer.py: one bar to scale for each variant."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
VARIANTS = {
    "ort_lite external": 0.2,
    "ort_lite external, opened first": 0.15,
    "ort_lite embedded": 0.3,
    "ort_lite cache": 0.25,
    "ort_lite plain": 0.7,
    "onnxruntime+openvino external": None,
    "onnxruntime+openvino embedded": None,
    "onnxruntime+openvino plain": None,
    "openvino external": 0.5,
    "openvino plain": 0.8,
    "openvino cache": 0.4,
    "onnxruntime[CPU] plain": 0.1,
}


def measured(seconds: float | None) -> dict[str, object]:
    absent = "" if seconds is not None else "not on this machine"
    return {"absent": absent, "turns": [seconds] * 3 if seconds else [], "peak_rss": 1 << 20}


def test_bars_are_as_long_as_what_was_measured(tmp_path: Path) -> None:
    found = {name: measured(seconds) for name, seconds in VARIANTS.items()}
    found |= {f"{name} load": one for name, one in found.items()}
    for model in ("one", "two"):
        (tmp_path / f"{model}.json").write_text(json.dumps({f"<{model}>": found}))
    svg = tmp_path / "plot.svg"
    module = "benchmarks.startup.first_answer_plot"
    files = [str(tmp_path / "one.json"), str(tmp_path / "two.json")]
    done = subprocess.run(
        [sys.executable, "-m", module, *files, "--svg", str(svg)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    contexts, rest = (part.splitlines() for part in done.stdout.split("\n\n")[:2])
    assert contexts[1].split() == ["asked", "0.80x", "0.65x", "0.80x", "0.65x", "0.40x"]
    assert contexts[2].split()[:6] == ["<one>", "200", "-", "0.50x", "0.40x", "2.00x"]
    assert rest[2].split()[:5] == ["<one>", "250", ">1.25x", "700", "-"]
    assert "-: not on this machine" in done.stdout
    root = ET.fromstring(svg.read_text())
    assert {"<one>", "<two>"} <= {text.text for text in root.iter(f"{SVG}text")}
    drawn = [r for r in root.iter(f"{SVG}rect") if r.get("height") == "11"]
    widths = sorted(float(bar.get("width", "")) for bar in drawn)
    drawn_once = sorted([0.2, 0.25, 0.4, 0.8, 0.1])
    scale = widths[-1] / drawn_once[-1]
    expected = [round(seconds * scale, 1) for seconds in drawn_once for _ in files]
    assert all(abs(a - b) <= 0.2 for a, b in zip(widths, expected, strict=True))
