"""Compiling, exporting and tuning go through PyOpenCL, which gives what the C API gives."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from opencl_devices import all_devices
from small_models import model

import ort_lite as ort
from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Buffer, Context, Event, Queue
from eps.opencl.cl.program import Program
from eps.opencl.runtime import compiler_binding as bindings
from eps.opencl.runtime.compiler_binding import CApi, compiler_binding
from eps.opencl.runtime.launch import Launch
from eps.opencl.runtime.pyopencl_binding import PyOpenCL

if TYPE_CHECKING:
    from pathlib import Path

    from eps.opencl.runtime.device import ListedDevice

OPENCL = "OpenCLExecutionProvider"
SOURCE = "__kernel void fill(__global int* x) { x[get_global_id(0)] = 7; }"
WRONG = SOURCE.replace("7", "seven")


@pytest.fixture(params=all_devices(), ids=lambda found: found.name)
def context(request: pytest.FixtureRequest) -> Context:
    listed: ListedDevice = request.param
    return Context(listed.device)


def built(context: Context, source: str = SOURCE) -> Program:
    program = Program.of_source(context, source)
    PyOpenCL().build(program, "-cl-mad-enable -w")
    return program


def test_a_program_that_it_builds_runs_on_the_c_api_s_handles(context: Context) -> None:
    queue, buffer = Queue(context, profiling=True), Buffer.of(context, CL_MEM_READ_WRITE, 64)
    Launch(queue, built(context), "fill", [buffer], (16, 1)).enqueue()
    found = np.zeros(16, np.int32)
    queue.read(found, buffer)
    assert found.tolist() == [7] * 16


def test_it_reads_the_binary_that_the_c_api_reads(context: Context) -> None:
    program = built(context)
    assert PyOpenCL().read_binary(program) == CApi().read_binary(program)


def test_it_times_as_the_c_api_does(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[tuple[int, int]] = []

    class Both(PyOpenCL):
        def nanoseconds(self, event: Event) -> int:
            times.append((super().nanoseconds(event), CApi().nanoseconds(event)))
            return times[-1][0]

    monkeypatch.setattr("eps.opencl.runtime.compiler_binding.compiler_binding", Both)
    queue, buffer = Queue(context, profiling=True), Buffer.of(context, CL_MEM_READ_WRITE, 64)
    Launch(queue, built(context), "fill", [buffer], (16, 1)).run_timed()
    ((mine, theirs),) = times
    assert mine == theirs > 0


def test_a_refusal_has_the_compiler_s_log(context: Context) -> None:
    with pytest.raises(OpenCLError, match="seven") as refused:
        built(context, WRONG)
    with pytest.raises(OpenCLError) as expected:
        CApi().build(Program.of_source(context, WRONG), "-cl-mad-enable -w")
    assert refused.value.status == expected.value.status


def test_what_is_not_there_is_an_error_of_opencl(context: Context) -> None:
    program = built(context)
    program.release()
    with pytest.raises(OpenCLError, match="clGetProgramInfo"):
        PyOpenCL().read_binary(program)
    queue, buffer = Queue(context), Buffer.of(context, CL_MEM_READ_WRITE, 64)
    launch = Launch(queue, built(context), "fill", [buffer], (16, 1))
    with pytest.raises(OpenCLError, match="clGetEventProfilingInfo"):
        launch.run_timed()


def test_compiling_exporting_and_tuning_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    class Counting(PyOpenCL):
        def build(self, program: Program, options: str) -> None:
            calls.append("build")
            super().build(program, options)

        def read_binary(self, program: Program) -> bytes:
            calls.append("read_binary")
            return super().read_binary(program)

        def nanoseconds(self, event: Event) -> int:
            calls.append("nanoseconds")
            return super().nanoseconds(event)

    monkeypatch.setattr(bindings, "compiler_binding", Counting)
    weights = np.ones((256, 256), np.float32)
    proto = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", [64, 256])], [("y", [64, 256])], {"w": weights},
    )  # fmt: skip
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(tmp_path / "m_ctx.onnx"))
    options = {"tuning": "fast", "tuning_cache": str(tmp_path / "tuning")}
    ort.InferenceSession(proto.SerializeToString(), config, providers=[(OPENCL, options)]).close()
    assert set(calls) == {"build", "read_binary", "nanoseconds"}
    calls.clear()
    ort.InferenceSession(tmp_path / "m_ctx.onnx", providers=[OPENCL]).close()
    assert calls == []


def test_a_broken_package_is_a_warning_and_the_c_api_builds(
    monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    monkeypatch.delitem(sys.modules, "eps.opencl.runtime.pyopencl_binding", raising=False)
    monkeypatch.delattr("eps.opencl.runtime.pyopencl_binding", raising=False)
    compiler_binding.cache_clear()
    try:
        assert isinstance(compiler_binding(), CApi)
        assert "PyOpenCL cannot be imported" in caplog.text
    finally:
        bindings.compiler_binding.cache_clear()
