"""What the cache keeps on disk: digests of models by stat, and entries that check themselves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from system_limits import needs_change_time

import ort_lite as ort
from ort_lite.model import loader
from ort_lite.model_cache import source_digest
from ort_lite.model_cache.entry import CacheEntry, CacheObject, key_of, read_entry

if TYPE_CHECKING:
    from pathlib import Path


class TestSourceStamps:
    """A digest is taken again without reading, and never for another content."""

    def source(self, path: Path) -> source_digest.DigestedSource:
        loaded = ort_lite_load(path)
        try:
            found = source_digest.read_source(loaded)
        finally:
            loaded.close()
        assert found is not None
        return found

    def remembered(self, saved: Path, folder: Path) -> source_digest.SourceStamps:
        folder.mkdir()
        stamps = source_digest.SourceStamps(folder)
        later = saved.stat().st_ctime_ns + 10 * source_digest.YOUNG_NS
        stamps.remember(self.source(saved), "", now_ns=later)
        return stamps

    def test_the_digest_comes_back(self, saved: Path, cache: Path) -> None:
        stamps = self.remembered(saved, cache)
        assert stamps.find_digest(saved, "") == self.source(saved)

    def test_outdated_are_those_of_files_that_changed_or_went(
        self, saved: Path, cache: Path
    ) -> None:
        stamps = self.remembered(saved, cache)
        assert stamps.list_outdated() == []
        saved.unlink()
        (stamp,) = stamps.list_outdated()
        assert stamp.parent == cache
        stamp.write_bytes(b"not JSON")
        assert stamps.list_outdated() == [stamp]

    def test_a_file_that_is_young_is_not_remembered(self, saved: Path, cache: Path) -> None:
        cache.mkdir()
        stamps = source_digest.SourceStamps(cache)
        stamps.remember(self.source(saved), "", now_ns=saved.stat().st_ctime_ns)
        assert stamps.find_digest(saved, "") is None

    @needs_change_time
    def test_the_same_size_and_mtime_are_not_enough(self, saved: Path, cache: Path) -> None:
        stamps = self.remembered(saved, cache)
        before = saved.stat()
        data = bytearray(saved.read_bytes())
        data[-1] ^= 1
        saved.write_bytes(data)
        os.utime(saved, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert saved.stat().st_mtime_ns == before.st_mtime_ns
        assert stamps.find_digest(saved, "") is None

    def test_another_folder_of_weights_is_another_model(self, saved: Path, cache: Path) -> None:
        stamps = self.remembered(saved, cache)
        assert stamps.find_digest(saved, str(cache)) is None

    def test_a_damaged_stamp_is_none(self, saved: Path, cache: Path) -> None:
        stamps = self.remembered(saved, cache)
        (path,) = cache.iterdir()
        good = path.read_bytes()
        for i in range(0, len(good), 7):
            path.write_bytes(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :])
            assert stamps.find_digest(saved, "") is None
        path.write_bytes(good[: len(good) // 2])
        assert stamps.find_digest(saved, "") is None


def ort_lite_load(path: Path) -> Any:
    return loader.load(path, ort.SessionOptions())


def entry() -> CacheEntry:
    return CacheEntry(
        identity={"model": "m", "producer": "p"},
        model=CacheObject(f"{'a' * 64}.onnx", 3),
        payloads=(CacheObject(f"{'b' * 64}.bin", 4),),
        source="m.onnx",
        created="2026-01-01T00:00:00+00:00",
    )


def test_an_entry_comes_back_and_no_flipped_bit_passes() -> None:
    made = entry()
    data = made.to_bytes()
    assert read_entry(data, made.key) == made
    for at in range(len(data)):
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        try:
            found = read_entry(damaged, made.key)
        except ValueError:
            continue
        assert found == made  # a flipped blank


@pytest.mark.parametrize("name", ["../../m.onnx", "m.onnx", "/etc/passwd", f"{'A' * 64}.onnx"])
def test_an_entry_that_names_a_file_outside_is_damaged(name: str) -> None:
    made = entry()
    outside = CacheEntry(
        identity=made.identity,
        model=CacheObject(name, 1),
        payloads=(),
        source="",
        created="",
    )
    with pytest.raises(ValueError, match="object"):
        read_entry(outside.to_bytes(), made.key)


def test_a_key_tells_names_from_values() -> None:
    assert key_of({"a": "bc"}) != key_of({"ab": "c"})
