"""Partitions that fit on a device one by one and not together: refused before memory is taken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_models import model

import ort_lite as ort
from ctx_formats.errors import Reason
from eps.opencl import FACTORY
from eps.opencl.cl.devices import Device
from eps.opencl.compile import compile_partition
from ort_lite.ep import DeviceFigures, SupportsDeviceFigures

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
OPENCL = ["OpenCLExecutionProvider"]
WIDTH = 256
WEIGHT_BYTES = WIDTH * WIDTH * 4
X = np.random.default_rng(3).standard_normal((4, WIDTH)).astype(np.float32)


def two_partitions() -> Any:
    """Two products with a weight of 256 KiB each, and between them a node without a kernel."""
    random = np.random.default_rng(1)
    weights = {
        name: random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / WIDTH for name in "vw"
    }
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Unique", ["a"], ["b"], sorted=1),
        helper.make_node("ReduceMax", ["b"], ["m"], keepdims=0),
        helper.make_node("Add", ["a", "m"], ["c"]),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    shape = [4, WIDTH]
    return model(nodes, [("x", shape)], [("y", shape)], weights)


def options(**entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    for key, value in {"session.placement": "all", **entries}.items():
        made.add_session_config_entry(key, value)
    return made


@pytest.fixture(scope="module")
def keeper() -> ort.InferenceSession:
    """A session that keeps the context of the device open, where allocations are counted."""
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    made = model(nodes, [("x", [2])], [("y", [2])], {})
    return ort.InferenceSession(made.SerializeToString(), providers=OPENCL)


def figures(keeper: ort.InferenceSession) -> DeviceFigures:
    ep = keeper._present().eps[0]
    assert isinstance(ep, SupportsDeviceFigures)
    return ep.device_figures()


def leave_room_for_one(monkeypatch: pytest.MonkeyPatch, keeper: ort.InferenceSession) -> None:
    room = figures(keeper).live + WEIGHT_BYTES * 3 // 2
    monkeypatch.setattr(Device, "global_mem_size", property(lambda _: room))


def open_session(source: Any, chosen: ort.SessionOptions) -> ort.InferenceSession:
    return ort.InferenceSession(source, chosen, providers=OPENCL, enable_fallback=0)


@pytest.mark.parametrize("shared", ["0", "1"])
def test_a_compile_is_refused(
    shared: str, keeper: ort.InferenceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = figures(keeper)
    leave_room_for_one(monkeypatch, keeper)
    chosen = options(**{"session.use_env_allocators": shared})
    words = r"needs \d+ bytes on .*\((\d+) for weights, .* in 2 partitions\)"
    with pytest.raises(ort.EPFail, match=words) as caught:
        open_session(two_partitions().SerializeToString(), chosen)
    match = re.search(words, str(caught.value))
    assert match is not None
    assert int(match[1]) >= 2 * WEIGHT_BYTES
    after = figures(keeper)
    assert (after.live, after.peak) == (before.live, before.peak)


def test_a_reload_is_refused(
    tmp_path: Path, keeper: ort.InferenceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.onnx"
    entries = {"ep.context_enable": "1", "ep.context_file_path": str(path)}
    open_session(two_partitions().SerializeToString(), options(**entries)).close()
    before = figures(keeper)
    with monkeypatch.context() as patch:
        leave_room_for_one(patch, keeper)
        with pytest.raises(ort.InvalidGraph, match=r"bytes on .* in 2 partitions\)") as caught:
            open_session(path, options())
        assert caught.value.reason == Reason.VENDOR_REJECTED
        after = figures(keeper)
        assert (after.live, after.peak) == (before.live, before.peak)
    expected = ReferenceEvaluator(two_partitions()).run(None, {"x": X})[0]
    with open_session(path, options()) as session:
        np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, rtol=1e-4, atol=1e-5)


def test_programs_that_fit_are_generated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = []
    real = compile_partition.compile_partition

    def counted(graph: Any, *rest: Any) -> Any:
        graphs.append(graph)
        return real(graph, *rest)

    monkeypatch.setattr(compile_partition, "compile_partition", counted)
    expected = ReferenceEvaluator(two_partitions()).run(None, {"x": X})[0]
    with open_session(two_partitions().SerializeToString(), options()) as session:
        partitions = session._present().prepared.partitions
        assert [one.ep.name for one in partitions].count(OPENCL[0]) == 2
        np.testing.assert_allclose(session.run(None, {"x": X})[0], expected, rtol=1e-4, atol=1e-5)
    assert len(graphs) == 2
