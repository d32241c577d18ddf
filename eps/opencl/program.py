"""The driver's program: built from source, or loaded from a binary that it made itself."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyopencl as cl

from eps.opencl.sdk_errors import opencl_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eps.opencl.blueprint import Blueprint

Program = cl._cl._Program  # noqa: SLF001 - cl.Program keeps binaries on disk, undigested
"""The driver's program, without pyopencl's cache."""


def build(context: cl.Context, source: str, options: str) -> Program:
    """Compile a program's source.

    Raises:
        EPFail: The driver refuses it; has the beginning of the build log.
    """
    with opencl_errors("building a program"):
        program = Program(context, source)
        with _quiet():
            program.build(options.encode(), context.devices)
    return program


def load(context: cl.Context, device: cl.Device, binary: bytes, blueprint: Blueprint) -> Program:
    """A program from the driver's own binary; the caller has checked digest and identity.

    Raises:
        EPFail: The driver refuses it.
    """
    with opencl_errors("loading a program binary"):
        program = Program(context, [device], [binary])
        with _quiet():
            program.build(blueprint.options.encode(), [device])
    return program


def read_binary(program: Program) -> bytes:
    """The driver's binary; PoCL's is complete only after each kernel has run."""
    with opencl_errors("reading a program binary"):
        binaries = program.get_info(cl.program_info.BINARIES)
    assert isinstance(binaries, list), "one binary for each device"
    return bytes(binaries[0])


@contextmanager
def _quiet() -> Iterator[None]:
    """Intel's compiler reports success in its log, which pyopencl takes for warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        yield
