"""The driver's program: built from source, or loaded from a binary that it made itself."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.program import Program
from eps.opencl.program_spec import ENTRY
from eps.opencl.runtime.pocl_target import define_of
from eps.opencl.sdk_errors import opencl_errors, sdk_text
from ort_lite.ep import EPFail, get_logger, start_helper, uncut

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Thread

    from eps.opencl.cl.objects import Context
    from eps.opencl.program_spec import ProgramSpec
    from eps.opencl.runtime.build_processes import BuildProcesses
    from eps.opencl.runtime.compiler_binding import CompilerBinding

log = get_logger(__name__)

_WARM_UPS: dict[str, Thread] = {}
"""By platform: a driver loads its compiler once in a process."""
_warm_up_lock = Lock()


def build(context: Context, source: str, options: str) -> Program:
    """Compile a program's source; after `warm_up_compiler` is done, where it was called.

    Intel's driver numbers a process's builds and writes the number into its binaries: builds in the
    same order give the same bytes.

    Raises:
        EPFail: The driver refuses it; has the beginning of the build log.
    """
    from eps.opencl.runtime.compiler_binding import compiler_binding  # noqa: PLC0415 - lazy: reload

    binding = compiler_binding()
    waking = _WARM_UPS.get(_platform(context))
    if waking is not None:
        waking.join()
    return _build_program(context, source, options, binding)


def build_parts(
    context: Context, spec: ProgramSpec, processes: BuildProcesses | None
) -> list[Program]:
    """A program for each part of a spec, or the one that has all; built by processes if given.

    One program is built by a process, too: that has its compiler ready, and hears no Ctrl-C.

    Raises:
        EPFail: The driver refuses one.
    """
    if not spec.parts and (processes is None or not spec.entry):
        return [build(context, spec.source, spec.options)]
    sources = [part.source for part in spec.parts] or [spec.source]
    binaries: Sequence[bytes | None] = [None] * len(sources)
    if processes is not None:
        binaries = processes.build(sources, spec.options + define_of(context.device))
    return [
        _load_built(context, binary, spec.options) or build(context, source, spec.options)
        for source, binary in zip(sources, binaries, strict=True)
    ]


def _load_built(context: Context, binary: bytes | None, options: str) -> Program | None:
    """The program that another process has built; None if this one's driver does not take it."""
    if binary is None:
        return None
    try:
        program = load(context, binary, options)
        with opencl_errors("making a kernel"):
            program.kernel(ENTRY)
    except EPFail as exc:
        log.info("what a process has built is built in this process: %s", exc.message)
        return None
    program.made_of = binary
    return program


def _build_program(
    context: Context, source: str, options: str, binding: CompilerBinding
) -> Program:
    with opencl_errors("building a program"):
        program = Program.of_source(context, source)
        binding.build(program, options + define_of(context.device))
    return program


def warm_up_compiler(context: Context) -> None:
    """Have the driver load its compiler while the caller goes on to what it will compile.

    A driver's first build takes 0.3 s (Intel's) to 2 s (PoCL's) longer than any later one.
    Nothing is reported: what the driver refuses here, `build` says why.
    """
    with _warm_up_lock:
        platform = _platform(context)
        if platform not in _WARM_UPS:
            thread = start_helper(_warm_up, "ort_lite OpenCL compiler", context)
            if thread is not None:
                _WARM_UPS[platform] = thread


def _warm_up(context: Context) -> None:
    if not uncut.begin():  # and a thread that waited in place of this would be waited for
        return
    try:
        from eps.opencl.runtime.compiler_binding import CApi  # noqa: PLC0415 - lazy: reload
        from eps.opencl.runtime.intel_binary import SMALL  # noqa: PLC0415 - lazy: reload

        with suppress(EPFail):
            _build_program(context, SMALL, "", CApi())  # while Python imports PyOpenCL
    finally:
        uncut.__exit__()


def _platform(context: Context) -> str:
    return context.device.platform.name


def load(context: Context, binary: bytes, options: str) -> Program:
    """A program from the driver's own binary; the caller has checked digest and identity.

    Raises:
        EPFail: The driver refuses it.
    """
    with opencl_errors("loading a program binary"):
        program = Program.of_binary(context, binary)
        program.build(options)
    return program


def read_binary(context: Context, program: Program, kernels: Sequence[str]) -> bytes:
    """The driver's binary; PoCL's is complete only after each kernel has run.

    That of another process is given as it came. Intel's is given with the code of a small program
    next to it, where its driver takes it so.

    Args:
        context: Of the program.
        program: Built.
        kernels: Their names.

    Raises:
        EPFail: The driver gives none.
    """
    if program.made_of is not None:
        return program.made_of
    from eps.opencl.runtime.compiler_binding import compiler_binding  # noqa: PLC0415 - lazy: reload
    from eps.opencl.runtime.intel_binary import SMALL, is_intels, with_code_of  # noqa: PLC0415 - lazy: reload

    with opencl_errors("reading a program binary"):
        binding = compiler_binding()
        binary = binding.read_binary(program)
        if not is_intels(binary):
            return binary
        small = binding.read_binary(_build_program(context, SMALL, "", binding))
    lean = with_code_of(binary, small)
    return lean if lean is not None and _loads(context, lean, kernels) else binary


def _loads(context: Context, binary: bytes, kernels: Sequence[str]) -> bool:
    try:
        program = Program.of_binary(context, binary)
        program.build("")
        for name in kernels:
            program.kernel(name)
    except OpenCLError as exc:
        log.debug("the driver's binary stays as it is: %s", sdk_text(exc))
        return False
    return True
