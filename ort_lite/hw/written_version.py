"""Whether a JSON file of `ort-lite hw` is of a version that is read here."""

from __future__ import annotations

import msgspec

from ort_lite.hw.errors import MatrixError


class _Versioned(msgspec.Struct, frozen=True):
    schema_version: int


def require_version(content: bytes, known: int) -> None:
    """Find a file of another version before its fields are looked at.

    Raises:
        MatrixError: It is; says which version is read here.
        msgspec.MsgspecError: It has no `schema_version`.
    """
    found = msgspec.json.decode(content, type=_Versioned).schema_version
    if found != known:
        raise MatrixError(
            f"schema_version is {found}, and this ort_lite reads {known}; read it with the "
            "ort_lite that wrote it, or run the rows again"
        )
