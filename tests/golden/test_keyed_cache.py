"""A model cache whose key made version 1 of its MACs is believed for as long as that is read.

`make_keyed_cache.py` made it. The MACs are computed here with blake3 alone.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from blake3 import blake3
from cached_starts import OPENVINO, start
from onnx.reference import ReferenceEvaluator
from small_models import feed, sandwich

import ort_lite as ort
from ctx_formats.errors import FormatError
from ort_lite.model_cache.secret import read_secret
from ort_lite.model_cache.store import CacheStore
from ort_lite.model_cache.transfer import import_entries
from ort_lite.model_cache.verification import problems

HERE = Path(__file__).resolve().parent
VERSIONS = sorted(HERE.glob("cache_key_*/cache.tar.xz"))
OTHER = "f" * 64


@pytest.fixture(params=VERSIONS, ids=[path.parent.name for path in VERSIONS])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The cache, its archive and its key, as they were written."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path / "files", filter="data")
    return tmp_path / "files"


def keyed(cache: Path, secret: Path) -> CacheStore:
    return CacheStore(cache, read_secret(str(secret)))


def other_secret(folder: Path) -> Path:
    path = folder / "other.secret"
    path.write_text(OTHER)
    path.chmod(0o600)
    return path


def requirements() -> str:
    """What a blob made here requires, says OpenVINO itself; CPUs of one name may differ in it."""
    model = openvino.Core().read_model(sandwich().SerializeToString(), b"")
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return str(compiled.get_property("RUNTIME_REQUIREMENTS"))


def test_version_1_is_there() -> None:
    assert [path.parent.name for path in VERSIONS] == ["cache_key_1"]


def test_its_entry_has_the_macs_of_its_key_and_of_no_other(files: Path) -> None:
    assert list(problems(keyed(files / "cache", files / "cache.secret"))) == []
    ((_, problem),) = problems(keyed(files / "cache", other_secret(files)))
    assert "expected one of the key" in problem


@pytest.mark.parametrize(("folder", "kind"), [("entries", "entry"), ("sources", "source")])
def test_a_mac_is_keyed_blake3_over_the_sorted_record(files: Path, folder: str, kind: str) -> None:
    (path,) = (files / "cache" / "v1" / folder).glob("*.json")
    record: dict[str, Any] = json.loads(path.read_bytes())
    secret = bytes.fromhex((files / "cache.secret").read_text(encoding="ascii"))
    context = "ort_lite 2026-11-22 model cache record v1"
    key = blake3(secret, derive_key_context=context).digest()
    covered = {name: value for name, value in record.items() if name not in ("mac", "check")}
    spelled = json.dumps([kind, covered], sort_keys=True).encode()
    assert blake3(spelled, key=key).hexdigest() == record["mac"]


def test_a_start_is_a_hit_where_the_identity_is_this_machines(files: Path) -> None:
    before = CacheStore(files / "cache").entry_keys()
    suits = any(requirements().encode() in path.read_bytes() for path in files.rglob("*.bin"))
    data = sandwich().SerializeToString()
    options = ort.SessionOptions()
    for key, value in {
        "session.ep_context_cache": "1",
        "session.ep_context_cache_dir": str(files / "cache"),
        "session.ep_context_cache_key": str(files / "cache.secret"),
        "session.placement": "all",
    }.items():
        options.add_session_config_entry(key, value)
    with ort.InferenceSession(data, options, providers=[OPENVINO]) as session:
        cache = session.load_report().cache
        found = session.run(None, feed(sandwich()))
    assert cache is not None
    assert (cache.state == "hit") == (cache.key in before and suits)
    expected = ReferenceEvaluator(sandwich()).run(None, feed(sandwich()))
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-5, atol=1e-6)


def test_nobody_else_uses_the_entry(files: Path) -> None:
    for entries in ({}, {"session__ep_context_cache_key": str(other_secret(files))}):
        state = start(sandwich().SerializeToString(), files / "cache", **entries)[0]
        assert state == "stored"
    assert list(problems(keyed(files / "cache", files / "cache.secret"))) != []


def test_its_archive_seeds_a_cache_with_its_key_alone(files: Path, tmp_path: Path) -> None:
    empty = keyed(tmp_path / "empty", files / "cache.secret")
    taken = import_entries(empty, files / "seed.tar", 1 << 30)
    assert [entry.key for entry in taken] == CacheStore(files / "cache").entry_keys()
    assert list(problems(empty)) == []
    with pytest.raises(FormatError, match="mac") as refused:
        import_entries(keyed(tmp_path / "b", other_secret(files)), files / "seed.tar", 1 << 30)
    assert refused.value.reason == "untrusted"
