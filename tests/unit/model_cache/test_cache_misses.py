"""What a miss says of its reason, and what is no reason to lose an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cached_starts import only_entry, same, start, store

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path


def damage(cache: Path) -> None:
    path = store(cache).objects / only_entry(cache).payloads[0].name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.chmod(0o644)
    path.write_bytes(data)


def test_a_session_that_must_not_use_the_cpu_costs_nobody_the_entry(
    saved: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right = start(saved, cache)[2]
    for _ in range(2):
        with pytest.raises(ort.Fail, match="fallback to CPU EP has been explicitly disabled"):
            start(saved, cache, session__disable_cpu_ep_fallback="1")
    assert "dropped" not in caplog.text
    state, _, found = start(saved, cache)
    assert state == "hit"
    same(found, right)


def test_the_report_says_that_an_entry_was_damaged(saved: Path, cache: Path) -> None:
    start(saved, cache)
    damage(cache)
    state, reason, _ = start(saved, cache)
    assert state == "stored"
    assert reason.startswith("the old entry is dropped: ")
    assert "padding" in reason


def test_a_pin_outlasts_damage(saved: Path, cache: Path) -> None:
    start(saved, cache)
    key = only_entry(cache).key
    store(cache).pin(key)
    damage(cache)
    assert start(saved, cache)[0] == "stored"
    assert store(cache).is_pinned(key)


def test_where_compiling_is_forbidden_the_error_says_why_it_was_a_miss(
    saved: Path, cache: Path
) -> None:
    start(saved, cache)
    forbidden = {"session__disable_model_compile": "1", "ep__number": "7"}
    with pytest.raises(ort.ModelRequiresCompilation, match=r"ep\.number is '7' and was ''"):
        start(saved, cache, **forbidden)


def test_a_quota_of_thousands_of_digits_is_refused(saved: Path, cache: Path) -> None:
    with pytest.raises(ort.InvalidArgument, match="expected a number of bytes"):
        start(saved, cache, session__ep_context_cache_max_bytes="9" * 5000)
