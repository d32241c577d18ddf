"""Memory of a session as it reports it, against sizes that the model has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from small_models import mlp, model

import ort_lite as ort
from eps.opencl import FACTORY as OPENCL_FACTORY
from eps.opencl.cl.devices import Device
from ort_lite.ep import SupportsDeviceFigures, SupportsMemoryReport

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 256
WEIGHT_BYTES = WIDTH * WIDTH * 4
W = np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32)
needs_opencl = pytest.mark.skipif(bool(OPENCL_FACTORY.missing()), reason="no OpenCL here")


def product(rows: int | str = 512) -> Any:
    """y = Tanh(Exp(x @ w)); a result of 512 rows has 512 KiB."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Exp", ["xw"], ["e"]),
        helper.make_node("Tanh", ["e"], ["y"]),
    ]
    return model(nodes, [("x", [rows, WIDTH])], [("y", [rows, WIDTH])], {"w": W})


def session_on(ep: str, made: Any = None, **options: str) -> ort.InferenceSession:
    content = (made or product()).SerializeToString()
    return ort.InferenceSession(content, providers=[(f"{ep}ExecutionProvider", options)])


def feed(rows: int = 512) -> dict[str, Any]:
    return {"x": np.zeros((rows, WIDTH), np.float32)}


def test_the_cpu_ep_reports_constants_and_its_pool() -> None:
    session = session_on("CPU")
    (before,) = session.memory_report().devices
    assert (before.provider, before.weights, before.arena) == (
        "CPUExecutionProvider",
        WEIGHT_BYTES,
        0,
    )
    outputs = session.run(None, feed())
    (after,) = session.memory_report().devices
    assert after.arena is not None
    assert after.arena >= outputs[0].nbytes
    assert after.peak is not None
    assert after.peak >= after.arena + WEIGHT_BYTES
    assert (after.bound_tensors, after.device_live) == (0, None)
    session.run(None, feed())
    session.run(None, feed())
    (later,) = session.memory_report().devices
    assert later.arena == session.memory_report().devices[0].arena
    del outputs


@needs_opencl
def test_opencl_reports_weights_arena_and_tensors() -> None:
    with session_on("OpenCL") as session:
        (before,) = session.memory_report().devices
        assert before.weights is not None
        assert before.arena is not None
        assert WEIGHT_BYTES <= before.weights < 2 * WEIGHT_BYTES
        assert before.arena >= 2 * 512 * WIDTH * 4, "an input and an output are in it"
        assert before.device_live is not None
        assert before.device_live >= before.weights + before.arena
        value = ort.OrtValue.ortvalue_from_numpy(feed()["x"], "opencl", 0)
        (bound,) = session.memory_report().devices
        assert bound.bound_tensors - before.bound_tensors == 512 * WIDTH * 4
        assert bound.device_live == before.device_live + 512 * WIDTH * 4
        assert bound.peak is not None
        assert bound.peak >= before.weights + before.arena + 512 * WIDTH * 4
        del value
        (after,) = session.memory_report().devices
        assert after.device_live == before.device_live
        assert after.device_peak == bound.device_peak
        context = session._present().eps[0]
        assert isinstance(context, SupportsDeviceFigures)
        figures = context
        session.close()
        with pytest.raises(ort.EPFail, match="used after it was released"):
            figures.device_figures()


@needs_opencl
def test_memory_of_a_closed_session_goes_back() -> None:
    keeper = session_on("OpenCL", mlp())
    live = keeper.memory_report().devices[0].device_live
    session = session_on("OpenCL")
    assert live is not None
    more = keeper.memory_report().devices[0].device_live
    assert more is not None
    assert more >= live + WEIGHT_BYTES
    session.close()
    assert keeper.memory_report().devices[0].device_live == live


@needs_opencl
def test_programs_for_several_shapes_count_together() -> None:
    with session_on("OpenCL", product("rows"), other_shapes="compile") as session:
        session.run(None, feed(512))
        (one,) = session.memory_report().devices
        session.run(None, feed(256))
        (two,) = session.memory_report().devices
    assert one.arena is not None
    assert two.arena is not None
    assert two.arena >= one.arena + 2 * 256 * WIDTH * 4
    assert two.weights == one.weights


@needs_opencl
def test_runs_left_to_others_have_an_entry_of_their_own() -> None:
    with session_on("OpenCL", product("rows"), other_shapes="auto") as session:
        session.run(None, feed(512))
        (before,) = session.memory_report().devices
        left = session.run(None, feed(256))
        opencl, on_cpu = session.memory_report().devices
    assert (opencl.weights, opencl.arena) == (before.weights, before.arena)
    assert (on_cpu.provider, on_cpu.weights) == ("CPUExecutionProvider", WEIGHT_BYTES)
    assert on_cpu.arena is not None
    assert on_cpu.arena >= left[0].nbytes


@needs_opencl
def test_a_compile_for_shapes_behind_a_session_reports_both() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_compile_in_background", "1")
    providers: list[Any] = ["OpenCLExecutionProvider"]
    content = product("rows").SerializeToString()
    with ort.InferenceSession(content, options, providers=providers) as session:
        session.background_compile(timeout=None)
        session.run(None, feed())
        session.background_compile(timeout=None)
        opencl, on_cpu = session.memory_report().devices
    assert opencl.weights is not None
    assert opencl.weights >= WEIGHT_BYTES
    assert on_cpu.weights == WEIGHT_BYTES


@needs_opencl
@pytest.mark.parametrize(
    ("property_name", "words"),
    [
        ("global_mem_size", r"needs \d+ bytes on .*\(\d+ for weights, \d+ for the values"),
        ("max_mem_alloc_size", r"needs \d+ bytes in one piece for the values inside it"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_memory_is_allocated(
    property_name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = session_on("OpenCL", mlp())
    live = keeper.memory_report().devices[0].device_live
    peak = keeper.memory_report().devices[0].device_peak
    assert live is not None
    room = live + WEIGHT_BYTES if property_name == "global_mem_size" else WEIGHT_BYTES
    monkeypatch.setattr(Device, property_name, property(lambda _: room))
    with pytest.raises(ort.EPFail, match=words):
        ort.InferenceSession(
            product().SerializeToString(),
            providers=["OpenCLExecutionProvider"],
            enable_fallback=0,
        )
    (after,) = keeper.memory_report().devices
    assert (after.device_live, after.device_peak) == (live, peak)


def test_openvino_says_what_it_cannot_know(tmp_path: Path) -> None:
    compiled = session_on("OpenVINO")
    (device,) = compiled.memory_report().devices
    assert (device.weights, device.arena, device.bound_tensors) == (None, None, 0)
    assert any("does not report the memory of its plug-ins" in note for note in device.notes)
    path, writing = tmp_path / "m_ctx.onnx", ort.SessionOptions()
    writing.add_session_config_entry("ep.context_enable", "1")
    writing.add_session_config_entry("ep.context_file_path", str(path))
    made = product().SerializeToString()
    ort.InferenceSession(made, writing, providers=["OpenVINOExecutionProvider"]).close()
    reloaded = ort.InferenceSession(path, providers=["OpenVINOExecutionProvider"])
    (device,) = reloaded.memory_report().devices
    assert device.weights is not None
    assert WEIGHT_BYTES <= device.weights <= 2 * WEIGHT_BYTES


def test_the_report_as_json_and_as_text() -> None:
    session = session_on("CPU", mlp())
    report = session.memory_report()
    content = json.loads(json.dumps(report.to_json()))
    (device,) = content["devices"]
    assert device["weights_bytes"] == (4 * 3 + 3) * 4
    assert content["process_peak_bytes"] is None or content["process_peak_bytes"] > 0
    assert str(report).startswith("CPUExecutionProvider: weights 60, arena 0, bound tensors 0")
    assert session._present().prepared.partitions[0].compiled is not None
    assert isinstance(session._present().prepared.partitions[0].compiled, SupportsMemoryReport)
    session.close()
    with pytest.raises(ort.Fail, match="closed"):
        session.memory_report()
