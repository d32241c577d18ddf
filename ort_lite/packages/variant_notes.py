"""executor_info["ort_lite"] of a package's variant: its role, its options, digests of its files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_formats.directory_digest import FileDigest
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.package_manifest import ORT_LITE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.package_manifest import PackageVariant
    from ctx_formats.strict_json import JsonValue

FORMAT = 1
COMPILED, SOURCE = "compiled", "source"

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantNotes:
    """The facts that ort_lite adds to a variant.

    Attributes:
        role: "source" for the model that all others were compiled from, else "compiled".
        provider_options: Open the device that the variant was compiled for.
        files: By name relative to the variant's folder; shared folders have digests of their own.
    """

    role: str = COMPILED
    provider_options: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, FileDigest] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The JSON object, sorted."""
        files: dict[str, JsonValue] = {
            name: {"size": digest.size, "sha256": digest.sha256}
            for name, digest in sorted(self.files.items())
        }
        options: dict[str, JsonValue] = dict(sorted(self.provider_options.items()))
        content: dict[str, JsonValue] = {"format": FORMAT, "role": self.role, "files": files}
        return content | ({"provider_options": options} if options else {})


def read_notes_of(variant: PackageVariant) -> VariantNotes | None:
    """The notes of a variant that ort_lite wrote; None for one of another producer.

    Raises:
        FormatError: They are malformed, or of a newer format.
    """
    content = variant.executor_info.get(ORT_LITE)
    if content is None:
        return None
    where = f"variant '{variant.name[:80]}'.executor_info['{ORT_LITE}']"
    version, role = content.get("format"), content.get("role")
    if type(version) is not int or version != FORMAT:
        raise FormatError(f"{where}.format", repr(version)[:40], str(FORMAT))
    if role not in (COMPILED, SOURCE):
        raise FormatError(f"{where}.role", repr(role)[:40], f"{COMPILED} or {SOURCE}")
    options, files = content.get("provider_options", {}), content.get("files", {})
    if not isinstance(options, dict) or not isinstance(files, dict):
        raise FormatError(where, "provider_options or files of another type", "objects")
    return VariantNotes(
        role=str(role),
        provider_options={key: _text(value, where) for key, value in options.items()},
        files={name: _digest(value, where) for name, value in files.items()},
    )


def _text(value: JsonValue, where: str) -> str:
    if not isinstance(value, str):
        raise FormatError(f"{where}.provider_options", type(value).__name__, "text")
    return value


def _digest(value: JsonValue, where: str) -> FileDigest:
    size = value.get("size") if isinstance(value, dict) else None
    digest = value.get("sha256") if isinstance(value, dict) else None
    if type(size) is not int or size < 0 or not isinstance(digest, str):
        raise FormatError(f"{where}.files", repr(value)[:80], "{size, sha256}")
    if not _DIGEST.fullmatch(digest):
        raise FormatError(f"{where}.files", repr(digest)[:80], "64 hex digits")
    return FileDigest(size=size, sha256=digest)
