"""Reads a model package's manifest, components and executor information from its folder."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.mapped_file import open_descriptor, stamp_of
from ctx_formats.package_manifest import (
    COMPONENT_FILE,
    INSTALLED,
    MANIFEST,
    ORT,
    PORTABLE,
    OrtInfo,
    PackageComponent,
    PackageManifest,
    PackageVariant,
)
from ctx_formats.package_paths import (
    ASSET_URI,
    PackagePaths,
    require_file,
    require_folder,
    unsafe_path_error,
)
from ctx_formats.strict_json import read_json_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.strict_json import JsonValue

    PathLike = str | os.PathLike[str]

MAX_JSON_BYTES = 4 << 20
"""Most bytes of one JSON file."""
MAX_TOTAL_BYTES = 16 << 20
"""Most bytes of all JSON files that a package names; one that is named twice counts twice."""
MAX_VARIANTS = 4096
"""Most variants of a package; each is looked up on the disk."""
KNOWN_MAJOR, KNOWN_MINOR = 1, 0
DEVICES = ("cpu", "gpu", "npu")
PATH_OPTIONS = (
    "session.model_external_initializers_file_folder_path",
    "ep.context_file_path",
    "ep.context_source_model_path",
)
"""Session entries of a variant whose values are paths in the package."""
OUTPUT_OPTIONS = (
    "session.optimized_model_filepath",
    "session.enable_profiling",
    "session.debug_layout_transformation",
    "session.collect_node_memory_stats_to_file",
)
"""Session entries that write files, which ONNX Runtime refuses in a package."""

_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
_TOP = (
    *("schema_version", "package_name", "package_version", "description", "layout"),
    *("components", "shared_assets", "additional_metadata"),
)
_COMPONENT = ("component_name", "variants", "additional_metadata")
_VARIANT = (
    *("variant_directory", "ep", "device", "compatibility_string", "executor_info"),
    "additional_metadata",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFolder:
    """A model package on disk, whose JSON files were read.

    Attributes:
        root: Its folder, absolute, without symlinks.
        manifest: With the paths that it leads to.
        paths: Resolves what else it names.
        manifest_bytes: Of manifest.json as it was read.
    """

    root: str
    manifest: PackageManifest
    paths: PackagePaths
    manifest_bytes: bytes


def read_package(path: PathLike) -> PackageFolder:
    """Read the package in a folder; models and payloads are not opened.

    Raises:
        FormatError: It is not a package that ONNX Runtime 1.31 opens, or one of the cases that
            docs/formats/model_package.md lists as refused by ort_lite alone. Reason unsafe_path
            for a path that leads out, missing_payload for one that leads to nothing.
    """
    try:
        root = os.path.realpath(os.fspath(path))
    except (OSError, ValueError) as exc:
        raise unsafe_path_error("package", f"{path!s}: {exc}", "a folder") from exc
    require_folder(root, "package")
    return _Reader(root).read()


class _Reader:
    """Reads one package; counts the bytes of its JSON files."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._bytes = 0
        self._variants = 0
        self._strict = True
        self._paths = PackagePaths(root=root)

    def read(self) -> PackageFolder:
        data = self._read_file(os.path.join(self._root, MANIFEST), MANIFEST)
        content = read_json_object(data, MANIFEST, limit=MAX_JSON_BYTES)
        version = self._read_version(content)
        self._require_known(content, _TOP, MANIFEST)
        layout = _text(content, "layout", MANIFEST) or PORTABLE
        if layout not in (PORTABLE, INSTALLED):
            raise FormatError(f"{MANIFEST}.layout", repr(layout[:80]), f"{PORTABLE} or {INSTALLED}")
        assets = _texts(content, "shared_assets", MANIFEST)
        wrong = next((uri for uri in assets if not ASSET_URI.fullmatch(uri)), None)
        if wrong is not None:
            raise FormatError(
                f"{MANIFEST}.shared_assets", repr(wrong[:100]), "sha256:<64 hex digits>"
            )
        self._paths = PackagePaths(root=self._root, portable=layout == PORTABLE, assets=assets)
        for uri in assets:
            self._paths.asset_folder(uri, f"{MANIFEST}.shared_assets")
        components = content.get("components")
        if not isinstance(components, dict):
            raise FormatError(f"{MANIFEST}.components", _kind(components), "an object")
        manifest = PackageManifest(
            schema_version=version,
            name=_text(content, "package_name", MANIFEST),
            version=_text(content, "package_version", MANIFEST),
            description=_text(content, "description", MANIFEST),
            layout=layout,
            components=tuple(self._read_component(*item) for item in components.items()),
            shared_assets=assets,
            metadata=content.get("additional_metadata"),
        )
        return PackageFolder(
            root=self._root, manifest=manifest, paths=self._paths, manifest_bytes=data
        )

    def _read_version(self, content: Mapping[str, JsonValue]) -> str:
        value = content.get("schema_version")
        text = str(value) if type(value) in (int, str) else ""
        match = _VERSION.fullmatch(text if "." in text else f"{text}.0")
        if match is None:
            raise FormatError(
                f"{MANIFEST}.schema_version", repr(value)[:80], '"<major>.<minor>", such as "1.0"'
            )
        if int(match[1]) != KNOWN_MAJOR:
            raise FormatError(
                f"{MANIFEST}.schema_version", f"major version {match[1]}", f"{KNOWN_MAJOR}"
            )
        self._strict = int(match[2]) <= KNOWN_MINOR
        return match[0]

    def _read_component(self, name: str, value: JsonValue) -> PackageComponent:
        where = f"component '{name[:80]}'"
        folder = self._root
        if isinstance(value, str):
            path = self._paths.resolve(value, self._root, where)
            if os.path.isdir(path):
                path = self._paths.resolve(f"{value}/{COMPONENT_FILE}", self._root, where)
            folder = os.path.dirname(path)
            value = self._read_object(path, where)
        if not isinstance(value, dict):
            raise FormatError(where, _kind(value), "an object or the path of a component file")
        self._require_known(value, _COMPONENT, where)
        _text(value, "component_name", where)
        variants = value.get("variants")
        if not isinstance(variants, dict):
            raise FormatError(f"{where}.variants", _kind(variants), "an object")
        self._variants += len(variants)
        if self._variants > MAX_VARIANTS:
            raise FormatError("variants", f"over {MAX_VARIANTS}", f"at most {MAX_VARIANTS}")
        return PackageComponent(
            name=name,
            variants=tuple(self._read_variant(*item, folder, where) for item in variants.items()),
            metadata=value.get("additional_metadata"),
            folder=folder,
        )

    def _read_variant(
        self, name: str, value: JsonValue, base: str, component: str
    ) -> PackageVariant:
        where = f"variant '{name[:80]}' of {component}"
        if not isinstance(value, dict):
            raise FormatError(where, _kind(value), "an object")
        self._require_known(value, _VARIANT, where)
        device = _text(value, "device", where)
        compatibility = value.get("compatibility_string")
        if compatibility is not None:
            _text(value, "compatibility_string", where)
        directory = value.get("variant_directory")
        folder = self._find_folder(name, directory, base, where)
        info = self._read_executors(value.get("executor_info"), folder or self._root, where)
        variant = PackageVariant(
            name=name,
            directory=_text(value, "variant_directory", where) if directory is not None else None,
            ep=_text(value, "ep", where),
            device=device,
            compatibility_string=str(compatibility) if compatibility is not None else None,
            executor_info=info,
            metadata=value.get("additional_metadata"),
            folder=folder,
        )
        return self._with_ort(variant, where) if ORT in info else variant

    def _find_folder(self, name: str, directory: JsonValue, base: str, where: str) -> str:
        """The variant's folder; "" if none is declared and the default one does not exist."""
        field_name = f"{where}.variant_directory"
        if directory is not None and not isinstance(directory, str):
            raise FormatError(field_name, _kind(directory), "text")
        if directory is None and not name:
            return ""
        folder = self._paths.resolve(name if directory is None else directory, base, field_name)
        if directory is None and not os.path.isdir(folder):
            return ""
        require_folder(folder, field_name)
        return folder

    def _read_executors(
        self, value: JsonValue, folder: str, where: str
    ) -> dict[str, dict[str, JsonValue]]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise FormatError(f"{where}.executor_info", _kind(value), "an object")
        info = {}
        for key, body in value.items():
            field_name = f"{where}.executor_info['{key[:80]}']"
            if isinstance(body, str):
                body = self._read_object(self._paths.resolve(body, folder, field_name), field_name)
            if not isinstance(body, dict):
                raise FormatError(field_name, _kind(body), "an object or the path of a JSON file")
            info[key] = body
        return info

    def _with_ort(self, variant: PackageVariant, where: str) -> PackageVariant:
        """The variant with executor_info["ort"] read; fields that nobody knows are ignored."""
        body, where = variant.executor_info[ORT], f"{where}.executor_info['{ORT}']"
        ort = OrtInfo(
            model_file=_text(body, "model_file", where),
            session_options=_texts(body, "session_options", where),
            provider_options=_texts(body, "provider_options", where),
        )
        base = variant.folder or self._root
        options = dict(ort.session_options)
        for key in OUTPUT_OPTIONS:
            if key in options:
                raise FormatError(
                    f"{where}.session_options", f"'{key}'", "entries that write no files"
                )
        for key in PATH_OPTIONS:
            if key in options:
                options[key] = self._paths.resolve(options[key], base, f"{where}.{key}")
        model = ort.model_file
        return replace(
            variant,
            ort=ort,
            session_options=options,
            model_path=self._paths.resolve(model, base, f"{where}.model_file") if model else "",
        )

    def _require_known(
        self, content: Mapping[str, JsonValue], known: tuple[str, ...], where: str
    ) -> None:
        """Refuse unknown fields, unless the package has a newer minor version."""
        unknown = next((key for key in content if key not in known), None)
        if unknown is not None and self._strict:
            raise FormatError(where, f"the unknown field '{unknown[:80]}'", ", ".join(known))

    def _read_object(self, path: str, where: str) -> dict[str, JsonValue]:
        data = self._read_file(path, where)
        return read_json_object(data, where, limit=MAX_JSON_BYTES)

    def _read_file(self, path: str, where: str) -> bytes:
        """A JSON file, which counts towards the package's total.

        Raises:
            FormatError: It does not exist, is not a regular file, or is too large.
        """
        require_file(path, where)
        descriptor = open_descriptor(path, follow_symlink=False)
        try:
            stamp_of(descriptor, path)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_JSON_BYTES + 1)
        except OSError as exc:
            raise FormatError(
                where, f"{path} cannot be read: {exc}", "a readable file",
                reason=Reason.MISSING_PAYLOAD,
            ) from exc  # fmt: skip
        finally:
            os.close(descriptor)
        self._bytes += len(data)
        if len(data) > MAX_JSON_BYTES or self._bytes > MAX_TOTAL_BYTES:
            raise FormatError(
                where,
                f"over {MAX_JSON_BYTES} bytes, or over {MAX_TOTAL_BYTES} with the files before",
                "less JSON",
            )
        return data


def _text(content: Mapping[str, JsonValue], key: str, where: str) -> str:
    """A field that is text; "" if it is missing."""
    value = content.get(key, "")
    if not isinstance(value, str):
        raise FormatError(f"{where}.{key}", _kind(value), "text")
    return value


def _texts(content: Mapping[str, JsonValue], key: str, where: str) -> dict[str, str]:
    """A field that is an object of texts; empty if it is missing."""
    value = content.get(key, {})
    if not isinstance(value, dict):
        raise FormatError(f"{where}.{key}", _kind(value), "an object")
    texts = {name: text for name, text in value.items() if isinstance(text, str)}
    if len(texts) != len(value):
        raise FormatError(f"{where}.{key}", "a value that is not text", "text")
    return texts


def _kind(value: JsonValue) -> str:
    return "nothing" if value is None else type(value).__name__
