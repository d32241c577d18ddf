"""A model cache with a key: what was not made with it is compiled again."""

from __future__ import annotations

import json
import logging
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3
from cached_starts import OPENVINO, only_entry, options, same, start, store
from signed_models import TRUST, assert_untrusted, make_key
from small_models import sandwich
from system_limits import needs_posix

import ort_lite as ort
from ctx_formats.errors import FormatError
from ort_lite.model_cache.entry import CacheEntry, CacheObject
from ort_lite.model_cache.secret import read_secret
from ort_lite.model_cache.store import CacheStore
from ort_lite.model_cache.transfer import export_entries, import_entries
from ort_lite.model_cache.verification import problems

if TYPE_CHECKING:
    from pathlib import Path

KEY = "session__ep_context_cache_key"


@pytest.fixture
def secret(tmp_path: Path) -> str:
    return make_secret(tmp_path, "one")


def make_secret(folder: Path, name: str) -> str:
    path = folder / f"{name}.secret"
    path.write_text(blake3(name.encode()).hexdigest() + "\n")
    path.chmod(0o600)
    return str(path)


def keyed(cache: Path, secret: str) -> CacheStore:
    return CacheStore(cache, read_secret(secret))


def test_entries_made_with_the_key_are_found_again(saved: Path, cache: Path, secret: str) -> None:
    state, _, first = start(saved, cache, **{KEY: secret})
    assert state == "stored"
    assert only_entry(cache).has_mac_of(read_secret(secret))
    state, _, second = start(saved, cache, session__disable_model_compile="1", **{KEY: secret})
    assert state == "hit"
    same(first, second)


def test_entries_made_without_it_or_with_another_are_not_used(
    saved: Path, cache: Path, secret: str, tmp_path: Path
) -> None:
    start(saved, cache)
    state, reason, _ = start(saved, cache, **{KEY: secret})
    assert state == "stored"
    assert "cache_key" in reason
    state, reason, _ = start(saved, cache, **{KEY: make_secret(tmp_path, "other")})
    assert (state, "cache_key" in reason) == ("stored", True)
    assert start(saved, cache)[0] == "hit", "who has no key goes on as before"
    assert len(store(cache).sound_entries()) == 3


FORGED = {
    "without a MAC": lambda entry: replace(entry, mac=""),
    "another's MAC": lambda entry: replace(entry, mac="0" * 64),
    "another model": lambda entry: replace(
        entry, model=replace(entry.model, name="0" * 64 + ".onnx")
    ),
    "another size": lambda entry: replace(entry, model=replace(entry.model, size=1)),
    "other payloads": lambda entry: replace(entry, payloads=()),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_entry_in_the_right_place_is_not_used(
    saved: Path, cache: Path, secret: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its digest over itself is right: anybody can compute that."""
    _, _, expected = start(saved, cache, **{KEY: secret})
    CacheStore(cache).commit(FORGED[name](only_entry(cache)))
    with caplog.at_level(logging.WARNING):
        state, reason, found = start(saved, cache, **{KEY: secret})
    assert state == "stored"
    assert "mac" in reason
    assert "mac" in caplog.text
    same(expected, found)
    assert start(saved, cache, **{KEY: secret})[0] == "hit"


def test_a_record_of_a_digest_that_was_forged_is_not_believed(
    saved: Path, cache: Path, secret: str
) -> None:
    """It would say that this model is another one, whose entry is sound."""
    records = store(cache).sources
    start(saved, cache, **{KEY: secret})
    _wait_until_old(saved)
    start(saved, cache, **{KEY: secret})
    made = sorted(records.glob("*.json"))
    assert made, "the file is old enough by now"
    content = json.loads(made[0].read_bytes())
    assert content["mac"]
    content["digest"] = "0" * 64
    del content["check"]
    content["check"] = blake3(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
    made[0].write_text(json.dumps(content))
    assert start(saved, cache)[0] == "stored", "without the key it is believed"
    made[0].write_text(json.dumps(content))
    assert start(saved, cache, **{KEY: secret})[0] == "hit"


def _wait_until_old(path: Path) -> None:
    """Until the file's ctime, which nobody can set, is over a second ago."""
    while time.time_ns() - path.stat().st_ctime_ns < 1_100_000_000:
        time.sleep(0.05)


def test_verify_lists_what_was_not_made_with_the_key(saved: Path, cache: Path, secret: str) -> None:
    start(saved, cache, **{KEY: secret})
    assert list(problems(keyed(cache, secret))) == []
    start(saved, cache)
    ((key, problem),) = problems(keyed(cache, secret))
    assert store(cache).entry(key).mac == ""  # type: ignore[union-attr] # it is there
    assert "expected one of the key" in problem
    assert list(problems(store(cache))) == []


def test_an_import_takes_what_was_made_with_the_key_alone(
    saved: Path, cache: Path, secret: str, tmp_path: Path
) -> None:
    start(saved, cache, **{KEY: secret})
    good, bad = tmp_path / "good.tar", tmp_path / "bad.tar"
    export_entries(store(cache), store(cache).sound_entries(), good)
    target = keyed(tmp_path / "c2", secret)
    import_entries(target, good, 10**9)
    assert start(saved, tmp_path / "c2", **{KEY: secret})[0] == "hit"
    start(saved, tmp_path / "c3")
    export_entries(store(tmp_path / "c3"), store(tmp_path / "c3").sound_entries(), bad)
    with pytest.raises(FormatError, match="mac") as found:
        import_entries(target, bad, 10**9)
    assert found.value.reason == "untrusted"
    assert len(target.sound_entries()) == 1


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "cannot be read: No such file"),
        ("", "found 0 bytes of something else, expected 64 hexadecimal digits"),
        ("ab" * 31, "expected 64 hexadecimal digits"),
        ("x" * 64, "expected 64 hexadecimal digits"),
        ("ab" * 5000, "expected 64 hexadecimal digits"),
    ],
)
def test_a_wrong_key_file_is_refused(
    saved: Path, cache: Path, tmp_path: Path, content: str | None, match: str
) -> None:
    path = tmp_path / "k.secret"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ort.InvalidArgument, match=match):
        start(saved, cache, **{KEY: str(path)})


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_key_that_others_can_read_is_a_warning(
    saved: Path, cache: Path, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    os.chmod(secret, 0o644)  # noqa: PTH101 - a text
    with caplog.at_level(logging.WARNING):
        start(saved, cache, **{KEY: secret})
    assert f"chmod 600 {secret}" in caplog.text


def test_the_key_s_name_says_nothing_and_the_key_is_not_shown(secret: str) -> None:
    found = read_secret(secret)
    assert found.secret.hex() not in f"{found!r}{found.name}"


def trusted(saved: Path, tmp_path: Path) -> Any:
    key = make_key(tmp_path, "ship")
    return key, {TRUST.replace(".", "__"): str(key.public)}


def test_a_cache_without_a_key_is_not_used_where_signatures_are_asked_for(
    saved: Path, cache: Path, tmp_path: Path
) -> None:
    """Anybody who can write to it would go around the signature."""
    key, entries = trusted(saved, tmp_path)
    key.sign(saved)
    state, reason, _ = start(saved, cache, **entries)
    assert state == "off"
    assert "session.ep_context_cache_key is not" in reason
    assert not cache.exists()


def test_a_hit_does_not_go_around_the_signature(
    saved: Path, cache: Path, secret: str, tmp_path: Path
) -> None:
    key, entries = trusted(saved, tmp_path)
    start(saved, cache, **{KEY: secret})
    assert_untrusted(lambda: start(saved, cache, **{KEY: secret}, **entries))
    key.sign(saved)
    assert start(saved, cache, **{KEY: secret}, **entries)[0] == "stored"
    assert start(saved, cache, **{KEY: secret}, **entries)[0] == "hit"
    saved.write_bytes(sandwich().SerializeToString())
    assert_untrusted(lambda: start(saved, cache, **{KEY: secret}, **entries))


@needs_posix
def test_the_probe_believes_a_cache_that_its_user_alone_can_write_to(
    saved: Path, cache: Path
) -> None:
    start(saved, cache, session__ep_context_probe="auto")
    state, _, _ = start(saved, cache, session__ep_context_probe="auto")
    assert state == "hit"
    assert not (cache / "probes").exists()
    with ort.InferenceSession(saved, options(cache), providers=[OPENVINO]) as session:
        assert session.load_report().cache.state == "hit"


def test_the_mac_of_an_entry_is_the_one_that_every_version_computes(secret: str) -> None:
    """Put together from BLAKE3 and json alone; FORMAT goes up where this has to change."""
    made = CacheEntry(
        identity={"model": "ab"},
        model=CacheObject(f"{'0' * 64}.onnx", 5),
        payloads=(CacheObject(f"{'1' * 64}.bin", 7),),
        source="/m.onnx",
        created="2026-01-01T00:00:00+00:00",
    )
    content = json.loads(made.seal(read_secret(secret)).to_bytes())
    mac = content.pop("mac")
    del content["check"]
    context = "ort_lite 2026-11-22 model cache record v1"
    key = blake3(read_secret(secret).secret, derive_key_context=context).digest()
    spelled = json.dumps(["entry", content], sort_keys=True).encode()
    assert mac == blake3(spelled, key=key).hexdigest()
