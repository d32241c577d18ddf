"""`ort-lite cache` and `ort-lite bench --startup`, for a person and as JSON."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import numpy as np
import onnx.parser
import pytest

import ort_lite as ort
from ort_lite.cli.output import size_text
from ort_lite.model_cache import source_digest
from ort_lite.model_cache.store import CacheStore

if TYPE_CHECKING:
    from pathlib import Path

EP = ("-e", "openvino")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that every command means."""
    path = tmp_path / "cache"
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(path))
    return path


@pytest.fixture
def filled(folder: Path, model: Path, invoke) -> str:
    """Its only entry's key."""
    assert invoke("run", model, *EP).code == 0
    (key,) = CacheStore(folder).entry_keys()
    return key


def damage(folder: Path) -> None:
    path = next(CacheStore(folder).objects.glob("*.bin"))
    data = bytearray(path.read_bytes())
    data[(1 << 16) + 100] ^= 1  # inside the first payload
    path.chmod(0o644)
    path.write_bytes(data)


def test_ls_and_du_tell_what_is_there(folder: Path, filled: str, model: Path, invoke) -> None:
    (entry,) = invoke("cache", "ls", "--json").json["entries"]
    assert (entry["key"], entry["model"], entry["pinned"]) == (filled, str(model), False)
    listed = invoke("cache", "ls").out
    assert filled[:12] in listed
    assert re.search(r"  \d{4}-\d\d-\d\d \d\d:\d\d  ", listed)
    size = sum(path.stat().st_size for path in CacheStore(folder).objects.iterdir())
    assert invoke("cache", "du", "--json").json["bytes"] == size == entry["bytes"]
    assert "1 entry" in invoke("cache", "du").out


def test_a_cache_that_is_not_there_is_empty(folder: Path, invoke) -> None:
    assert invoke("cache", "ls", "--json").json["entries"] == []
    assert invoke("cache", "verify").code == 0
    assert invoke("cache", "clear").code == 0
    assert not folder.exists()


def test_explain_says_hit_and_names_what_differs(filled: str, model: Path, invoke) -> None:
    found = invoke("cache", "explain", model, *EP, "--json").json
    assert (found["hit"], found["key"], found["differences"]) == (True, filled, [])
    assert invoke("cache", "explain", model, *EP).out.startswith("hit")
    other = invoke("cache", "explain", model, *EP, "-O", "num_of_threads=1", "--json").json
    assert (other["hit"], other["differences"]) == (
        False,
        [
            {
                "field": "OpenVINOExecutionProvider.option.num_of_threads",
                "cached": "",
                "present": "1",
            }
        ],
    )
    assert "num_of_threads" in invoke("cache", "explain", model, *EP, "-O", "num_of_threads=1").out


def test_explain_finds_a_default_list_in_the_folder_that_it_is_given(
    tmp_path: Path, model: Path, invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_digest, "YOUNG_NS", -(1 << 60))  # it was written just now
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))
    ort.InferenceSession(model, options).close()
    report = ort.InferenceSession(model, options).load_report()
    assert report.cache.state == "hit"
    assert invoke("cache", "explain", model, "--dir", tmp_path / "cache", "--json").json["hit"]


def test_ls_names_the_shapes_of_a_plan(
    folder: Path, tmp_path: Path, invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_digest, "YOUNG_NS", -(1 << 60))
    path = tmp_path / "free.onnx"
    onnx.save(
        onnx.parser.parse_model(
            """<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] z) {
                s = Shape(x) d = Cast <to = 1> (s) y = Mul(x, d) z = Tanh(y) }"""
        ),
        path,
    )
    options = ort.SessionOptions()
    options.add_session_config_entry("session.specialize_after_runs", "2")
    with ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]) as one:
        for _ in range(4):
            one.run(None, {"x": np.ones(3, np.float32)})
        assert one.background_compile(None).state == "done"
    listed = invoke("cache", "ls").out
    assert len(CacheStore(folder).entry_keys()) == 2
    assert listed.count(str(path)) == 2
    assert f"{path} for x [3]" in listed


def test_explain_agrees_with_the_session(filled: str, model: Path, folder: Path, invoke) -> None:
    damage(folder)
    found = invoke("cache", "explain", model, *EP, "--json").json
    assert (found["hit"], "digest" in found["reason"]) == (False, True)


def test_verify_finds_a_flipped_bit_and_fix_removes_it(filled: str, folder: Path, invoke) -> None:
    assert invoke("cache", "verify").code == 0
    damage(folder)
    bad = invoke("cache", "verify", "--json")
    assert (bad.code, bad.json["damaged"][0]["key"]) == (1, filled)
    assert invoke("cache", "verify", "--fix").code == 0
    assert CacheStore(folder).entry_keys() == []


def test_verify_says_what_to_do(filled: str, folder: Path, invoke) -> None:
    damage(folder)
    assert "verify --fix" in invoke("cache", "verify").err
    assert "verify --fix" in invoke("cache", "verify", "--json").json["hint"]
    assert invoke("cache", "verify", "--fix", "--json").json["hint"] == ""


def test_a_damaged_entry_is_told_by_every_command(
    filled: str, folder: Path, model: Path, invoke
) -> None:
    path = CacheStore(folder).entries_folder / f"{filled}.json"
    path.write_bytes(path.read_bytes()[:300])
    (told,) = invoke("cache", "ls", "--json").json["damaged"]
    assert (told["key"], "cache entry.JSON" in told["problem"]) == (filled, True)
    assert "1 more cannot be read" in invoke("cache", "ls").err
    found = invoke("cache", "explain", model, *EP, "--json").json
    assert (found["hit"], "cache entry.JSON" in found["reason"]) == (False, True)
    assert invoke("cache", "verify").code == 1
    loose = sum(path.stat().st_size for path in CacheStore(folder).objects.iterdir())
    assert invoke("cache", "du", "--json").json["unnamed_bytes"] == loose


def test_a_damaged_entry_is_not_exported(filled: str, folder: Path, tmp_path: Path, invoke) -> None:
    damage(folder)
    result = invoke("cache", "export", tmp_path / "seed.tar")
    assert (result.code, "verify --fix" in result.err) == (4, True)
    assert not (tmp_path / "seed.tar").exists()


@pytest.mark.parametrize(
    "command",
    [("ls",), ("du",), ("verify",), ("prune",), ("clear",), ("pin", "x"), ("export", "x.tar")],
)
def test_a_folder_that_cannot_be_read_is_one_line(
    tmp_path: Path, command: tuple[str, ...], invoke
) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    result = invoke("cache", *command, "--dir", file, "--json")
    assert (result.code, result.json["exit_code"]) == (2, 2)
    assert result.err.startswith(f"error: {file} is not a folder")


def test_explain_looks_where_the_session_would(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke
) -> None:
    monkeypatch.delenv("ORT_LITE_CACHE_DIR", raising=False)
    chosen = ("-c", f"session.ep_context_cache_dir={tmp_path / 'elsewhere'}")
    assert invoke("run", model, *EP, "-c", "session.ep_context_cache=1", *chosen).code == 0
    assert invoke("cache", "explain", model, *EP, *chosen, "--json").json["hit"]
    off = invoke("cache", "explain", model, *EP, *chosen, "-c", "session.ep_context_cache=0")
    assert "session.ep_context_cache is 0" in off.out


def test_an_empty_key_is_no_key(filled: str, invoke) -> None:
    assert invoke("cache", "pin", "").code == 2


def test_prune_leaves_what_is_pinned(filled: str, folder: Path, model: Path, invoke) -> None:
    assert invoke("cache", "pin", model).code == 0
    assert invoke("cache", "prune", "--max-bytes", "0", "--json").json["removed"] == []
    assert invoke("cache", "pin", filled[:8], "--off").code == 0
    assert invoke("cache", "prune", "--max-bytes", "0", "--json").json["removed"] == [filled]
    assert list(CacheStore(folder).objects.iterdir()) == []


def test_clear_removes_everything(filled: str, folder: Path, invoke) -> None:
    invoke("cache", "pin", filled)
    assert invoke("cache", "clear", "--json").json["removed"] == [filled]
    left = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert left == []


def test_clear_says_what_it_removed(filled: str, folder: Path, invoke) -> None:
    size = invoke("cache", "du", "--json").json["bytes"]
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    (text,) = invoke("cache", "clear").out.splitlines()
    notes = len(files) - 1 - 2  # without the entry, its model and its payload
    thing = "file" if notes == 1 else "files"
    assert text == (
        f"{folder}: removed 1 entry ({size_text(size)}), and {notes} {thing} "
        "with digests of models and past lookups"
    )
    assert invoke("cache", "clear").out == f"{folder}: removed 0 entries (0 B)\n"


def test_a_key_that_nobody_has_is_a_usage_error(filled: str, invoke) -> None:
    result = invoke("cache", "pin", "ffffffffffff")
    assert (result.code, "ort-lite cache ls" in result.err) == (2, True)


def test_an_exported_cache_makes_another_machine_s_first_start_a_hit(
    filled: str, folder: Path, model: Path, tmp_path: Path, invoke
) -> None:
    archive = tmp_path / "seed.tar"
    assert invoke("cache", "export", archive).code == 0
    assert invoke("cache", "export", archive).code == 2  # it is there, and stays
    shutil.rmtree(folder)
    assert invoke("cache", "import", archive, "--json").json["imported"] == [filled]
    assert invoke("cache", "explain", model, *EP, "--json").json["hit"]
    assert invoke("cache", "verify").code == 0


@pytest.mark.parametrize("near", [b"EPContext", b"RR_UPCVO", b"intel64", b"data_offset"])
def test_a_damaged_archive_is_refused(
    filled: str, folder: Path, tmp_path: Path, near: bytes, invoke
) -> None:
    archive = tmp_path / "seed.tar"
    invoke("cache", "export", archive)
    data = bytearray(archive.read_bytes())
    data[data.index(near)] ^= 1
    archive.write_bytes(data)
    shutil.rmtree(folder)
    assert invoke("cache", "import", archive).code == 4
    assert CacheStore(folder).sound_entries() == []


def test_startup_tells_each_phase_and_what_the_cache_did(filled: str, model: Path, invoke) -> None:
    result = invoke("bench", model, *EP, "--startup", "--loads", "1", "--json")
    (start,) = result.json["starts"]
    phases = start["phases_s"]
    assert list(phases)[:2] == ["interpreter", "imports"]
    assert {"open providers", "payload digest", "verdict", "vendor import"} <= set(phases)
    assert list(phases)[-1] == "first run"
    assert sum(phases.values()) == pytest.approx(start["ready_s"], abs=1e-4)
    assert (start["cache"]["state"], start["cache"]["key"]) == ("hit", filled)
    assert start["payload_bytes"] > 0
    assert start["peak_rss_bytes"] > start["model_bytes"]
    shown = invoke("bench", model, *EP, "--startup", "--loads", "1").out
    assert "vendor import" in shown
    assert "model cache, last start: hit" in shown


@pytest.mark.usefixtures("folder")
def test_startup_chooses_devices_as_the_session_would(model: Path, invoke) -> None:
    command = ("bench", model, "--policy", "PREFER_CPU", "--startup", "--loads", "1", "--json")
    (start,) = invoke(*command).json["starts"]
    assert start["cache"]["state"] == "hit"  # what the command's own session has stored
