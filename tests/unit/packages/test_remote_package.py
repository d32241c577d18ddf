"""Packages behind a URL are copied once, whole, and used from the cache."""

from __future__ import annotations

import json
import sys
import zipfile
from typing import TYPE_CHECKING

import numpy as np
import pytest
from built_packages import expected, tree
from package_files import write_plain
from small_models import feed, mlp

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

fsspec = pytest.importorskip("fsspec", reason="needs the package fsspec")


def options(cache: Path) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_session_config_entry("session.ep_context_cache_dir", str(cache))
    return made


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A package in fsspec's file system in memory."""
    memory = fsspec.filesystem("memory")
    memory.put(str(write_plain(tmp_path / "origin")), f"/{tmp_path.name}", recursive=True)
    return f"memory://{tmp_path.name}"


def copies(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "packages").iterdir() if path.is_dir())


def test_a_package_is_copied_once(url: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for remaining in ("all files", "the manifest"):
        with ort.InferenceSession(url, options(cache)) as session:
            np.testing.assert_allclose(session.run(None, feed(mlp()))[0], expected()[0], rtol=1e-5)
            assert f"package {url}" in str(session.explain())
        (copy,) = copies(cache)
        assert tree(copy) == tree(tmp_path / "origin")
        if remaining == "all files":
            fsspec.filesystem("memory").rm(f"/{tmp_path.name}/cpu/model.onnx")


def test_a_changed_manifest_is_another_copy(url: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    ort.InferenceSession(url, options(cache)).close()
    memory = fsspec.filesystem("memory")
    path = f"/{tmp_path.name}/manifest.json"
    content = json.loads(memory.cat(path)) | {"package_version": "2"}
    memory.pipe(path, json.dumps(content).encode())
    ort.InferenceSession(url, options(cache)).close()
    assert len(copies(cache)) == 2


def test_a_package_inside_an_archive_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(tmp_path / "cache"))
    root = write_plain(tmp_path / "origin")
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for name, data in tree(root).items():
            archive.writestr(f"inner/{name}", data)
    package = ort.ModelPackage(f"zip://inner::file://{tmp_path}/p.zip")
    assert package.variants == ("cpu",)
    with ort.InferenceSession(package) as session:
        assert session.get_providers() == ["CPUExecutionProvider"]


def test_names_that_lead_out_are_refused(tmp_path: Path) -> None:
    root = write_plain(tmp_path / "origin")
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for name, data in {**tree(root), "a\\..\\..\\b": b"x"}.items():
            archive.writestr(f"inner/{name}", data)
    with pytest.raises(ort.InvalidGraph, match="has a file with the name"):
        ort.InferenceSession(f"zip://inner::file://{tmp_path}/p.zip", options(tmp_path / "cache"))
    assert copies(tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("memory://absent", ort.NoSuchFile, r"has no manifest\.json"),
        ("nowhere://x", ort.Fail, "Protocol not known"),
    ],
)
def test_what_cannot_be_opened_is_a_typed_error(
    url: str, error: type[ort.OrtLiteError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        ort.InferenceSession(url, options(tmp_path))


def test_a_package_that_https_needs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fsspec itself installs without the packages that its file system for HTTP imports."""
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    with pytest.raises(ort.Fail, match=r'aiohttp.*pip install "ort-lite\[remote\]"'):
        ort.InferenceSession("https://host.invalid/m.ortpackage", options(tmp_path))
