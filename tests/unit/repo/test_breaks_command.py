"""benchmarks.placement.breaks: which operators cut a model into pieces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_models import branching, sandwich

ROOT = Path(__file__).parents[3]


@pytest.mark.hw("openvino-cpu")
def test_the_operator_that_cuts_a_model_is_named_with_the_pieces(tmp_path: Path) -> None:
    for name, proto in (("sandwich", sandwich()), ("branching", branching())):
        (tmp_path / f"{name}.onnx").write_bytes(proto.SerializeToString())
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.placement.breaks", "OpenVINOExecutionProvider"),
            *map(str, (tmp_path / "sandwich.onnx", tmp_path / "branching.onnx")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    figures = {tuple(row[:2]): row[2:5] for row in rows if len(row) > 5}
    assert figures["sandwich", "TopK"] == ["1", "2", "1"]
    assert figures["branching", "If"][2] == "1"
