"""Exit codes of the commands, and the errors that lead to them."""

from __future__ import annotations

from enum import IntEnum

from ctx_formats.errors import Reason
from ort_lite.status import (
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
    OrtLiteError,
)
from ort_lite.status import NotImplemented as NotImplementedByAny


class ExitCode(IntEnum):
    """The exit codes of every command."""

    OK = 0
    DIFFERENT = 1
    """A comparison failed."""
    USAGE = 2
    """The arguments are wrong, or name a missing file."""
    NO_HARDWARE = 3
    """The execution provider, its SDK or its device is not on this machine."""
    INVALID_GRAPH = 4
    """The file is not a valid model, or a compiled model that must not run here."""
    COMPILE_FAILED = 5
    """The model could not be compiled, written or run."""
    VENDOR_CRASHED = 7
    """A child process with vendor code crashed or exceeded its time limit."""
    INTERRUPTED = 130


class CommandError(Exception):
    """A command cannot continue.

    Attributes:
        hint: How to fix it, or "".
    """

    def __init__(self, exit_code: ExitCode, message: str, *, hint: str = "") -> None:
        self.exit_code = exit_code
        self.message = message
        self.hint = hint
        super().__init__(message)


def exit_code_of(exc: OrtLiteError) -> ExitCode:
    """The exit code for an error of the library."""
    if isinstance(exc, InvalidGraph) and exc.reason is Reason.VENDOR_CRASHED:
        return ExitCode.VENDOR_CRASHED
    no_graph = isinstance(exc, InvalidArgument) and exc.message.startswith("No graph was found")
    if no_graph or isinstance(exc, InvalidGraph | InvalidProtobuf):
        return ExitCode.INVALID_GRAPH
    if isinstance(exc, NoSuchFile | InvalidArgument):
        return ExitCode.USAGE
    if isinstance(exc, NotImplementedByAny) and exc.message.startswith("EPContext node"):
        return (
            ExitCode.NO_HARDWARE
        )  # the other case: no execution provider runs a node of a plain model
    return ExitCode.COMPILE_FAILED
