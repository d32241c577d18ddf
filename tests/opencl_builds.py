"""OpenCL programs that a process builds once, for tests of sessions whose kernels are the same."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from eps.opencl.cl.program import Program
from eps.opencl.runtime import program as builds
from eps.opencl.runtime.intel_binary import is_intels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eps.opencl.cl.objects import Context
    from eps.opencl.runtime.compiler_binding import CompilerBinding


@contextmanager
def reused_builds() -> Iterator[None]:
    """Builds each source once with the same options; again it is loaded from the driver's binary.

    Intel's driver takes 0.1 s to build a small program and has no cache of its own; PoCL has one,
    and its binaries are complete only after a run.
    """
    build = builds._build_program
    binaries: dict[tuple[str, str, str], bytes] = {}

    def build_or_load(
        context: Context, source: str, options: str, binding: CompilerBinding
    ) -> Program:
        key = (context.device.platform.name, source, options)
        if key in binaries:
            program = Program.of_binary(context, binaries[key])
            program.build("")
            return program
        program = build(context, source, options, binding)
        binary = binding.read_binary(program)
        if is_intels(binary):
            binaries[key] = binary
        return program

    builds._build_program = build_or_load
    try:
        yield
    finally:
        builds._build_program = build
