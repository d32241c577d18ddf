"""Inputs of free shapes: one that comes again with its shape goes to memory of the request."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_models import model

import ort_lite as ort
from eps.openvino.partition import SHARED_FROM, OpenVINOPartition
from eps.openvino.sdk.binding import BindingRequest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OPENVINO = ["OpenVINOExecutionProvider"]
LARGE = (SHARED_FROM // 16, 4)
W = {"w": np.array([[2, 3, 4, 5]], np.float32)}
Values = dict[str, np.ndarray[Any, Any]]


def sums() -> Any:
    """y = w * Relu(a) + b and z = a - b, both [rows, 4]."""
    nodes = [
        helper.make_node("Relu", ["a"], ["positive"]),
        helper.make_node("Mul", ["positive", "w"], ["r"]),
        helper.make_node("Add", ["r", "b"], ["y"]),
        helper.make_node("Sub", ["a", "b"], ["z"]),
    ]
    shape = ["rows", 4]
    return model(nodes, [("a", shape), ("b", shape)], [("y", shape), ("z", shape)], W)


@pytest.fixture(params=["compiled", "reloaded"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> ort.InferenceSession:
    """Through OpenVINO's extension, and through its C API."""
    options, content = ort.SessionOptions(), sums().SerializeToString()
    options.add_session_config_entry("session.specialize_after_runs", "0")
    if request.param == "compiled":
        return ort.InferenceSession(content, options, providers=OPENVINO)
    path, writing = tmp_path / "m_ctx.onnx", ort.SessionOptions()
    writing.add_session_config_entry("ep.context_enable", "1")
    writing.add_session_config_entry("ep.context_file_path", str(path))
    ort.InferenceSession(content, writing, providers=OPENVINO).close()
    return ort.InferenceSession(path, options, providers=OPENVINO)


def partition(session: ort.InferenceSession) -> OpenVINOPartition:
    (part,) = session._present().prepared.partitions
    assert isinstance(part.compiled, OpenVINOPartition)
    return part.compiled


def feed(shape: tuple[int, ...], seed: int) -> Values:
    draw = np.random.default_rng(seed).standard_normal
    return {name: draw(shape).astype(np.float32) for name in "ab"}


def agrees(session: ort.InferenceSession, values: Values) -> None:
    expected = ReferenceEvaluator(sums()).run(None, values)
    for mine, theirs in zip(session.run(None, values), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_both_roads_are_tried(session: ort.InferenceSession, request: Any) -> None:
    agrees(session, feed((2, 4), 0))
    inner = partition(session)._idle[0]._request
    assert isinstance(inner, BindingRequest) == ("compiled" in request.node.name)


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 4)] * 6,
        [(2, 4), (2, 4), (7, 4), (7, 4), (7, 4), (2, 4), (2, 4), (2, 4)],
        [(2, 4), (3, 4), (2, 4), (3, 4)],
        [(2, 4), (2, 4), (2, 4), (0, 4), (0, 4), (0, 4), (2, 4), (2, 4)],
        [(2, 4), (2, 4), (2, 4), (1, 4), (1, 4), (1, 4), (2, 4)],
        [(2, 4), (2, 4), (2, 4), LARGE, LARGE, LARGE, (2, 4), (2, 4), (2, 4)],
    ],
    ids=["one", "two in turns", "alternating", "empty", "one row", "large"],
)
def test_every_run_reads_its_own_inputs(
    session: ort.InferenceSession, shapes: Sequence[tuple[int, ...]]
) -> None:
    given = []
    for seed, shape in enumerate(shapes):
        values = feed(shape, seed)
        agrees(session, values)
        for value in values.values():
            value[...] = np.nan  # the next run must neither read nor write what the caller has
            given.append(value)
    assert all(np.isnan(value).all() for value in given)


def test_only_a_shape_that_comes_again_is_copied(session: ort.InferenceSession) -> None:
    copied = []
    for seed, shape in enumerate([(2, 4), (2, 4), (2, 4), (4, 4), (2, 4), (4, 4), LARGE, LARGE]):
        before = partition(session).copy_counts().bytes_to_device
        agrees(session, feed(shape, seed))
        copied.append(partition(session).copy_counts().bytes_to_device - before)
    assert copied == [0, 64, 64, 0, 0, 0, 0, 0]


def test_views_are_copied_in_their_order(session: ort.InferenceSession) -> None:
    for seed in range(4):
        a, b = feed((4, 8), seed).values()
        agrees(session, {"a": a.T[::2], "b": np.asfortranarray(b.T[::2])})


def test_an_array_that_cannot_be_written_to_is_read(session: ort.InferenceSession) -> None:
    for seed in range(4):
        values = feed((2, 4), seed)
        for value in values.values():
            value.flags.writeable = False
        agrees(session, values)


def test_threads_do_not_share_memory(session: ort.InferenceSession) -> None:
    def work(seed: int) -> None:
        for turn in range(20):
            agrees(session, feed((2 + turn % 2, 4), 100 * seed + turn))
            agrees(session, feed((2 + turn % 2, 4), 100 * seed + turn + 50))

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, seed) for seed in range(4)]:
            done.result()
