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


def recompile_hint(onnx_model_filename: str, *, provider: str = "", option: str = "") -> str:
    """How to compile a model again; ends with a command that can be pasted, if its name is known.

    Args:
        onnx_model_filename: As an EPContext node records it; "" for none. It is not trusted: a
            name that could hide in a terminal or pass for an option is left out.
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
    command = f"ort-lite compile {quote_argument(name)}"
    if option:
        command += f" -e {provider.removesuffix(_SUFFIX).lower()} -O {quote_argument(option)}"
    return f"compile the model again on this machine{needs}: {command}"


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
    exc: FormatError, onnx_model_filename: str, *, recorded: HardwareIdentity | None = None
) -> InvalidGraph:
    """The session's error for a problem of a file, with a hint."""
    again = recompile_hint(onnx_model_filename)
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
