"""The driver's program: built from source, or loaded from a binary that it made itself."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from eps.opencl.c_api import SUCCESS, query_function
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.opencl.blueprint import Blueprint

Program = cl._cl._Program  # noqa: SLF001 - cl.Program keeps binaries on disk, undigested
"""The driver's program, without pyopencl's cache."""


_WAKING: dict[str, Thread] = {}
"""By platform: a driver loads its compiler once in a process."""
_waking = Lock()


def build(context: cl.Context, source: str, options: str) -> Program:
    """Compile a program's source; after `wake_compiler` is done, where it was called.

    Intel's driver numbers a process's builds and writes the number into its binaries: builds in the
    same order give the same bytes.

    Raises:
        EPFail: The driver refuses it; has the beginning of the build log.
    """
    waking = _WAKING.get(_platform(context))
    if waking is not None:
        waking.join()
    return _built(context, source, options)


def _built(context: cl.Context, source: str, options: str) -> Program:
    with opencl_errors("building a program"):
        program = Program(context, source)
        _build(program, options, context.devices)
    return program


def wake_compiler(context: cl.Context) -> None:
    """Have the driver load its compiler while the caller goes on to what it will compile.

    A driver's first build takes 0.3 s (Intel's) to 2 s (PoCL's) longer than any later one.
    Nothing is reported: what the driver refuses here, `build` says why.
    """
    with _waking:
        platform = _platform(context)
        if platform not in _WAKING:
            thread = Thread(target=_wake, args=(context,), name="ort_lite OpenCL compiler")
            thread.start()
            _WAKING[platform] = thread


def _wake(context: cl.Context) -> None:
    with suppress(EPFail):
        _built(context, "__kernel void wake(__global int* x) { x[0] = 0; }", "")


def _platform(context: cl.Context) -> str:
    return str(context.devices[0].platform.name)


def load(context: cl.Context, device: cl.Device, binary: bytes, blueprint: Blueprint) -> Program:
    """A program from the driver's own binary; the caller has checked digest and identity.

    Raises:
        EPFail: The driver refuses it.
    """
    with opencl_errors("loading a program binary"):
        program = Program(context, [device], [binary])
        _build(program, blueprint.options, [device])
    return program


def read_binary(program: Program) -> bytes:
    """The driver's binary; PoCL's is complete only after each kernel has run.

    PoCL compiles each kernel again for it, which takes seconds, and pyopencl would let no other
    thread run meanwhile.

    Raises:
        EPFail: The driver gives none.
    """
    query = query_function("clGetProgramInfo")
    if query is None:
        with opencl_errors("reading a program binary"):
            return bytes(program.get_info(cl.program_info.BINARIES)[0])  # type: ignore[index]
    size = ctypes.c_size_t()
    _answer(query, program, cl.program_info.BINARY_SIZES, size)
    data = ctypes.create_string_buffer(size.value)
    _answer(query, program, cl.program_info.BINARIES, ctypes.c_void_p(ctypes.addressof(data)))
    return data.raw


def _answer(query: Callable[..., int], program: Program, parameter: int, value: Any) -> None:  # noqa: ANN401 - ctypes' own types
    """Have a value filled in, of the one device that a program is for."""
    status = query(program.int_ptr, parameter, ctypes.sizeof(value), ctypes.byref(value), None)
    if status != SUCCESS:
        raise EPFail(f"OpenCL failed while reading a program binary: status {status}")


def _build(program: Program, options: str, devices: Sequence[cl.Device]) -> None:
    """As pyopencl's `build`, without its warning for a log, which Intel's compiler always writes.

    The filter that would silence it belongs to the whole process, and threads build at once.
    """
    try:
        program._build(options=options.encode(), devices=devices)  # noqa: SLF001 - see above
    except cl.Error as exc:
        logs = [program.get_build_info(device, cl.program_build_info.LOG) for device in devices]
        text = "\n".join(map(str, logs))
        record = cl._cl._ErrorRecord(msg=text, code=exc.code, routine=exc.routine)  # noqa: SLF001 - see above
        raise cl.RuntimeError(record) from exc
