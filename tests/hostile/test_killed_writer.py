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
from small_models import feed, mlp, tied
from system_limits import needs_posix

import ort_lite as ort

if TYPE_CHECKING:
    from onnx import ModelProto

pytestmark = needs_posix  # the writer is a fork, killed by a signal

SCRIPT = Path(__file__).with_name("killed_writer.py")
ROOT = Path(__file__).parents[2]


def other_mlp() -> ModelProto:
    """The same graph with other weights: partition names agree, numbers do not."""
    proto = mlp()
    proto.graph.initializer[0].raw_data = proto.graph.initializer[0].raw_data[::-1]
    return proto


def answer(path: Path, proto: ModelProto | None = None) -> np.ndarray:
    with ort.InferenceSession(path, providers=[OPENVINO]) as session:
        return session.run(None, feed(proto or mlp()))[0]


def saved(folder: Path, **protos: ModelProto) -> Path:
    folder.mkdir()
    for name, proto in protos.items():
        (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())
    return folder


def killed(sources: Path, folder: Path, copies: Path) -> list[Path]:
    """Copies of `folder` in which the writer was killed, one write step later each."""
    done = subprocess.run(
        [sys.executable, SCRIPT, sources, folder, copies],
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
    sources = saved(tmp_path / "sources", m=mlp())
    expected = answer(sources / "m.onnx")
    found = []
    for copy in killed(sources, saved(tmp_path / "made"), tmp_path / "copies"):
        path = copy / "m_ctx.onnx"
        found.append(path.exists())
        if path.exists():
            np.testing.assert_array_equal(answer(path), expected)
    again = ort.SessionOptions()
    again.add_provider(OPENVINO)
    ort.ModelCompiler(again, sources / "m.onnx").compile_to_file(path)
    np.testing.assert_array_equal(answer(path), expected)
    assert found == sorted(found), "once it is there, it stays"
    assert not found[0]


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    made = compile_context(saved(tmp_path / "made"), mlp(), feed(mlp()), embed=False)
    sources = saved(tmp_path / "sources", m=other_mlp())
    new = answer(sources / "m.onnx")
    found = []
    for copy in killed(sources, made.path.parent, tmp_path / "copies"):
        numbers = answer(copy / made.path.name)
        assert any(np.array_equal(numbers, one) for one in (made.expected[0], new))
        found.append(np.array_equal(numbers, new))
    assert found == sorted(found), "once it is the new one, it stays"
    assert not found[0]
    assert not np.array_equal(made.expected[0], new)


@pytest.mark.slow
def test_a_killed_group_leaves_each_model_the_old_or_the_new_one(tmp_path: Path) -> None:
    """Payloads first, then one model after the other: each that is there loads."""
    old, new = ({"a": tied(sign), "b": tied(-sign)} for sign in (1.0, 3.0))
    folder = saved(tmp_path / "made")
    _compile_group(saved(tmp_path / "old", **old), folder)
    answers = {
        name: [answer(folder / f"{name}_ctx.onnx", tied()), _plain(new[name])] for name in old
    }
    found = []
    for copy in killed(saved(tmp_path / "new", **new), folder, tmp_path / "copies"):
        numbers = {name: answer(copy / f"{name}_ctx.onnx", tied()) for name in old}
        for name, values in numbers.items():
            assert any(np.array_equal(values, one) for one in answers[name])
        found.append([np.array_equal(numbers[name], answers[name][1]) for name in ("a", "b")])
    assert found == sorted(found), "one after the other, and then they stay"
    assert [any(one) for one in (found[0], found[-1])] == [False, True]
    assert not any(np.array_equal(*pair) for pair in answers.values())


def _compile_group(sources: Path, folder: Path) -> None:
    options = ort.SessionOptions()
    options.add_provider(OPENVINO)
    with ort.SharedContexts() as group:
        group.join(options)
        for source in sorted(sources.iterdir()):
            compiler = ort.ModelCompiler(options, source)
            compiler.compile_to_file(folder / f"{source.stem}_ctx.onnx")


def _plain(proto: ModelProto) -> np.ndarray:
    with ort.InferenceSession(proto.SerializeToString(), providers=[OPENVINO]) as session:
        return session.run(None, feed(proto))[0]
