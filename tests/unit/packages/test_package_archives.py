"""Packages in zip and tar archives, and behind URLs: only what a session needs is copied."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from built_packages import CPU, NPUS, OPENVINO, build_mlp, expected, tree
from package_files import write_plain
from small_models import feed, mlp

import ort_lite as ort
from ctx_formats.errors import Reason
from ort_lite.packages.model_package import NoSuitableVariant
from ort_lite.packaging.package_output import replace_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = (".zip", ".tar", ".tar.gz", ".tgz")
LARGE = 1 << 17
"""Bytes; more than what is copied at once."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_mlp(tmp_path_factory.mktemp("built"), OPENVINO)


def pack(folder: Path, archive: Path) -> Path:
    """An archive of a folder, by the writer of `ort-lite package`."""
    with replace_package(archive, replace=True) as target:
        shutil.copytree(folder, target, dirs_exist_ok=True)
    return archive


def copied(cache: Path) -> dict[str, bytes]:
    (copy,) = (path for path in (cache / "packages").iterdir() if path.is_dir())
    return tree(copy)


def large_package(root: Path) -> Path:
    """Variants of the CPU EP and of two that are not here, each with a large file of its own."""

    def add(manifest: dict[str, Any]) -> None:
        variants = manifest["components"]["model"]["variants"]
        for name in ("absent", "other"):
            variants[name] = {**variants["cpu"], "ep": f"{name}ExecutionProvider"}

    write_plain(root, add)
    for name in ("absent", "other", "cpu"):
        if name != "cpu":
            shutil.copytree(root / "cpu", root / name)
        (root / name / "large.bin").write_bytes(bytes(LARGE))
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_opens_an_archive(package: Path, kind: str, tmp_path: Path, cache: Path) -> None:
    archive = pack(package, tmp_path / f"p{kind}")
    for _ in range(2):
        with ort.InferenceSession(archive, providers=[OPENVINO]) as session:
            np.testing.assert_allclose(session.run(None, feed(mlp()))[0], expected()[0], rtol=1e-4)
            assert "openvino-cpu" in str(session.explain())
    assert copied(cache).items() <= tree(package).items()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_files_make_the_same_archive(package: Path, kind: str, tmp_path: Path) -> None:
    first, second = (pack(package, tmp_path / f"{name}{kind}") for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_standard_tools_unpack_what_was_written(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(pack(package, tmp_path / "p.zip")) as archive:
        archive.extractall(tmp_path / "zip")
    with tarfile.open(pack(package, tmp_path / "p.tgz")) as archive:
        archive.extractall(tmp_path / "tar", filter="data")
    assert tree(tmp_path / "zip") == tree(tmp_path / "tar") == tree(package)


def test_only_the_files_of_the_chosen_variant_are_copied(tmp_path: Path, cache: Path) -> None:
    archive = pack(large_package(tmp_path / "p"), tmp_path / "p.zip")
    with ort.InferenceSession(archive, providers=[CPU]) as session:
        np.testing.assert_allclose(session.run(None, feed(mlp()))[0], expected()[0], rtol=1e-5)
    large = {name for name, data in copied(cache).items() if len(data) == LARGE}
    assert large == {"cpu/large.bin"}


def test_a_variant_that_the_manifest_refuses_is_not_copied(
    package: Path, tmp_path: Path, cache: Path
) -> None:
    """A compatibility text of another version decides before a file is copied."""
    root = tmp_path / "p"
    shutil.copytree(package, root)
    manifest = json.loads((root / "manifest.json").read_bytes())
    variants = manifest["components"]["model"]["variants"]
    variants["openvino-cpu"]["compatibility_string"] = "OV=2020.1.0"
    (root / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (root / "openvino-cpu" / "large.bin").write_bytes(bytes(LARGE))
    selection = ort.ModelPackage(pack(root, tmp_path / "p.zip")).select(providers=[OPENVINO])
    assert selection.chosen is None
    reasons = {v.variant: v.reason for v in selection.verdicts}
    assert reasons["openvino-cpu"] is not None
    assert [reasons[name] for name in NPUS] == [Reason.DEVICE_MISSING] * 2
    assert "openvino-cpu/large.bin" not in copied(cache)


def test_the_source_model_of_an_archive_is_copied_for_a_fallback(
    tmp_path: Path, cache: Path
) -> None:
    package = build_mlp(tmp_path / "built")
    large = package / "source" / "large.bin"
    large.write_bytes(bytes(LARGE))
    archive = pack(package, tmp_path / "p.tar")
    with pytest.raises(ort.Fail, match="No suitable model variant"):
        ort.InferenceSession(archive, providers=[OPENVINO])
    assert "source/large.bin" not in copied(cache)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.package_fallback", "cpu")
    with ort.InferenceSession(archive, options, providers=[OPENVINO]) as session:
        np.testing.assert_allclose(session.run(None, feed(mlp()))[0], expected()[0], rtol=1e-5)
    assert "source/large.bin" in copied(cache)


def test_an_archive_that_is_replaced_is_copied_again(tmp_path: Path, cache: Path) -> None:
    root = large_package(tmp_path / "p")
    for version in ("1", "2"):
        (root / "cpu" / "version.txt").write_text(version, encoding="ascii")
        ort.InferenceSession(pack(root, tmp_path / "p.zip"), providers=[CPU]).close()
    copies = [path for path in (cache / "packages").iterdir() if path.is_dir()]
    assert sorted((c / "cpu" / "version.txt").read_text("ascii") for c in copies) == ["1", "2"]


def truncate(data: bytes) -> bytes:
    return data[: len(data) // 2]


def empty(_: bytes) -> bytes:
    return b""


def zeros(_: bytes) -> bytes:
    return bytes(1024)


@pytest.mark.parametrize("damage", [truncate, empty, zeros])
@pytest.mark.parametrize("kind", [".zip", ".tar", ".tgz"])
def test_a_damaged_archive_is_a_typed_error(
    damage: Callable[[bytes], bytes], kind: str, tmp_path: Path
) -> None:
    archive = pack(large_package(tmp_path / "p"), tmp_path / f"p{kind}")
    archive.write_bytes(damage(archive.read_bytes()))
    with pytest.raises(ort.OrtLiteError, match=r"cannot be read|has no manifest\.json|damaged"):
        ort.InferenceSession(archive, providers=[CPU])


def test_a_member_whose_checksum_is_wrong_is_refused(tmp_path: Path) -> None:
    archive = pack(large_package(tmp_path / "p"), tmp_path / "p.zip")
    data = bytearray(archive.read_bytes())
    data[data.index(b"cpu/large.bin") + 100] ^= 1
    archive.write_bytes(data)
    with pytest.raises(NoSuitableVariant, match="Bad CRC-32") as error:
        ort.InferenceSession(archive, providers=[CPU])
    assert error.value.selection.verdicts[0].reason is Reason.INTEGRITY


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\\b", "c:x", "a\0b"])
def test_names_that_lead_out_of_an_archive_are_refused(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "p.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("manifest.json", "{}")
        member = zipfile.ZipInfo()
        member.filename = name  # ZipInfo(name) writes another one for some
        out.writestr(member, "x")
    with pytest.raises(ort.InvalidGraph, match="leads out") as error:
        ort.InferenceSession(archive)
    assert error.value.reason is Reason.UNSAFE_PATH


def test_links_in_an_archive_are_refused(tmp_path: Path) -> None:
    archive = tmp_path / "p.tar"
    with tarfile.open(archive, "w") as out:
        link = tarfile.TarInfo("cpu")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        out.addfile(link)
        out.addfile(tarfile.TarInfo("manifest.json"), io.BytesIO())
    with pytest.raises(ort.InvalidGraph, match="a link or a device"):
        ort.InferenceSession(archive)


@pytest.mark.parametrize(
    ("places", "value", "message"),
    [
        ({b"PK\3\4": 6, b"PK\1\2": 8}, 1, "encrypted"),
        ({b"PK\1\2": 6}, 99, "zip file version"),
        ({b"PK\3\4": 8, b"PK\1\2": 10}, 99, "compression method"),
    ],
    ids=["encrypted", "newer version", "other compression"],
)
def test_an_archive_that_cannot_be_read_is_refused(
    places: dict[bytes, int], value: int, message: str, tmp_path: Path
) -> None:
    """Fields at a distance from the local and the central header: APPNOTE.TXT, 4.3.7 and 4.3.12."""
    archive = tmp_path / "p.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("manifest.json", "{}")
    data = bytearray(archive.read_bytes())
    for header, distance in places.items():
        data[data.index(header) + distance] = value
    archive.write_bytes(data)
    with pytest.raises(ort.InvalidGraph, match=message) as error:
        ort.InferenceSession(archive)
    assert error.value.reason is Reason.INTEGRITY
