"""Errors about a compiled model that does not run here, each with what a user can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FileChangedError, Reason
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from ctx_formats.errors import FormatError
    from ctx_formats.identity import HardwareIdentity
    from ort_lite.model.loader import LoadedModel


def recompile_hint(
    loaded: LoadedModel | None,
    onnx_model_filename: str,
    *,
    source: str = "",
    present: HardwareIdentity | None = None,
    option: str = "",
) -> str:
    """How to compile a model again; ends with a command that can be pasted, if its name is known.

    The command replaces the context model that was loaded, and has a folder in it if the original
    model is in the folder of that context model. It repeats what the context model records of its
    compile. See `ort_lite.context.recompile`.

    Args:
        loaded: The context model; None if it is not known.
        onnx_model_filename: As an EPContext node records it; "" for none. It is not trusted: a
            name that could hide in a terminal or pass for an option is left out.
        source: Full name of the execution provider whose payload does not run.
        present: The device that this execution provider has opened; None if not known.
        option: Provider option as "key=value" that the compile needs; "" for none.
    """
    from ort_lite.context.recompile import describe_recompile  # noqa: PLC0415 - lazy: rare

    return describe_recompile(
        loaded, onnx_model_filename, source=source, present=present, option=option
    )


def refusal_of(
    exc: FormatError,
    onnx_model_filename: str,
    loaded: LoadedModel | None,
    *,
    recorded: HardwareIdentity | None = None,
) -> InvalidGraph:
    """The session's error for a problem of a file, with a hint; see `recompile_hint`."""
    again = recompile_hint(loaded, onnx_model_filename)
    if isinstance(exc, FileChangedError):
        again = "load it again when nothing writes to it any more"
    hint = {
        Reason.MISSING_PAYLOAD: (
            "put the payload file next to the model, or name the model's folder through "
            f"ep.context_file_path, or {again}"
        ),
        Reason.UNSAFE_PATH: (
            "keep the payload next to the model; get the files from a source you trust"
        ),
    }.get(exc.reason, again)
    if exc.reason is Reason.UNTRUSTED:
        from ort_lite.trust.verification import MEND  # noqa: PLC0415 - lazy: rare

        hint = MEND
    return InvalidGraph(
        f"{exc} (reason: {exc.reason}). To fix this: {hint}",
        reason=exc.reason,
        recorded=recorded,
        hint=hint,
    )
