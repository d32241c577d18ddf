"""Hints in errors: what a user can do about a compiled model that does not run here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FileChangedError, Reason
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from ctx_formats.errors import FormatError
    from ctx_formats.identity import HardwareIdentity

_MAX_NAME = 255
_SUFFIX = "ExecutionProvider"


def recompile_hint(
    onnx_model_filename: str, context_path: str | None, *, provider: str = "", option: str = ""
) -> str:
    """How to compile a model again; ends with a command that can be pasted, if its name is known.

    The command replaces the context model that was loaded, and has a folder in it if the original
    model is in the folder of that context model.

    Args:
        onnx_model_filename: As an EPContext node records it; "" for none. It is not trusted: a
            name that could hide in a terminal or pass for an option is left out.
        context_path: Path of the context model; None if it is not a file of the user's.
        provider: Full name of the execution provider that `option` is for.
        option: Provider option as "key=value" that the compile needs; "" for none.
    """
    name = onnx_model_filename
    shown = name and name.isprintable() and len(name) <= _MAX_NAME and not name.startswith("-")
    needs = f" with provider option {option}" if option else ""
    if not shown:
        return (
            "compile the original ONNX model again on this machine"
            f"{needs} (this file does not record its name; see ort-lite compile --help)"
        )
    command = f"ort-lite compile {_model_and_output(name, context_path)} --force"
    if option:
        command += f" -e {provider.removesuffix(_SUFFIX).lower()} -O {quote_argument(option)}"
    return f"compile the model again on this machine{needs}: {command}"


def _model_and_output(name: str, context_path: str | None) -> str:
    """Arguments that name the original model, and the context model unless it is the default."""
    from pathlib import Path  # noqa: PLC0415 - lazy: rare

    if context_path is None or not context_path.isprintable():
        return quote_argument(name)
    model, context = Path(name), Path(context_path)
    neighbour = context.parent / name
    if model.name == name and neighbour != context and neighbour.is_file():
        model = neighbour
    argument = quote_argument(str(model))
    if model.with_name(f"{model.stem}_ctx.onnx").absolute() == context.absolute():
        return argument
    return f"{argument} -o {quote_argument(context_path)}"


def quote_argument(text: str) -> str:
    """`text` as one argument of a command, in this system's shells.

    In double quotes, which cmd, PowerShell and POSIX shells read alike, where they suffice. On
    Windows, a `$` or a backtick leaves PowerShell's single quotes, which cmd does not know.
    """
    import os  # noqa: PLC0415 - lazy: rare
    import re  # noqa: PLC0415 - lazy: rare
    import shlex  # noqa: PLC0415 - lazy: rare

    on_windows = os.name == "nt"
    if re.fullmatch(r"[\w+=:./\\-]+" if on_windows else r"[\w+=:./-]+", text, re.ASCII):
        return text
    if not set(text) & set('"$`' if on_windows else '"$`\\!'):
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'" if on_windows else shlex.quote(text)


def refusal_of(
    exc: FormatError,
    onnx_model_filename: str,
    context_path: str | None,
    *,
    recorded: HardwareIdentity | None = None,
) -> InvalidGraph:
    """The session's error for a problem of a file, with a hint; see `recompile_hint`."""
    again = recompile_hint(onnx_model_filename, context_path)
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
