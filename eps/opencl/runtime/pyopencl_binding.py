"""Compiling through PyOpenCL, on the handles of the C API: both use one loader."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pyopencl as cl

from eps.opencl.cl.c_api import OpenCLError
from ort_lite.ep import uncut

if TYPE_CHECKING:
    from eps.opencl.cl.objects import Event
    from eps.opencl.cl.program import Program
    from ort_lite.ep import Owned


class PyOpenCL:
    """See CompilerBinding; each object of PyOpenCL's retains the handle while it is used.

    Python's exit waits for these calls: PyOpenCL's extension module asks for the GIL in them.
    """

    def build(self, program: Program, options: str) -> None:
        """See CompilerBinding. A program that has a handle passes PyOpenCL's own cache by."""
        with uncut:
            _build(program, options)

    def read_binary(self, program: Program) -> bytes:
        """See CompilerBinding."""
        with uncut:
            return _read_binary(program)

    def nanoseconds(self, event: Event) -> int:
        """See CompilerBinding."""
        with uncut:
            return _nanoseconds(event)


def _build(program: Program, options: str) -> None:
    # Intel's compiler always says something, of which PyOpenCL warns.
    warnings.filterwarnings("ignore", category=cl.CompilerWarning)
    made = cl.Program.from_int_ptr(_handle_of(program))
    try:
        made.build(options)
    except cl.Error as exc:
        (device,) = made.get_info(cl.program_info.DEVICES)
        build_log = made.get_build_info(device, cl.program_build_info.LOG)
        raise OpenCLError("clBuildProgram", exc.code, build_log) from exc


def _read_binary(program: Program) -> bytes:
    try:
        made = cl.Program.from_int_ptr(_handle_of(program))
        (binary,) = made.get_info(cl.program_info.BINARIES)
    except cl.Error as exc:
        raise OpenCLError("clGetProgramInfo", exc.code) from exc
    return bytes(binary)


def _nanoseconds(event: Event) -> int:
    try:
        times = cl.Event.from_int_ptr(_handle_of(event)).profile
        return int(times.end - times.start)
    except cl.Error as exc:
        raise OpenCLError("clGetEventProfilingInfo", exc.code) from exc


def _handle_of(owned: Owned) -> int:
    handle = owned.handle
    return int(getattr(handle, "value", handle))
