"""Files that a later ort_lite might write: another version is refused, new fields are skipped.

Each is a released file with one thing changed. docs/compatibility.md promises what is seen here.
"""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blake3 import blake3
from golden.released import RELEASES, Context, Released, unpack

import ort_lite as ort
from ctx_formats import notes as notes_format
from ctx_formats.adapter_file import read_adapter
from ctx_formats.bson import decode_document, encode_document
from ctx_formats.container import HEADER, padding
from ctx_formats.container_reader import read_container
from ctx_formats.errors import FormatError
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import Attribute, AttributeType
from eps.opencl.payload.format import ALIGNMENT, HEAD, VERSION, WITHOUT_PARTS, read_header
from eps.opencl.payload.import_payload import info_identity as opencl_info
from eps.opencl.payload.import_payload import info_text
from eps.opencl.trials.record import read_problem
from eps.opencl.tuning.cache import TuningCache
from eps.openvino.payload.identity import compatibility_json
from eps.openvino.payload.identity import info_identity as openvino_info
from eps.openvino.support import table as table_module
from ort_lite.hw.cross_result import read_cross
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.report import read_report
from ort_lite.hw.result import read_results
from ort_lite.model_cache import source_digest
from ort_lite.model_cache.entry import NewerEntryError, read_entry
from ort_lite.model_cache.eviction import remove_leftovers
from ort_lite.model_cache.source_digest import DigestedSource, SourceFile, SourceStamps
from ort_lite.model_cache.store import CacheStore
from ort_lite.model_cache.transfer import import_entries
from ort_lite.model_cache.verification import problems
from ort_lite.probing.probe import _read_verdict
from ort_lite.testing.context_file import ContextFile

if TYPE_CHECKING:
    from pathlib import Path

FAR_FUTURE = 4102444800.0
"""Seconds since 1970 of the year 2100: every leftover is old by then."""
KINDS = ("openvino", "intel_opencl", "pocl")


@pytest.fixture
def released(tmp_path: Path) -> Released:
    return unpack(RELEASES[-1], tmp_path / "files")


def context_file(released: Released, slug: str = "openvino") -> tuple[Context, ContextFile]:
    """A context in two files."""
    context = released.context(f"contexts/{slug}/external.onnx")
    (payload,) = context.path.parent.glob("external_*.bin")
    return context, ContextFile(context.path, payload)


def outcome(context: Context) -> np.ndarray | str:
    """The answer, or the reason why there is none."""
    try:
        with ort.InferenceSession(
            context.path, providers=[(context.provider, context.options)]
        ) as session:
            found: np.ndarray = session.run(None, context.inputs)[0]
            return found
    except ort.InvalidGraph as exc:
        refusal = exc
    assert refusal.hint
    return str(refusal.reason)


def assert_same_outcome(before: np.ndarray | str, context: Context) -> None:
    """The change made no difference: the same refusal, or onnxruntime's answer."""
    after = outcome(context)
    if isinstance(before, str):
        assert after == before
    else:
        np.testing.assert_allclose(after, context.output, rtol=1e-5, atol=1e-6)


def edit_notes(file: ContextFile, **changes: Any) -> None:
    """Other notes under a seal that fits them."""

    def changed(node: Any) -> Any:
        content = {**json.loads(node.notes), **changes}
        del content["seal"]
        spelled = notes_format._dumps(content)
        content["seal"] = notes_format._seal(node, spelled)
        return replace(node, notes=notes_format._dumps(content))

    file.edit(changed)


@pytest.mark.parametrize("slug", KINDS)
def test_notes_of_another_version_are_refused(slug: str, released: Released) -> None:
    context, file = context_file(released, slug)
    before = outcome(context)
    edit_notes(file, ort_lite=2)
    # The node's own attributes come first: on a machine of another kind they are the reason.
    assert outcome(context) == (
        before if isinstance(before, str) and slug != "openvino" else "format"
    )


@pytest.mark.parametrize("slug", KINDS)
def test_unknown_fields_of_notes_are_skipped(slug: str, released: Released) -> None:
    context, file = context_file(released, slug)
    before = outcome(context)
    edit_notes(file, from_the_future={"a": [1]})
    assert_same_outcome(before, context)


def test_unknown_fields_of_an_identity_are_skipped(released: Released) -> None:
    context, file = context_file(released)
    before = outcome(context)
    (node,) = file.nodes()
    identity = json.loads(node.notes)["identity"]
    edit_notes(file, identity={**identity, "moon_phase": "full"})
    assert_same_outcome(before, context)


def test_unknown_attributes_of_a_node_are_skipped(released: Released) -> None:
    context, file = context_file(released)
    before = outcome(context)
    extra = {"future": Attribute("future", AttributeType.INT, 7)}
    file.edit(lambda node: replace(node, extra=extra))
    assert_same_outcome(before, context)


def rewritten(data: bytes, change: Any, version: int = 1) -> bytes:
    """A container with another index, its checksum renewed."""
    _, _, _, start, size = HEADER.unpack_from(data)
    index = decode_document(memoryview(data)[start : start + size])
    change(index)
    index["index_crc"] = index.pop("index_crc")
    length = len(encode_document(index))
    head = HEADER.pack(b"OVEP_BIN", version, HEADER.size, HEADER.size, length)
    index["index_crc"] = 0
    blank = encode_document(index)
    index["index_crc"] = zlib.crc32(blank, zlib.crc32(head))
    encoded = head + encode_document(index)
    assert len(encoded) < 65536
    return encoded + bytes(padding(len(encoded))) + data[65536:]


@pytest.mark.parametrize("slug", KINDS)
def test_a_container_of_another_version_is_refused(slug: str, released: Released) -> None:
    context, file = context_file(released, slug)
    original = file.container()
    file.put_container(rewritten(original, lambda index: None, version=2))
    assert outcome(context) == "format"
    file.put_container(rewritten(original, lambda index: index.update(version="2.0.0")))
    assert outcome(context) == "format"


def test_unknown_fields_of_a_containers_index_are_skipped(released: Released) -> None:
    context, file = context_file(released)
    before = outcome(context)

    def change(index: dict[str, Any]) -> None:
        index["version"] = "1.9.0"
        index["signed_by"] = "somebody"
        for entry in index["blob_metadata_map"].values():
            entry["compressed"] = False

    file.put_container(rewritten(file.container(), change))
    assert_same_outcome(before, context)


def opencl_payload(released: Released) -> bytes:
    """The payload in a container of the first OpenCL platform."""
    _, file = context_file(released, "intel_opencl")
    data = file.container()
    (entry,) = read_container(memoryview(data)).entries.values()
    return data[entry.offset : entry.offset + entry.size]


@pytest.mark.parametrize("version", [WITHOUT_PARTS - 1, VERSION + 1])
def test_an_opencl_payload_of_another_version_is_refused(released: Released, version: int) -> None:
    payload = bytearray(opencl_payload(released))
    magic, _, *rest = HEAD.unpack_from(payload)
    HEAD.pack_into(payload, 0, magic, version, *rest)
    expected = rf"payload\.version: {version}, expected {WITHOUT_PARTS} or {VERSION}"
    with pytest.raises(FormatError, match=expected):
        read_header(memoryview(payload))


def test_unknown_fields_of_an_opencl_payload_are_skipped(released: Released) -> None:
    payload = opencl_payload(released)
    header, body = read_header(memoryview(payload))
    magic, version, *_ = HEAD.unpack_from(payload)
    text = json.dumps({**header, "future": 1}).encode()
    room = -(-(HEAD.size + len(text)) // ALIGNMENT) * ALIGNMENT - HEAD.size
    text = text.ljust(room)
    whole = HEAD.size + len(text) + len(body)
    head = HEAD.pack(magic, version, len(text), whole, blake3(text).digest())
    found, rest = read_header(memoryview(head + text + bytes(body)))
    assert found.pop("future") == 1
    assert (found, bytes(rest)) == (header, bytes(body))


def test_compatibility_texts_of_another_version_say_nothing() -> None:
    identity = HardwareIdentity(device="CPU: x", sdk_version="1", requirements="meta=1.0;ov=1")
    for text, key, read in (
        (compatibility_json(identity), "ovep_compat_ver", openvino_info),
        (info_text(identity), "ort_lite_opencl", opencl_info),
    ):
        fields = json.loads(text)
        assert read(text) is not None
        assert read(json.dumps({**fields, "future": "1"})) == read(text)
        assert read(json.dumps({**fields, key: "2"})) is None


def edited_entry(path: Path, **changes: Any) -> bytes:
    """An entry of the model cache with fields changed under a digest that fits them."""
    content = {**json.loads(path.read_bytes()), **changes}
    del content["check"]
    text = json.dumps(content, sort_keys=True)
    return json.dumps({**content, "check": blake3(text.encode()).hexdigest()[:32]}).encode()


def entry_of(released: Released) -> Path:
    """One entry of the model cache."""
    return sorted(released.root.glob("cache/v1/entries/*.json"))[0]


def test_a_cache_entry_of_a_newer_version_is_left_alone(released: Released) -> None:
    """Nor does anything else remove the objects that it names."""
    path = entry_of(released)
    path.write_bytes(edited_entry(path, format=2))
    with pytest.raises(NewerEntryError, match="format: 2, expected 1"):
        read_entry(path.read_bytes(), path.stem)
    store = CacheStore(released.root / "cache")
    objects = sorted(store.objects.iterdir())
    assert list(problems(store)) == []
    remove_leftovers(store, now=FAR_FUTURE)
    for entry in store.sound_entries():
        store.drop(entry.key)
    assert store.entry_keys() == [path.stem]
    assert sorted(store.objects.iterdir()) == objects


def test_a_cache_entry_of_no_known_version_is_damaged(released: Released) -> None:
    path = entry_of(released)
    path.write_bytes(edited_entry(path, format="newest"))
    store = CacheStore(released.root / "cache")
    assert [key for key, _ in problems(store)] == [path.stem]


def test_unknown_fields_of_a_cache_entry_are_skipped(released: Released) -> None:
    path = entry_of(released)
    known = read_entry(path.read_bytes(), path.stem)
    assert read_entry(edited_entry(path, future=[1]), path.stem) == known


def test_another_layout_of_the_cache_is_not_looked_into(released: Released) -> None:
    (released.root / "cache" / "v1").rename(released.root / "cache" / "v2")
    store = CacheStore(released.root / "cache")
    assert store.entry_keys() == []
    remove_leftovers(store, now=FAR_FUTURE)
    assert len(list((released.root / "cache" / "v2" / "entries").iterdir())) == 3


def test_an_archive_of_another_version_is_refused(released: Released, tmp_path: Path) -> None:
    source = released.file("archive/seed.tar")
    later = tmp_path / "later.tar"
    for about, problem in (
        ({"format": 2}, r"archive\.format: 2, expected 1"),
        ({"format": True}, r"archive\.format: True"),
        (None, r"objects/\w+\.\w+' first, expected 'archive\.json'"),
    ):
        with tarfile.open(source) as old, tarfile.open(later, "w") as new:
            for member in old:
                content = old.extractfile(member).read()  # type: ignore[union-attr] # all are files
                if member.name == "archive.json":
                    if about is None:
                        continue
                    content = json.dumps(about).encode()
                    member.size = len(content)
                new.addfile(member, io.BytesIO(content))
        with pytest.raises(FormatError, match=problem):
            import_entries(CacheStore(tmp_path / "cache"), later, 1 << 30)
    assert CacheStore(tmp_path / "cache").entry_keys() == []


def test_tuned_tilings_of_another_version_are_measured_anew(released: Released) -> None:
    path = released.file("tuning/*.json")
    content = json.loads(path.read_bytes())
    cache = TuningCache(path.parent, HardwareIdentity.from_mapping(content["identity"]))
    known = cache.read()
    assert known
    path.write_text(json.dumps({**content, "future": 1}), encoding="utf-8")
    assert cache.read() == known
    path.write_text(json.dumps({**content, "format": 2}), encoding="utf-8")
    assert cache.read() == {}


def test_a_trial_of_another_version_is_made_anew(released: Released) -> None:
    (path,) = released.root.glob("trials/*.failed.json")
    content, folder = json.loads(path.read_bytes()), str(path.parent)
    path.write_text(json.dumps({**content, "future": 1}), encoding="utf-8")
    assert read_problem(content["device"], folder) == "refused"
    path.write_text(json.dumps({**content, "format": 2}), encoding="utf-8")
    assert read_problem(content["device"], folder) is None


def test_a_verdict_of_another_version_is_not_known(released: Released) -> None:
    path = released.file("probes/*.json")
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({**content, "future": 1}), encoding="utf-8")
    assert _read_verdict(path) == content["problem"]
    path.write_text(json.dumps({**content, "ort_lite_probe": 2}), encoding="utf-8")
    assert _read_verdict(path) is None


def test_a_digest_that_another_version_remembered_is_made_anew(
    released: Released, tmp_path: Path
) -> None:
    model = released.root / "models" / "mlp.onnx"
    (tmp_path / "stamps").mkdir()
    stamps = SourceStamps(tmp_path / "stamps")
    file = SourceFile.of(str(model))
    stamps.remember(
        DigestedSource("ab", (file,), file.size),
        "",
        now_ns=file.ctime_ns + 10 * source_digest.YOUNG_NS,
    )
    (stamp,) = (tmp_path / "stamps").iterdir()
    assert stamps.find_digest(model, "") is not None
    content = json.loads(stamp.read_bytes())
    del content["check"]
    content["format"] += 1
    stamp.write_text(
        json.dumps({**content, "check": source_digest._check(content)}), encoding="utf-8"
    )
    assert stamps.find_digest(model, "") is None


def test_an_adapter_of_another_version_is_refused(released: Released) -> None:
    data = bytearray(released.file("adapter/*.onnx_adapter").read_bytes())
    (root,) = struct.unpack_from("<I", data)
    (back,) = struct.unpack_from("<i", data, root)
    (first,) = struct.unpack_from("<H", data, root - back + 4)
    assert struct.unpack_from("<i", data, root + first) == (1,)
    struct.pack_into("<i", data, root + first, 2)
    with pytest.raises(FormatError, match="format_version: 2, expected 1"):
        read_adapter(memoryview(data))


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("result.json", lambda folder: read_results([folder])),
        ("crossload.json", lambda folder: read_cross([folder])),
        ("report.json", read_report),
    ],
)
def test_results_of_another_version_are_refused(name: str, read: Any, released: Released) -> None:
    folder = released.root / "hw"
    content = json.loads((folder / name).read_bytes())
    known = read(folder)
    (folder / name).write_text(json.dumps({**content, "future": 1}), encoding="utf-8")
    assert read(folder) == known
    later = {**content, "schema_version": 2}
    (folder / name).write_text(json.dumps(later), encoding="utf-8")
    with pytest.raises(MatrixError, match=rf"{name}.*schema_version is 2, and .* reads 1"):
        read(folder)
    del later["schema_version"]
    (folder / name).write_text(json.dumps(later), encoding="utf-8")
    with pytest.raises(MatrixError, match="schema_version"):
        read(folder)


def test_a_matrix_of_another_version_and_unknown_keys_are_refused(released: Released) -> None:
    path = released.root / "hw" / "hw_matrix.yaml"
    text = path.read_text(encoding="utf-8")
    for later, problem in (
        (text.replace("schema: 1", "schema: 2"), r"hw_matrix\.yaml:1: Invalid enum value 2"),
        (text + "future: 1\n", "unknown key 'future'"),
    ):
        path.write_text(later, encoding="utf-8")
        with pytest.raises(MatrixError, match=problem):
            read_matrix(path)


def test_a_table_of_operators_of_another_version_claims_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = json.loads(table_module.table_file("2026.4.1").read_bytes())
    monkeypatch.setattr(table_module, "TABLES", tmp_path)
    file = tmp_path / "2026.4.json"
    file.write_text(json.dumps({**original, "future": 1}), encoding="utf-8")
    assert table_module.load_table("2026.4.1").operators
    file.write_text(json.dumps({**original, "format": 2}), encoding="utf-8")
    assert not table_module.load_table("2026.4.1").operators
