"""How a session goes on without an execution provider that is not here, as ONNX Runtime does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ort_lite.ep.interface import NotInstalled
from ort_lite.providers import catalog
from ort_lite.providers.warn_user import warn_user
from ort_lite.status import UnknownProvider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.status import EPFail, OrtLiteError

STARS = "***************"


def report_missing(
    name: str, error: OrtLiteError, left: Sequence[str], *, enabled: bool, requested: object
) -> str | None:
    """Report a provider that was asked for and that a session goes on without.

    A provider that is known and not installed is a UserWarning, whatever `enable_fallback` is.
    An unknown name, and a provider that cannot be opened, are errors unless it is
    enabled; then the error is printed, as by ONNX Runtime.

    Args:
        name: Of the provider.
        error: Why it is missing.
        left: The providers that the session goes on with.
        enabled: The session's `enable_fallback`.
        requested: The session's `providers`, as the user gave them.

    Returns:
        A line for `explain()`; None if the session must fail with `error`.
    """
    absent = isinstance(error, UnknownProvider | NotInstalled)
    known = name in catalog.get_all_providers()
    if absent:
        warn_user(_not_available(name, error, left))
    if not (absent and known):
        if not enabled:
            return None
        _print_error(error, requested, left)
    if not absent:
        warn_user(f"{name} cannot be opened: {error.message} {_goes_on_with(left)}")
    return f"not opened: {name}: {error.message} {_goes_on_with(left)}"


def report_unusable(error: ValueError, requested: object) -> str:
    """Report that a session goes on with the default EP, as its `providers` could not be read.

    Returns:
        A line for `explain()`.
    """
    left = [catalog.DEFAULT_PROVIDER]
    _print_error(error, requested, left)
    note = f"the session's providers are unusable: {error} {_goes_on_with(left)}"
    warn_user(note)
    return note


def report_failed_run(error: EPFail, failed: Sequence[str], left: Sequence[str]) -> str:
    """Report that a session goes on with `left` after a run failed; for `explain()`, too."""
    _print(f"EP Error: {error} using {list(failed)}", _retry_text(left))
    note = f"a run on {', '.join(failed)} failed: {error.message} {_goes_on_with(left)}"
    warn_user(note)
    return note


def _print_error(error: Exception, providers: object, left: Sequence[str]) -> None:
    head = f"{STARS} EP Error {STARS}"
    _print(head, f"EP Error {error} when using {providers}", _retry_text(left), "*" * 40)


def _print(*lines: str) -> None:
    """Print onnxruntime's lines, to stderr: stdout holds the program's own results."""
    sys.stderr.write("\n".join(lines) + "\n")


def _retry_text(left: Sequence[str]) -> str:
    return f"Falling back to {list(left)} and retrying."


def _not_available(name: str, error: OrtLiteError, left: Sequence[str]) -> str:
    available = ", ".join(catalog.get_available_providers())
    why = f" {error.message}." if isinstance(error, NotInstalled) else ""
    return (
        f"Specified provider '{name}' is not in available provider names. "
        f"Available providers: '{available}'.{why} {_goes_on_with(left)}"
    )


def _goes_on_with(left: Sequence[str]) -> str:
    return f"The session goes on with: {', '.join(left)}."
