"""The option other_shapes: what a run does whose shapes have no program."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from opencl_devices import cpu_names, device_names
from small_models import model

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.runtime import program
from eps.opencl.runtime.new_shapes import RUNS_ELSEWHERE

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto

OPENCL = "OpenCLExecutionProvider"
PLATFORMS = device_names()
SIDE = 512
SETS = f"x[1,{SIDE}];x[3,{SIDE}]"


def product() -> ModelProto:
    """A product of free rows with 1 MiB of weights."""
    weights = np.random.default_rng(3).standard_normal((SIDE, SIDE)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    return model(nodes, [("x", ["rows", SIDE])], [("y", ["rows", SIDE])], {"w": weights})


def rows(n: int) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.random.default_rng(n).standard_normal((n, SIDE)).astype(np.float32)}


def written(path: Path, device: str, other_shapes: str) -> int:
    """Compiles into a context there; bytes of its payload."""
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(path))
    options = {"device": device, "reshape_input": SETS, "other_shapes": other_shapes}
    proto = product().SerializeToString()
    ort.InferenceSession(proto, config, providers=[(OPENCL, options)]).close()
    return path.with_name(f"{path.stem}_{OPENCL}.bin").stat().st_size


@pytest.mark.parametrize("device", PLATFORMS)
def test_the_context_leaves_out_the_weights_of_the_model(
    tmp_path: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels have theirs laid out anew; runs give what the whole context gives."""
    whole = written(tmp_path / "whole.onnx", device, "compile")
    small = written(tmp_path / "small.onnx", device, "refuse")
    assert whole - small > SIDE * SIDE * 4 - 4096

    def built(*arguments: Any) -> Any:
        raise AssertionError(f"built after all: {arguments}")

    monkeypatch.setattr(program, "build", built)
    providers = [(OPENCL, {"device": device})]
    with (
        ort.InferenceSession(tmp_path / "whole.onnx", providers=providers) as right,
        ort.InferenceSession(tmp_path / "small.onnx", providers=providers) as mine,
    ):
        for n in (1, 3):
            np.testing.assert_array_equal(mine.run(None, rows(n))[0], right.run(None, rows(n))[0])
        assert mine.explain().partitions[0].notes[0].endswith("; other shapes are refused")
        assert "refused" not in right.explain().partitions[0].notes[0]


def test_a_context_refuses_other_shapes_and_names_its_own(tmp_path: Path) -> None:
    written(tmp_path / "m.onnx", PLATFORMS[0], "refuse")
    providers = [(OPENCL, {"device": PLATFORMS[0], "max_variants": "1"})]
    with ort.InferenceSession(tmp_path / "m.onnx", providers=providers) as session:
        with pytest.raises(ort.InvalidArgument, match=r"x\[2, 512\].*x\[1, 512\]; x\[3, 512\]"):
            session.run(None, rows(2))
        for n in (1, 3, 1):  # beyond max_variants a program of the payload is loaded again
            assert session.run(None, rows(n))[0].shape == (n, SIDE)


def test_the_session_that_compiles_refuses_them_too() -> None:
    options = {"reshape_input": SETS, "other_shapes": "refuse"}
    proto = product().SerializeToString()
    with ort.InferenceSession(proto, providers=[(OPENCL, options)]) as session:
        assert session.run(None, rows(3))[0].shape == (3, SIDE)
        with pytest.raises(ort.InvalidArgument, match="other_shapes=refuse"):
            session.run(None, rows(2))


def test_without_sets_there_would_be_nothing_to_run() -> None:
    with pytest.raises(ort.InvalidArgument, match="needs reshape_input"):
        FACTORY.create({"other_shapes": "refuse"})


def test_sets_that_leave_a_dimension_free_are_refused() -> None:
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    free: list[int | str] = ["rows", 4]
    proto = model(nodes, [("x", free), ("z", ["more", 4])], [("y", ["most", 4])], {})
    options = {"reshape_input": "x[1,4]", "other_shapes": "refuse"}
    with pytest.raises(ort.EPFail, match="leaves dimensions of x, z free"):
        ort.InferenceSession(proto.SerializeToString(), providers=[(OPENCL, options)])


def session_for(device: str, other_shapes: str = "auto", **entries: str) -> ort.InferenceSession:
    """Of the plain model; `entries` have `_` for the dots of their keys."""
    config = ort.SessionOptions()
    for key, value in entries.items():
        config.add_session_config_entry(key.replace("__", "."), value)
    options = {"device": device, "other_shapes": other_shapes}
    proto = product().SerializeToString()
    return ort.InferenceSession(proto, config, providers=[(OPENCL, options)])


def programs(session: ort.InferenceSession) -> int:
    """How many the one partition has."""
    (part,) = session.explain().partitions
    assert part.ep == OPENCL
    return int(next(note for note in part.notes if " programs: " in note).split(" of ")[0])


@pytest.mark.parametrize("device", cpu_names())  # GPUs compile for every shape at once
def test_new_shapes_get_a_program_when_they_have_come_often(device: str) -> None:
    """All but the first; before that the CPU EP answers, with the same numbers."""
    expected = {n: ReferenceEvaluator(product()).run(None, rows(n))[0] for n in (1, 2, 3)}
    with session_for(device) as session:

        def count_after(n: int) -> int:
            (answer,) = session.run(None, rows(n))
            np.testing.assert_allclose(answer, expected[n], rtol=1e-4, atol=1e-4)
            return programs(session)

        for n in (1, *[2, 3] * RUNS_ELSEWHERE, 1):
            assert count_after(n) == 1
        assert [count_after(n) for n in (2, 1, 3, 2)] == [2, 2, 3, 3]
        (part,) = session.explain().partitions
    assert any(f"x[3, {SIDE}] (new shapes, left to others)" in note for note in part.notes)


@pytest.mark.parametrize("device", PLATFORMS)
@pytest.mark.parametrize(
    ("other_shapes", "entries"),
    [
        ("compile", {}),
        ("auto", {"session__placement": "all"}),
        ("auto", {"session__disable_cpu_ep_fallback": "1"}),
    ],
)
def test_all_shapes_get_a_program_where_nothing_may_be_left(
    device: str, other_shapes: str, entries: dict[str, str]
) -> None:
    with session_for(device, other_shapes, **entries) as session:
        for n in (1, 2, 3):
            session.run(None, rows(n))
        assert programs(session) == 3


@pytest.mark.parametrize("device", cpu_names())
def test_a_reloaded_context_leaves_new_shapes_to_others_too(tmp_path: Path, device: str) -> None:
    written(tmp_path / "c.onnx", device, "compile")
    with ort.InferenceSession(
        tmp_path / "c.onnx", providers=[(OPENCL, {"device": device})]
    ) as made:
        for n in (1, *[2] * RUNS_ELSEWHERE, 3):
            feed = rows(n)
            expected = ReferenceEvaluator(product()).run(None, feed)[0]
            np.testing.assert_allclose(made.run(None, feed)[0], expected, rtol=1e-4, atol=1e-4)
            assert programs(made) == 2
        made.run(None, rows(2))
        assert programs(made) == 3


@pytest.mark.parametrize("device", PLATFORMS)
def test_a_model_cache_keeps_programs_for_as_many_shapes_as_are_kept(
    tmp_path: Path, device: str
) -> None:
    key = "session__ep_context_cache"
    cache = {key: "1", f"{key}_dir": str(tmp_path)}
    with session_for(device, **cache) as session:
        for n in (1, 2, 3):
            session.run(None, rows(n))
        assert programs(session) == 3


@pytest.mark.parametrize("device", PLATFORMS)
def test_threads_with_new_shapes_get_right_answers(device: str) -> None:
    reference = ReferenceEvaluator(product())
    feeds = [rows(n) for n in (1, 2, 3, 4, 5)] * 4
    with session_for(device) as session, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda feed: session.run(None, feed)[0], feeds))
        assert programs(session) <= 5
    for feed, answer in zip(feeds, answers, strict=True):
        expected = reference.run(None, feed)[0]
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)
