"""ONNX Runtime's status codes, and one exception class for each."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ctx_formats.errors import Reason
    from ctx_formats.identity import HardwareIdentity


class StatusCode(IntEnum):
    """Error codes of onnxruntime_error_code.h."""

    OK = 0
    FAIL = 1
    INVALID_ARGUMENT = 2
    NO_SUCHFILE = 3
    NO_MODEL = 4
    ENGINE_ERROR = 5
    RUNTIME_EXCEPTION = 6
    INVALID_PROTOBUF = 7
    MODEL_LOADED = 8
    NOT_IMPLEMENTED = 9
    INVALID_GRAPH = 10
    EP_FAIL = 11
    MODEL_LOAD_CANCELED = 12
    MODEL_REQUIRES_COMPILATION = 13
    NOT_FOUND = 14
    DEVICE_RESET = 15


class OrtLiteError(Exception):
    """Base of all errors of ort_lite; its text is ONNX Runtime's.

    Attributes:
        message: The text without the "[ONNXRuntimeError] : ..." prefix.
        code: The status code of the class.
    """

    code: ClassVar[StatusCode] = StatusCode.FAIL

    def __init__(self, message: str) -> None:
        # Names in models may hold half a surrogate pair, and printing the text must not fail.
        self.message = message.encode("utf-8", "backslashreplace").decode("utf-8")
        super().__init__(self.message)

    def __str__(self) -> str:
        """`[ONNXRuntimeError] : <number> : <NAME> : <message>`; people match on it."""
        return f"[ONNXRuntimeError] : {self.code.value} : {self.code.name} : {self.message}"


class Fail(OrtLiteError):
    """FAIL: what has no code of its own."""


class InvalidArgument(OrtLiteError):
    """INVALID_ARGUMENT: an argument of a call is wrong."""

    code = StatusCode.INVALID_ARGUMENT


class BindingError(InvalidArgument, RuntimeError):
    """INVALID_ARGUMENT: of an object around sessions, such as OrtValue or OrtMemoryInfo.

    onnxruntime's binding raises a plain RuntimeError there, and code written for it catches that.
    """


class UnknownProvider(InvalidArgument, RuntimeError):
    """INVALID_ARGUMENT: no execution provider of this name is installed.

    onnxruntime's binding raises RuntimeError for a name that it has never heard of, and
    INVALID_ARGUMENT for one that its build lacks; code written for it may catch either.
    """

    def __str__(self) -> str:
        """Without a status, as RuntimeError's there."""
        return self.message


class NoSuchFile(OrtLiteError):
    """NO_SUCHFILE: a model file is not there."""

    code = StatusCode.NO_SUCHFILE


class NoModel(OrtLiteError):
    """NO_MODEL: a session has no model."""

    code = StatusCode.NO_MODEL


class EngineError(OrtLiteError):
    """ENGINE_ERROR: kept for code that catches it."""

    code = StatusCode.ENGINE_ERROR


class RuntimeException(OrtLiteError):
    """RUNTIME_EXCEPTION: a kernel failed while running."""

    code = StatusCode.RUNTIME_EXCEPTION


class InvalidProtobuf(OrtLiteError):
    """INVALID_PROTOBUF: bytes that are not an ONNX model."""

    code = StatusCode.INVALID_PROTOBUF


class ModelLoaded(OrtLiteError):
    """MODEL_LOADED: kept for code that catches it."""

    code = StatusCode.MODEL_LOADED


class NotImplemented(OrtLiteError):  # noqa: A001 - ONNX Runtime's public name
    """NOT_IMPLEMENTED: no execution provider of the session can run a node."""

    code = StatusCode.NOT_IMPLEMENTED


class InvalidGraph(OrtLiteError):
    """INVALID_GRAPH: a malformed graph, or a compiled payload that must not run here.

    Attributes:
        reason: For a compiled payload, the word of the closed list; None for a graph.
        recorded: The identity the payload was compiled for, where it says so.
        present: The identity of the machine at hand, where it was looked at.
        hint: The command or setting that mends it, or "".
    """

    code = StatusCode.INVALID_GRAPH

    def __init__(
        self,
        message: str,
        *,
        reason: Reason | None = None,
        recorded: HardwareIdentity | None = None,
        present: HardwareIdentity | None = None,
        hint: str = "",
    ) -> None:
        self.reason = reason
        self.recorded = recorded
        self.present = present
        self.hint = hint
        super().__init__(message)


class EPFail(OrtLiteError):
    """EP_FAIL: an execution provider's SDK or driver failed."""

    code = StatusCode.EP_FAIL


class ModelLoadCanceled(OrtLiteError):
    """MODEL_LOAD_CANCELED: the caller asked to stop."""

    code = StatusCode.MODEL_LOAD_CANCELED


def load_canceled() -> ModelLoadCanceled:
    """The error for a caller who asked to stop, with ONNX Runtime's text."""
    return ModelLoadCanceled("Model loading was canceled due to user request.")


class ModelRequiresCompilation(OrtLiteError):
    """MODEL_REQUIRES_COMPILATION: an EP would compile, and the session forbids it."""

    code = StatusCode.MODEL_REQUIRES_COMPILATION


class NotFound(OrtLiteError):
    """NOT_FOUND: something asked for by name is not there."""

    code = StatusCode.NOT_FOUND


class DeviceReset(EPFail):
    """DEVICE_RESET: the device hung, was reset or removed; a session may go on without it."""

    code = StatusCode.DEVICE_RESET
