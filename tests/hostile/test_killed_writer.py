"""A writer that dies leaves the old files or the new ones, and never a mixture that loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from context_models import OPENVINO, compile_context
from small_models import feed, mlp

import ort_lite as ort

if TYPE_CHECKING:
    from onnx import ModelProto

SCRIPT = Path(__file__).with_name("killed_writer.py")
ROOT = Path(__file__).parents[2]


def other_mlp() -> ModelProto:
    """The same graph with other weights: partition names agree, numbers do not."""
    proto = mlp()
    proto.graph.initializer[0].raw_data = proto.graph.initializer[0].raw_data[::-1]
    return proto


def answer(path: Path) -> np.ndarray:
    with ort.InferenceSession(path, providers=[OPENVINO]) as session:
        return session.run(None, feed(mlp()))[0]


def killed(source: Path, target: Path, copies: Path) -> list[Path]:
    """Folders in which the writer of `target` was killed, one write step later each."""
    done = subprocess.run(
        [sys.executable, SCRIPT, source, target, copies],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps >= 8, "a payload and a model, each opened, synced, named"
    return [copies / str(step) for step in range(1, steps + 1)]


@pytest.mark.slow
def test_a_killed_writer_leaves_no_model_or_a_whole_one(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    source = folder / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    expected = answer(source)
    found = []
    for copy in killed(source, folder / "m_ctx.onnx", tmp_path / "copies"):
        path = copy / "m_ctx.onnx"
        found.append(path.exists())
        if path.exists():
            np.testing.assert_array_equal(answer(path), expected)
    again = ort.SessionOptions()
    again.add_provider(OPENVINO)
    ort.ModelCompiler(again, source).compile_to_file(path)
    np.testing.assert_array_equal(answer(path), expected)
    assert found == sorted(found), "once it is there, it stays"
    assert not found[0]


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    made = compile_context(folder, mlp(), feed(mlp()), embed=False)
    source = tmp_path / "m.onnx"
    source.write_bytes(other_mlp().SerializeToString())
    new = answer(source)
    found = []
    for copy in killed(source, made.path, tmp_path / "copies"):
        numbers = answer(copy / made.path.name)
        assert any(np.array_equal(numbers, one) for one in (made.expected[0], new))
        found.append(np.array_equal(numbers, new))
    assert found == sorted(found), "once it is the new one, it stays"
    assert not found[0]
    assert not np.array_equal(made.expected[0], new)
