"""Model packages on disk: what is read is what was written, and hostile folders are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from package_files import CPU, ort_of, variant_of, write_plain
from system_limits import WINDOWS, needs_posix

from ctx_formats import package_reader
from ctx_formats.atomic_folder import replace_folder
from ctx_formats.directory_digest import digest_folder, list_files
from ctx_formats.errors import FormatError, Reason
from ctx_formats.package_manifest import (
    OrtInfo,
    PackageComponent,
    PackageManifest,
    PackageVariant,
    encode_manifest,
)
from ctx_formats.package_reader import read_package
from ctx_formats.package_signature import (
    PackageSignature,
    encode_signatures,
    read_signatures,
)
from ctx_formats.signatures import SignatureRecord, SignedFile
from ctx_formats.strict_json import read_json_object

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_written_manifest_reads_as_it_was(tmp_path: Path) -> None:
    ort = OrtInfo(model_file="m.onnx", session_options={"a": "b"}, provider_options={"c": "d"})
    variants = tuple(
        PackageVariant(
            name=name, directory=f"v/{name}", ep=CPU, device="npu", compatibility_string="",
            ort=ort, executor_info={"ort": ort.to_json(), "ort_lite": {"format": 1}},
            metadata={"x": [1.5, None, "\u00e9"]},
        )
        for name in ("z", "a")
    )  # fmt: skip
    manifest = PackageManifest(
        name="n", version="2", description="d", metadata=[1],
        components=(PackageComponent(name="model", variants=variants, metadata=True),),
    )  # fmt: skip
    for name in ("z", "a"):
        (tmp_path / "v" / name).mkdir(parents=True)
    (tmp_path / "manifest.json").write_bytes(encode_manifest(manifest))
    package = read_package(tmp_path)
    assert encode_manifest(package.manifest) == encode_manifest(manifest)
    (component,) = package.manifest.components
    assert [one.name for one in component.variants] == ["z", "a"]
    assert component.variants[0].ort == ort
    assert component.variants[0].folder == os.path.realpath(tmp_path / "v" / "z")
    assert component.variants[1].model_path == os.path.realpath(tmp_path / "v/a/m.onnx")


def test_session_paths_are_made_absolute(tmp_path: Path) -> None:
    entries = {"ep.context_file_path": "ctx/m.onnx", "session.intra_op_num_threads": "1"}
    root = write_plain(tmp_path / "p", lambda m: ort_of(m).update(session_options=entries))
    (component,) = read_package(root).manifest.components
    assert component.variants[0].session_options == {
        "ep.context_file_path": os.path.realpath(root / "cpu/ctx/m.onnx"),
        "session.intra_op_num_threads": "1",
    }


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"a": 1, "b": 2, "a": 3}', "the name 'a' appears twice"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": 1e999}', "1e999 is too large"),
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"a": 1} x', "Extra data"),
        (b"null", "JSON of type NoneType"),
        (b" " * 101, "101 bytes"),
    ],
)
def test_json_that_is_no_plain_object_is_refused(data: bytes, found: str) -> None:
    limit = 100 if data.isspace() else 1 << 20
    with pytest.raises(FormatError, match="test") as refused:
        read_json_object(data, "test", limit=limit)
    assert found in refused.value.found


def test_many_variants_are_refused(tmp_path: Path) -> None:
    many: dict[str, Any] = {f"v{i}": {} for i in range(package_reader.MAX_VARIANTS + 1)}
    root = write_plain(tmp_path / "p", components={"model": {"variants": many}})
    with pytest.raises(FormatError, match="at most 4096"):
        read_package(root)


def test_one_large_file_that_many_components_name_is_read_a_few_times(tmp_path: Path) -> None:
    names = {f"c{i}": "big.json" for i in range(1000)}
    root = write_plain(tmp_path / "p", components=names)
    body = {"variants": {}, "additional_metadata": "x" * (3 << 20)}
    (root / "big.json").write_text(json.dumps(body))
    with pytest.raises(FormatError, match="less JSON"):
        read_package(root)


def test_a_huge_manifest_is_refused(tmp_path: Path) -> None:
    root = write_plain(tmp_path / "p", description="x" * package_reader.MAX_JSON_BYTES)
    with pytest.raises(FormatError, match="over 4194304 bytes"):
        read_package(root)


@needs_posix
def test_a_fifo_in_place_of_the_manifest_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(FormatError, match="not a regular file"):
        read_package(tmp_path)


@needs_posix
@pytest.mark.parametrize("name", ["manifest.json", "cpu/model.onnx"])
def test_a_link_out_of_the_package_is_refused(name: str, tmp_path: Path) -> None:
    root = write_plain(tmp_path / "p")
    path = root / name
    outside = tmp_path / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    with pytest.raises(FormatError, match=r"escapes the package|a symlink") as refused:
        read_package(root)
    assert refused.value.reason is Reason.UNSAFE_PATH


@pytest.mark.parametrize("path", ["a\\b", "con", "a.", "a:b", "x\0y", "a/../b", "x" * 5000])
def test_paths_that_differ_between_systems_are_refused(path: str, tmp_path: Path) -> None:
    root = write_plain(tmp_path / "p", lambda m: variant_of(m).update(variant_directory=path))
    with pytest.raises(FormatError) as refused:
        read_package(root)
    assert refused.value.reason is Reason.UNSAFE_PATH


@pytest.mark.skipif(WINDOWS, reason="needs coreutils")
def test_the_digest_of_a_folder_is_what_sha256sum_computes(tmp_path: Path) -> None:
    files = ("b", "a/x", "a/y.bin", "a-b", "A", "\u00e9")
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {name}")
    (tmp_path / "empty").mkdir()
    command = "find . -type f | sed 's|^./||' | LC_ALL=C sort | xargs sha256sum | sha256sum"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert digest_folder(tmp_path) == f"sha256:{done.stdout.split()[0]}"
    assert list(list_files(tmp_path)) == sorted(files, key=os.fsencode)


@needs_posix
def test_a_link_in_a_shared_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(".")
    with pytest.raises(FormatError, match="symlink"):
        digest_folder(tmp_path)


def fill_and_stop(target: Path) -> None:
    with replace_folder(target, replace=True) as folder:
        (folder / "file").write_text("x")
        raise RuntimeError("stop")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestReplaceFolder:
    """A folder appears whole, or what was there stays."""

    def test_a_new_folder_appears(self, tmp_path: Path) -> None:
        with replace_folder(tmp_path / "new", replace=False) as folder:
            (folder / "file").write_text("x")
            assert not (tmp_path / "new").exists()
        assert (tmp_path / "new" / "file").read_text() == "x"
        assert names(tmp_path) == ["new"]

    @pytest.mark.parametrize("can_exchange", [True, False])
    def test_an_old_folder_gives_way(
        self, *, can_exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not can_exchange:
            monkeypatch.setattr(sys, "platform", "other")
        (tmp_path / "old").mkdir()
        (tmp_path / "old" / "stale").write_text("x")
        with replace_folder(tmp_path / "old", replace=True) as folder:
            (folder / "file").write_text("y")
            assert (tmp_path / "old" / "stale").exists()
        assert names(tmp_path / "old") == ["file"]
        assert names(tmp_path) == ["old"]

    def test_an_error_leaves_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "old").mkdir()
        with pytest.raises(RuntimeError, match="stop"):
            fill_and_stop(tmp_path / "old")
        assert names(tmp_path) == ["old"]
        assert names(tmp_path / "old") == []

    @pytest.mark.parametrize("replace", [True, False])
    def test_a_file_does_not_give_way(self, *, replace: bool, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        with (
            pytest.raises(FileExistsError),
            replace_folder(tmp_path / "file", replace=replace),
        ):
            pass
        assert names(tmp_path) == ["file"]


def signature(**fields: object) -> PackageSignature:
    one = {"location": "a/b", "size": 1, "part": "whole", "blake3": "b" * 64}
    values: dict[str, Any] = {
        "public_key": b"key", "model_blake3": "a" * 64, "model_size": 3,
        "files": (SignedFile(**one),), "signature": b"s" * 64,
    }  # fmt: skip
    return PackageSignature(**(values | fields))


def test_signatures_read_as_they_were_written() -> None:
    both = sorted((signature(), signature(public_key=b"other")), key=lambda one: one.key_id)
    assert read_signatures(encode_signatures(both)) == tuple(both)


def test_a_package_signature_signs_another_message_than_a_model_signature() -> None:
    one = signature()
    record = SignatureRecord(
        public_key=one.public_key, model_blake3=one.model_blake3, model_size=one.model_size,
        files=one.files, signature=one.signature,
    )  # fmt: skip
    assert one.unsigned_text() == record.unsigned_text()
    assert one.message != record.message


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data[:-2],
        lambda data: data.replace(b'"whole"', b'"other"'),
        lambda data: data.replace(b"a/b", b"manifest.json"),
        lambda data: data.replace(b'"size": 1', b'"size": true'),
        lambda data: data.replace(b"ort_lite_package_signatures", b"other"),
    ],
    ids=["newlines", "cut", "part", "manifest", "type", "name"],
)
def test_a_damaged_signature_file_is_untrusted(change: Callable[[bytes], bytes]) -> None:
    data = encode_signatures([signature()])
    assert change(data) != data
    with pytest.raises(FormatError) as refused:
        read_signatures(change(data))
    assert refused.value.reason is Reason.UNTRUSTED


def test_a_key_that_signs_twice_is_untrusted() -> None:
    with pytest.raises(FormatError, match="a key has signed twice"):
        read_signatures(encode_signatures([signature(), signature()]))
