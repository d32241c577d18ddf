"""One argument of a printed command, quoted for the shells of this system."""

from __future__ import annotations


def is_quotable(text: str) -> bool:
    """Whether all shells of this system read `quote_argument(text)` as `text`.

    On Windows, cmd does not know the single quotes in which PowerShell reads a double quote, a `$`
    or a backtick as it is.
    """
    import os  # noqa: PLC0415 - lazy: rare

    return os.name != "nt" or set(text).isdisjoint('"$`')


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
