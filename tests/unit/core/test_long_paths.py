"""Paths over 260 characters: they work, or the error names Windows' limit."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
from context_models import OPENVINO
from small_models import feed, mlp

import ort_lite as ort
from ctx_formats import long_path
from ctx_formats.atomic_write import write_file
from ort_lite.model_cache.store import CacheStore

EPS = [OPENVINO, "CPUExecutionProvider"]
LENGTH = 300


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A path of a folder with more than 300 characters, which is not made."""
    while len(str(tmp_path)) < LENGTH:
        tmp_path = tmp_path / ("d" * 50)
    return tmp_path


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Windows without LongPathsEnabled says: nothing is at the path."""
    monkeypatch.setattr(long_path, "ON_WINDOWS", True)


def answer(path: Path, options: ort.SessionOptions | None = None) -> np.ndarray:
    with ort.InferenceSession(path, options, providers=EPS) as session:
        return session.run(None, feed(mlp()))[0]


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_model_with_a_long_path_is_compiled_and_reloaded(deep: Path, embed: str) -> None:
    try:
        deep.mkdir(parents=True)
    except FileNotFoundError:
        pytest.skip("Windows without LongPathsEnabled")
    model, context = deep / "model.onnx", deep / "model_ctx.onnx"
    model.write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", embed)
    np.testing.assert_array_equal(answer(model, options), answer(context))


def test_a_model_cache_with_a_long_path_is_hit(deep: Path, tmp_path: Path) -> None:
    try:
        deep.mkdir(parents=True)
    except FileNotFoundError:
        pytest.skip("Windows without LongPathsEnabled")
    model = tmp_path / "model.onnx"
    model.write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(deep / "cache"))
    states = []
    for _ in range(2):
        with ort.InferenceSession(model, options, providers=EPS) as session:
            cache = session.load_report().cache
            assert cache is not None
            states.append(cache.state)
    assert states == ["stored", "hit"]


@pytest.mark.usefixtures("limited")
def test_a_model_that_windows_does_not_find_for_its_length_is_named_so(deep: Path) -> None:
    with pytest.raises(ort.NoSuchFile, match=r"path has \d{3} characters.*LongPathsEnabled"):
        ort.InferenceSession(deep / "model.onnx", providers=EPS)


@pytest.mark.usefixtures("limited")
def test_a_file_that_windows_does_not_create_for_its_length_is_named_so(deep: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"accepts 259 unless LongPathsEnabled is 1"):
        write_file(deep / "model.onnx", b"", replace=False)


@pytest.mark.usefixtures("limited")
def test_a_folder_that_windows_does_not_create_for_its_length_is_named_so(
    deep: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_provider("CPUExecutionProvider", {})
    compiler = ort.ModelCompiler(options, model)
    with pytest.raises(ort.InvalidArgument, match=r"accepts 247 unless LongPathsEnabled is 1"):
        compiler.compile_to_file(deep / "model_ctx.onnx")


@pytest.mark.usefixtures("limited")
def test_a_cache_folder_that_windows_does_not_create_for_its_length_is_named_so(
    deep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, **_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "The filename or extension is too long", str(folder))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(FileNotFoundError, match=r"accepts 247 unless LongPathsEnabled is 1"):
        CacheStore(deep).prepare()


@pytest.mark.parametrize("path", ["C:\\model.onnx", "\\\\?\\C:\\" + "d" * LENGTH])
@pytest.mark.usefixtures("limited")
def test_short_and_verbatim_paths_are_not_too_long(path: str) -> None:
    assert not long_path.explain_length(path)


def test_other_systems_have_no_such_limit(deep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_path, "ON_WINDOWS", False)
    assert not long_path.explain_length(deep)
