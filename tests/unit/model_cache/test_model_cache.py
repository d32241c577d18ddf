"""What a session gets out of the model cache, and what it never gets."""

from __future__ import annotations

import logging
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from cached_starts import OPENVINO, only_entry, options, same, start, store
from small_models import branching, feed, mlp, sandwich

import ort_lite as ort
from ctx_formats import atomic_write
from ctx_formats.removal import remove_file
from ort_lite.model import shape_inference
from ort_lite.model_cache import cached_model, store_entry
from ort_lite.model_cache.store import CacheStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import onnx

    from ort_lite.model_cache.entry import CacheEntry

CPU = "CPUExecutionProvider"


def test_the_second_start_compiles_nothing(saved: Path, cache: Path) -> None:
    state, reason, first = start(saved, cache)
    assert (state, reason) == ("stored", "no compiled form of this model is in the cache")
    state, _, second = start(saved, cache, session__disable_model_compile="1")
    assert state == "hit"
    same(first, second)


def test_without_the_option_and_the_variable_nothing_is_written(
    saved: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ORT_LITE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    with ort.InferenceSession(saved, providers=[OPENVINO]) as session:
        assert session.load_report().cache.state == "off"
    assert not cache.exists()


def test_the_variable_turns_it_on_and_the_option_off(
    saved: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(cache))
    greedy = ort.SessionOptions()
    greedy.add_session_config_entry("session.placement", "all")
    for expected in ("stored", "hit"):
        with ort.InferenceSession(saved, greedy, providers=[OPENVINO]) as session:
            assert session.load_report().cache.state == expected
    off = ort.SessionOptions()
    off.add_session_config_entry("session.ep_context_cache", "0")
    with ort.InferenceSession(saved, off, providers=[OPENVINO]) as session:
        assert session.load_report().cache.state == "off"


def test_a_wrong_value_of_an_option_is_refused(saved: Path, cache: Path) -> None:
    for entries in ({"session__ep_context_cache": "yes"},
                    {"session__ep_context_cache_max_bytes": "1G"}):  # fmt: skip
        with pytest.raises(ort.InvalidArgument):
            start(saved, cache, **entries)


def test_a_session_from_the_cache_looks_like_one_from_the_model(saved: Path, cache: Path) -> None:
    seen = []
    for _ in range(2):
        with ort.InferenceSession(saved, options(cache), providers=[OPENVINO]) as session:
            inputs = [(i.name, i.type, i.shape) for i in session.get_inputs()]
            outputs = [(o.name, o.type, o.shape) for o in session.get_outputs()]
            meta = session.get_modelmeta()
            seen.append((inputs, outputs, meta.producer_name, meta.graph_name, str(saved)))
            assert str(saved) in repr(session)
    assert seen[0] == seen[1]


def test_a_model_from_memory_is_cached_too(saved: Path, cache: Path) -> None:
    data = saved.read_bytes()
    assert start(data, cache)[0] == "stored"
    assert start(data, cache)[0] == "hit"
    assert start(saved, cache)[0] == "hit"  # the content decides, not where it lies


@pytest.mark.parametrize("providers", [[CPU], [CPU, OPENVINO]])
@pytest.mark.parametrize("make", [mlp, sandwich, branching])
def test_a_model_that_no_ep_compiles_is_kept_as_it_was_transformed(
    cache: Path, providers: list[str], make: Callable[[], onnx.ModelProto], monkeypatch: Any
) -> None:
    proto = make()
    source = proto.SerializeToString()
    expected = onnxruntime.InferenceSession(source).run(None, feed(proto))
    shown = []
    for state in ("stored", "hit", "hit"):
        with ort.InferenceSession(source, options(cache), providers=providers) as session:
            assert session.load_report().cache.state == state
            for mine, theirs in zip(session.run(None, feed(proto)), expected, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
            infos = [*session.get_inputs(), *session.get_outputs()]
            shown.append((session.get_providers(), [(i.name, i.type, i.shape) for i in infos]))
        monkeypatch.setattr(shape_inference, "infer_types", forbidden)  # the entry has the types
    assert shown[0] == shown[1] == shown[2]
    assert len(store(cache).entry_keys()) == 1


def test_a_large_model_that_no_ep_compiles_has_no_entry(
    saved: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = saved.read_bytes()  # a young file has no digest that the cache remembers
    for module in (store_entry, cached_model):
        monkeypatch.setattr(module, "MOST_KEPT_WHOLE", len(source) - 1)
    state, reason, _ = start(source, cache, [CPU])
    assert (state, reason[:24]) == ("missed", "no execution provider th")
    state, reason, _ = start(source, cache, [CPU, OPENVINO])
    assert (state, reason) == ("stored", "CPUExecutionProvider runs every node")
    state, reason, _ = start(source, cache, [CPU, OPENVINO])
    assert (state, reason) == ("hit", "CPUExecutionProvider runs every node")
    assert store(cache).entry_keys() == []


def forbidden(*arguments: object) -> None:
    raise AssertionError("types are inferred again")


def damage_payload(cache: Path, entry: CacheEntry) -> None:
    path = store(cache).objects / entry.payloads[0].name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.chmod(0o644)
    path.write_bytes(data)


def damage_model(cache: Path, entry: CacheEntry) -> None:
    path = store(cache).objects / entry.model.name
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def truncate_payload(cache: Path, entry: CacheEntry) -> None:
    path = store(cache).objects / entry.payloads[0].name
    path.chmod(0o644)
    os.truncate(path, entry.payloads[0].size // 2)


def lose_payload(cache: Path, entry: CacheEntry) -> None:
    remove_file(store(cache).objects / entry.payloads[0].name)


def lose_model(cache: Path, entry: CacheEntry) -> None:
    remove_file(store(cache).objects / entry.model.name)


def damage_entry(cache: Path, entry: CacheEntry) -> None:
    path = store(cache).entries_folder / f"{entry.key}.json"
    path.write_bytes(path.read_bytes().replace(b"intel64", b"intel65"))


def swap_payload_for_another_sound_one(cache: Path, entry: CacheEntry) -> None:
    """A well-formed container of another model under this one's name."""
    other = cache.parent / "other.onnx"
    other.write_bytes(mlp().SerializeToString())
    with ort.InferenceSession(other, options(cache.parent / "c2"), providers=[OPENVINO]):
        pass
    foreign = CacheStore(cache.parent / "c2")
    name = foreign.sound_entries()[0].payloads[0].name
    target = store(cache).objects / entry.payloads[0].name
    remove_file(target)
    shutil.copy(foreign.objects / name, target)


@pytest.mark.parametrize(
    "damage",
    [
        damage_payload,
        damage_model,
        truncate_payload,
        lose_payload,
        lose_model,
        damage_entry,
        swap_payload_for_another_sound_one,
    ],
)
def test_a_damaged_entry_is_dropped_and_compiled_again_never_run(
    saved: Path,
    cache: Path,
    damage: Callable[[Path, CacheEntry], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    right = start(saved, cache)[2]
    damage(cache, only_entry(cache))
    with caplog.at_level(logging.WARNING):
        state, _, answer = start(saved, cache)
    assert state == "stored"
    assert "is dropped, and the model is compiled again" in caplog.text
    same(answer, right)
    state, _, answer = start(saved, cache)
    assert state == "hit"
    same(answer, right)


def test_objects_and_entries_are_never_written_into(saved: Path, cache: Path) -> None:
    start(saved, cache)
    before = {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in store(cache).objects.iterdir()}
    if os.name == "posix":  # what is read-only on Windows cannot be removed
        assert all(not path.stat().st_mode & 0o222 for path in before)
    start(saved, cache)
    start(saved, cache, [(OPENVINO, {"num_of_threads": "1"})])
    for path, (inode, written) in before.items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (inode, written)


def test_a_full_disk_costs_the_cache_and_nothing_else(
    saved: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_write.os, "fsync", full)  # type: ignore[attr-defined] # patched where it is used
        state, reason, _ = start(saved, cache)
    assert state == "missed"
    assert "No space left on device" in reason
    assert "is not kept in the model cache" in caplog.text
    left = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert left == []
    assert start(saved, cache)[0] == "stored"


def test_a_read_only_cache_is_read(
    saved: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(saved, cache)
    real = os.open

    def read_only(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR) and str(path).startswith(str(cache)):
            raise OSError(30, "Read-only file system")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", read_only)
    assert start(saved, cache)[0] == "hit"
    state, reason, _ = start(saved, cache, ep__of_a_vendor="7")
    assert (state, "Read-only file system" in reason) == ("missed", True)


def test_a_cache_that_cannot_be_made_costs_nothing_else(saved: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "in_the_way"
    in_the_way.write_text("not a folder")
    state, reason, _ = start(saved, in_the_way / "cache")
    assert (state, in_the_way.name in reason) == ("missed", True)


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_folder_that_everybody_can_write_to_is_not_trusted(
    saved: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start(saved, cache)
    cache.chmod(0o777)
    state, reason, _ = start(saved, cache)
    assert (state, "everybody can write" in reason) == ("missed", True)
    assert "is not used" in caplog.text


def test_the_quota_drops_what_was_not_used_for_longest(saved: Path, cache: Path) -> None:
    for i in range(3):
        start(saved, cache, ep__number=str(i))
    entries = {entry.identity["config.ep.number"]: entry for entry in store(cache).sound_entries()}
    for name, age in (("0", 300), ("1", 200), ("2", 100)):
        path = store(cache).entries_folder / f"{entries[name].key}.json"
        os.utime(path, (1_000_000_000 - age, 1_000_000_000 - age))
    assert start(saved, cache, ep__number="0")[0] == "hit"  # and now the most recent
    room = sum(p.stat().st_size for p in store(cache).objects.iterdir())
    start(b"" + with_other_weights(), cache, session__ep_context_cache_max_bytes=str(room))
    left = {e.identity.get("config.ep.number") for e in store(cache).sound_entries()}
    assert None in left
    assert "0" in left
    assert "1" not in left


def with_other_weights() -> bytes:
    proto = sandwich()
    proto.graph.initializer[0].raw_data = bytes(len(proto.graph.initializer[0].raw_data))
    return proto.SerializeToString()


def test_a_model_over_the_quota_is_told_and_leaves_nothing(saved: Path, cache: Path) -> None:
    state, reason, _ = start(saved, cache, session__ep_context_cache_max_bytes="1000")
    assert (state, "the quota is 1000" in reason) == ("missed", True)
    assert list(store(cache).objects.iterdir()) == []


def test_a_model_that_changes_while_it_is_compiled_is_not_kept(
    saved: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = store_entry.source_of  # type: ignore[attr-defined] # patched where it is used

    def meddling(loaded: Any) -> Any:
        found = real(loaded)
        saved.write_bytes(with_other_weights())
        return found

    monkeypatch.setattr(store_entry, "source_of", meddling)
    state, reason, _ = start(saved, cache)
    assert (state, reason) == ("missed", "the model changed while it was compiled")
    assert store(cache).entry_keys() == []


def test_an_explicit_context_goes_around_the_cache(saved: Path, cache: Path) -> None:
    state, _, _ = start(saved, cache, ep__context_enable="1")
    assert state == "off"
    context = saved.with_name("m_ctx.onnx")
    state, reason, _ = start(context, cache)
    assert (state, reason) == ("missed", "the model is compiled already")
