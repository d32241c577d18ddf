"""Signed contexts go both ways between ort_lite and ONNX Runtime with Intel's plug-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
import pytest
from context_models import OPENVINO, compile_context
from signed_models import assert_untrusted, make_key, options
from small_models import feed, mlp

import ort_lite as ort
from ctx_formats.signatures import PREFIX

if TYPE_CHECKING:
    from pathlib import Path

    from interop.peer import Peer

EMBED = pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])


@EMBED
def test_ours_runs_in_onnxruntime_when_it_is_signed(
    plugin: Peer, tmp_path: Path, *, embed: bool
) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=embed)
    for name in ("one", "two"):
        make_key(tmp_path, name).sign(made.path)
    onnx.checker.check_model(onnx.load(made.path).SerializeToString())
    (result,) = plugin.run(made.path, made.feed, plugin=True)
    np.testing.assert_allclose(result, made.expected[0], rtol=1e-5, atol=1e-6)


@EMBED
def test_theirs_can_be_signed_and_then_runs_on_both_sides(
    plugin: Peer, tmp_path: Path, *, embed: bool
) -> None:
    source, target = tmp_path / "t.onnx", tmp_path / "t_ctx.onnx"
    source.write_bytes(mlp().SerializeToString())
    plugin.compile_context(source, target, embed=embed)
    source.unlink()
    key = make_key(tmp_path, "ship")

    def load() -> list[np.ndarray]:
        with ort.InferenceSession(target, options(key.public), providers=[OPENVINO]) as session:
            return session.run(None, feed(mlp()))

    assert_untrusted(load, match="not signed")
    key.sign(target)
    (mine,), (theirs,) = load(), plugin.run(target, feed(mlp()), plugin=True)
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_onnxruntime_reads_a_signature_as_metadata(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    make_key(tmp_path, "ship").sign(path)
    theirs = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (name,) = theirs.get_modelmeta().custom_metadata_map
    assert name.startswith(PREFIX)
    mine = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert mine.get_modelmeta().custom_metadata_map == theirs.get_modelmeta().custom_metadata_map


def test_a_signature_that_onnxruntime_has_moved_is_none(tmp_path: Path) -> None:
    """It saves a model anew, and metadata with it: signed again, the old one is gone."""
    path, saved = tmp_path / "m.onnx", tmp_path / "saved.onnx"
    path.write_bytes(mlp().SerializeToString())
    key, other = make_key(tmp_path, "ship"), make_key(tmp_path, "other")
    other.sign(path)
    made = onnxruntime.SessionOptions()
    made.optimized_model_filepath = str(saved)
    onnxruntime.InferenceSession(path, made, providers=["CPUExecutionProvider"])
    assert any(prop.key.startswith(PREFIX) for prop in onnx.load(saved).metadata_props)
    assert_untrusted(lambda: ort.InferenceSession(saved, options(other.public)))
    key.sign(saved)
    names = [prop.key for prop in onnx.load(saved).metadata_props]
    assert sum(name.startswith(PREFIX) for name in names) == 1
    ort.InferenceSession(saved, options(key.public), providers=["CPUExecutionProvider"]).close()
