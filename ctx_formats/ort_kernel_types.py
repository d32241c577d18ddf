"""The KernelTypeStrResolver of an ORT format file, decoded.

An operator's identifier is the text `domain:op_type:since_version`; kernel_type_str_resolver.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.kernel_types import KernelTypes
from ctx_formats.ort_model_error import OrtModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.flatbuffer import Table
    from ctx_formats.kernel_types import Places

_SUFFIX = "Invalid ORT format model."
_MOST_DIGITS = 9


def read_kernel_types(
    table: Table | None,
    versions: Mapping[tuple[str, str], int | None],
    *,
    has_defaults: bool,
) -> KernelTypes | None:
    """The operators of a file's nodes.

    Args:
        table: KernelTypeStrResolver; None if the file has none.
        versions: Schema version of each operator by its nodes, None where they differ.
        has_defaults: See KernelTypes.

    Returns:
        None if the file does not say of every operator which version it is.

    Raises:
        OrtModelError: An identifier cannot be parsed, or is there twice.
        FormatError: It lies outside the file.
    """
    places: dict[tuple[str, str, int], Mapping[str, Places]] = {}
    if table is not None:
        for entry in table.tables(0, "op_kernel_type_str_args"):
            op = _parse_op(entry.text(0, "op_id"))
            if op in places:
                raise _duplicate_error("op id", ":".join(map(str, op)))
            places[op] = _read_places(entry)
    known = {op: version for op, version in versions.items() if version is not None}
    return KernelTypes(known, places, has_defaults) if len(known) == len(versions) else None


def _parse_op(text: str) -> tuple[str, str, int]:
    parts = text.split(":")
    if len(parts) != 3:
        message = f"Invalid OpIdentifier string: {text} {_SUFFIX}"
        raise OrtModelError("op_id", repr(text), "'<domain>:<type>:<version>'", message)
    domain, op_type, version = parts
    if not (version.isascii() and version.isdigit() and len(version) <= _MOST_DIGITS):
        message = f"Failed to parse since_version from {version} {_SUFFIX}"
        raise OrtModelError("op_id", repr(text), "a number as the version", message)
    return domain, op_type, int(version)


def _read_places(entry: Table) -> Mapping[str, Places]:
    names: dict[str, Places] = {}
    for argument in entry.tables(1, "kernel_type_str_args"):
        name = argument.text(0, "kernel_type_str")
        if name in names:
            raise _duplicate_error("kernel type str", name)
        names[name] = tuple(
            (not place.octet(0, "arg_type"), place.word(1, "index"))
            for place in argument.tables(1, "args")
        )
    return names


def _duplicate_error(what: str, text: str) -> OrtModelError:
    message = f"Duplicate entry for {what}: {text} {_SUFFIX}"
    return OrtModelError("kernel_type_str_resolver", f"{text!r} twice", "once", message)
