"""benchmarks.latency.lengths: runs whose lengths are new."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import onnx
import onnx.parser
import pytest

from benchmarks.harness.samples import ROOT
from benchmarks.latency.lengths import Sizes, draw_sizes

if TYPE_CHECKING:
    from pathlib import Path

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, length, 4] x, int64[batch, length] mask) => (float[1, length, 4] y) {
  n = Neg(mask) y = Abs(x) }"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    onnx.save(onnx.parser.parse_model(MODEL), folder / "m.onnx")
    command = [sys.executable, "-m", "benchmarks.latency.lengths", str(folder / "m.onnx")]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_new_lengths_are_measured_against_both_peers(tmp_path: Path) -> None:
    written = tmp_path / "all.json"
    done = run(tmp_path, "length=3:9", "--runs", "4", "--turns", "1", "--json", str(written))
    assert done.returncode == 0, done.stderr
    assert "new" in done.stdout
    measured: dict[str, Any] = json.loads(written.read_text())["m.onnx"]
    for engine in ("ort_lite[default]", "openvino", "onnxruntime[CPU]"):
        for step in ("new", "again"):
            assert len(measured[f"{engine} {step}"]["turns"]) == 1, measured[engine]


@pytest.mark.parametrize("sizes", ["length", "length=9:3", "length=0:3", "length=1:3:0", "n=a:b"])
def test_sizes_that_cannot_be_read_are_refused(tmp_path: Path, sizes: str) -> None:
    done = run(tmp_path, sizes)
    assert done.returncode == 2
    assert f"'{sizes}'" in done.stderr


def test_sizes_are_new_as_long_as_there_are_others() -> None:
    drawn = draw_sizes({"n": Sizes(4, 12, 4), "m": Sizes(1, 2)}, 6)
    assert len({tuple(one.items()) for one in drawn}) == 6
    assert {one["n"] for one in drawn} == {4, 8, 12}
    assert len(draw_sizes({"n": Sizes(1, 1)}, 3)) == 3
