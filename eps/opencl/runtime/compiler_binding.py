"""What compiling needs of OpenCL, which two bindings to it offer on the same handles.

PyOpenCL serves compiling, exporting, tuning and profiling; a reload never asks for it, because
importing it takes longer than the reload (docs/adr/0044-compiling-through-pyopencl.md).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

from ort_lite.ep import get_logger, uncut

if TYPE_CHECKING:
    from eps.opencl.cl.objects import Event
    from eps.opencl.cl.program import Program

log = get_logger(__name__)


class CompilerBinding(Protocol):
    """Building programs, reading what the driver made of them, and timing their kernels."""

    def build(self, program: Program, options: str) -> None:
        """Compile and link a program of source.

        Raises:
            OpenCLError: The driver refuses it; has the compiler's log.
        """
        ...

    def read_binary(self, program: Program) -> bytes:
        """The driver's form of a program that is built.

        Raises:
            OpenCLError: The driver gives none.
        """
        ...

    def nanoseconds(self, event: Event) -> int:
        """Execution time of a completed command of a profiling queue.

        Raises:
            OpenCLError: The driver recorded none.
        """
        ...


class CApi:
    """OpenCL's C API, where PyOpenCL's Python code cannot be imported."""

    def build(self, program: Program, options: str) -> None:
        """See CompilerBinding."""
        program.build(options)

    def read_binary(self, program: Program) -> bytes:
        """See CompilerBinding."""
        return program.binary()

    def nanoseconds(self, event: Event) -> int:
        """See CompilerBinding."""
        return event.nanoseconds()


@cache
def compiler_binding() -> CompilerBinding:
    """PyOpenCL; the C API with a warning where the package is broken."""
    try:
        with uncut:  # Python's exit waits for the extension module to be ready
            from eps.opencl.runtime.pyopencl_binding import PyOpenCL  # noqa: PLC0415 - lazy: reload
    except ImportError as exc:
        log.warning("PyOpenCL cannot be imported (%s); programs are built through the C API", exc)
        return CApi()
    return PyOpenCL()
