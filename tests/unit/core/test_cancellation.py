"""A cancellation stops loading and compiling on every road, at every step, and leaves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from context_models import OPENVINO
from small_models import feed, sandwich

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS = 40
"""Questions after which every road has come to its end."""


@dataclass
class Countdown:
    """Stands for a thread that cancels between two questions: the first `left` get a no."""

    left: int

    @property
    def requested(self) -> bool:
        self.left -= 1
        return self.left < 0


def options(cancel: Countdown, **entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_provider(OPENVINO, {})
    made.add_session_config_entry("session.placement", "all")
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    made._cancel = cancel  # type: ignore[assignment]  # it has all that is asked for
    return made


def session(path: Path, cancel: Countdown, **entries: str) -> list[Any]:
    with ort.InferenceSession(path, options(cancel, **entries)) as made:
        return made.run(None, feed(sandwich()))


def plain(folder: Path, cancel: Countdown) -> object:
    return session(folder / "m.onnx", cancel)


def writing(folder: Path, cancel: Countdown) -> object:
    return session(folder / "m.onnx", cancel, ep__context_enable="1")


def writing_embedded(folder: Path, cancel: Countdown) -> object:
    entries = {"ep__context_enable": "1", "ep__context_embed_mode": "1"}
    return session(folder / "m.onnx", cancel, **entries)


def sharing(folder: Path, cancel: Countdown) -> object:
    entries = {"ep__context_enable": "1", "ep__share_ep_contexts": "1"}
    return session(folder / "m.onnx", cancel, ep__stop_share_ep_contexts="1", **entries)


def caching(folder: Path, cancel: Countdown) -> object:
    return session(folder / "m.onnx", cancel, session__model_cache=str(folder / "cache"))


def reloading(folder: Path, cancel: Countdown) -> object:
    return session(folder / "c.onnx", cancel)


def compiler(folder: Path, cancel: Countdown, **arguments: Any) -> ort.ModelCompiler:
    return ort.ModelCompiler(options(cancel), folder / "m.onnx", **arguments)


def to_file(folder: Path, cancel: Countdown) -> object:
    compiler(folder, cancel).compile_to_file(folder / "out.onnx")
    return None


def to_bytes(folder: Path, cancel: Countdown) -> object:
    return compiler(folder, cancel, embed_compiled_data_into_model=True).compile_to_bytes()


def to_stream(folder: Path, cancel: Countdown) -> object:
    got: list[bytes] = []
    try:
        compiler(folder, cancel, embed_compiled_data_into_model=True).compile_to_stream(got.append)
    except ort.ModelLoadCanceled:
        assert not got
        raise
    return b"".join(got)


def files(folder: Path) -> dict[str, bytes]:
    """All files with their content, without the cache's locks and digests of sources."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {"locks", "sources"} & set(path.parts)
    }


ROADS = [
    plain,
    writing,
    writing_embedded,
    sharing,
    caching,
    reloading,
    to_file,
    to_bytes,
    to_stream,
]


@pytest.mark.parametrize("road", ROADS)
def test_it_stops_at_each_step_and_leaves_nothing(
    tmp_path: Path, road: Callable[[Path, Countdown], object]
) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    never = Countdown(1 << 30)
    if road is reloading:
        compiler(tmp_path, never).compile_to_file(tmp_path / "c.onnx")
    before = files(tmp_path)
    for step in range(STEPS):
        try:
            road(tmp_path, Countdown(step))
        except ort.ModelLoadCanceled:
            assert files(tmp_path) == before, f"canceled at question {step}"
        else:
            break
    else:
        pytest.fail("it goes on asking")
    assert step > 1, "a road has several steps"


@pytest.mark.parametrize("road", [caching, sharing])
def test_the_next_one_works(tmp_path: Path, road: Callable[[Path, Countdown], object]) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    expected = plain(tmp_path, Countdown(1 << 30))
    with pytest.raises(ort.ModelLoadCanceled):
        road(tmp_path, Countdown(2))
    np.testing.assert_equal(road(tmp_path, Countdown(1 << 30)), expected)


def test_a_hit_of_the_cache_can_be_canceled(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    caching(tmp_path, Countdown(1 << 30))
    before = files(tmp_path)
    for step in range(3):
        with pytest.raises(ort.ModelLoadCanceled):
            caching(tmp_path, Countdown(step))
        assert files(tmp_path) == before
    caching(tmp_path, Countdown(1 << 30))


@pytest.mark.parametrize("step", range(8))
def test_a_compile_in_the_background_can_be_canceled(tmp_path: Path, step: int) -> None:
    (tmp_path / "m.onnx").write_bytes(sandwich().SerializeToString())
    entries = {"session__ep_compile_in_background": "1"}
    expected = session(tmp_path / "m.onnx", Countdown(1 << 30))
    try:
        made = ort.InferenceSession(tmp_path / "m.onnx", options(Countdown(step), **entries))
    except ort.ModelLoadCanceled:
        return
    with made:
        assert made.background_compile(None).state in ("canceled", "done")
        found = made.run(None, feed(sandwich()))
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5)


def test_a_model_that_cannot_be_read_says_so_all_the_same(tmp_path: Path) -> None:
    """As in ONNX Runtime, which asks once the model is read."""
    with pytest.raises(ort.NoSuchFile):
        ort.InferenceSession(tmp_path / "nosuch.onnx", options(Countdown(0)))


def test_the_flag_can_be_taken_back() -> None:
    used = ort.SessionOptions()
    used.set_load_cancellation_flag(True)
    data = sandwich().SerializeToString()
    with pytest.raises(ort.ModelLoadCanceled, match="canceled due to user request"):
        ort.InferenceSession(data, used, providers=["CPUExecutionProvider"])
    used.set_load_cancellation_flag(False)
    ort.InferenceSession(data, used, providers=["CPUExecutionProvider"]).close()
