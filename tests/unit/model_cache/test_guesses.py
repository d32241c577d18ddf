"""The entry that a start reads ahead of need, and that it is never more than a guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cached_starts import OPENVINO, options, same, start, store
from small_models import feed, sandwich

import ort_lite as ort
from ort_lite.model_cache.eviction import remove_leftovers

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.start.load_report import LoadReport

ONE_THREAD = {"num_of_threads": "1"}


def report(saved: Path, cache: Path, provider_options: dict[str, str]) -> LoadReport:
    providers = [(OPENVINO, provider_options)]
    with ort.InferenceSession(saved, options(cache), providers=providers) as session:
        session.run(None, feed(sandwich()))
        return session.load_report()


def only_guess(cache: Path) -> Path:
    (path,) = store(cache).guesses.iterdir()
    return path


def test_the_entry_is_read_before_the_providers_are_open(saved: Path, cache: Path) -> None:
    assert report(saved, cache, {}).cache.state == "stored"
    found = report(saved, cache, {})
    assert found.cache.state == "hit"
    phases = list(found.phases)
    assert phases.index("look up") < phases.index("open providers")


def test_a_hit_writes_nothing(saved: Path, cache: Path) -> None:
    report(saved, cache, {})
    guess = only_guess(cache)
    before = (guess.stat().st_ino, guess.stat().st_mtime_ns)
    assert report(saved, cache, {}).cache.state == "hit"
    assert (guess.stat().st_ino, guess.stat().st_mtime_ns) == before


def test_a_wrong_guess_is_read_and_not_used(saved: Path, cache: Path) -> None:
    first = report(saved, cache, {}).cache.key
    guess = only_guess(cache)
    second = report(saved, cache, ONE_THREAD).cache.key
    assert first != second
    guess.write_text(second)
    found = report(saved, cache, {})
    assert (found.cache.state, found.cache.key) == ("hit", first)
    assert guess.read_text() == first  # so that the next start guesses right


@pytest.mark.parametrize(
    "content", [b"", b"0" * 64, b"../../../etc/passwd", b"\xff" * 64, b"a" * 100_000]
)
def test_a_damaged_guess_is_none(saved: Path, cache: Path, content: bytes) -> None:
    expected = start(saved, cache)[2]
    only_guess(cache).write_bytes(content)
    state, _, found = start(saved, cache)
    assert state == "hit"
    same(found, expected)


def test_a_guess_at_what_was_removed_is_a_miss(saved: Path, cache: Path) -> None:
    key = report(saved, cache, {}).cache.key
    store(cache).drop(key)
    assert report(saved, cache, {}).cache.state == "stored"


def test_a_guess_at_a_damaged_entry_is_told_and_compiled_again(
    saved: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = start(saved, cache)[2]
    (path,) = store(cache).entries_folder.iterdir()
    path.write_bytes(path.read_bytes()[:-40])
    state, _, found = start(saved, cache)
    assert state == "stored"
    assert "is dropped, and the model is compiled again" in caplog.text
    same(found, expected)


def test_a_changed_model_is_not_guessed_at(saved: Path, cache: Path) -> None:
    start(saved, cache)
    proto = sandwich()
    proto.graph.initializer[0].raw_data = bytes(len(proto.graph.initializer[0].raw_data))
    saved.write_bytes(proto.SerializeToString())
    assert start(saved, cache)[0] == "stored"
    assert len(list(store(cache).guesses.iterdir())) == 2


def test_upkeep_removes_guesses_that_lead_nowhere(saved: Path, cache: Path) -> None:
    kept = report(saved, cache, {}).cache.key
    dropped = report(saved, cache, ONE_THREAD).cache.key
    store(cache).drop(dropped)
    assert len(list(store(cache).guesses.iterdir())) == 2
    (removed,) = remove_leftovers(store(cache), now=0.0)
    assert removed.parent == store(cache).guesses
    assert only_guess(cache).read_text() == kept
