"""Values of a model package: components, variants and what ONNX Runtime reads of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.strict_json import JsonValue

MANIFEST = "manifest.json"
COMPONENT_FILE = "component.json"
ASSETS_FOLDER = "shared_assets"
SCHEMA_VERSION = "1.0"
PORTABLE, INSTALLED = "portable", "installed"
ORT = "ort"
"""Key in executor_info of what ONNX Runtime reads."""
ORT_LITE = "ort_lite"
"""Key in executor_info of what ort_lite reads: docs/formats/model_package.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtInfo:
    """The value of executor_info["ort"].

    Attributes:
        model_file: As the package names it; "" if it names none.
        session_options: Entries of a session's configuration; paths as the package has them.
        provider_options: Of the variant's execution provider.
    """

    model_file: str = ""
    session_options: Mapping[str, str] = field(default_factory=dict)
    provider_options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The JSON object, without what is empty."""
        content: dict[str, JsonValue] = {}
        if self.model_file:
            content["model_file"] = self.model_file
        if self.session_options:
            content["session_options"] = dict(self.session_options)
        if self.provider_options:
            content["provider_options"] = dict(self.provider_options)
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageVariant:
    """One form of a component's model.

    Attributes:
        name: Unique in its component.
        directory: As declared, relative to the component's folder; None where the variant's
            name stands in for it.
        ep: Name of the execution provider; "" if none is declared.
        device: "cpu", "gpu", "npu" or "".
        compatibility_string: The execution provider's; None if absent.
        ort: What ONNX Runtime reads; None without executor_info["ort"].
        executor_info: All of it by namespace, "ort" included, as JSON objects.
        metadata: additional_metadata; None if absent.
        folder: Absolute path that the reader found; "" if the default one does not exist.
        model_path: Absolute path that model_file resolves to, which may not exist; "" without
            model_file.
        session_options: As `ort.session_options`, with values that are paths made absolute.
    """

    name: str
    directory: str | None = None
    ep: str = ""
    device: str = ""
    compatibility_string: str | None = None
    ort: OrtInfo | None = None
    executor_info: Mapping[str, dict[str, JsonValue]] = field(default_factory=dict)
    metadata: JsonValue = None
    folder: str = ""
    model_path: str = ""
    session_options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The JSON object of a manifest, in the order of ONNX Runtime's documentation."""
        content: dict[str, JsonValue] = {}
        if self.directory is not None:
            content["variant_directory"] = self.directory
        content |= {k: text for k, text in (("ep", self.ep), ("device", self.device)) if text}
        if self.compatibility_string is not None:
            content["compatibility_string"] = self.compatibility_string
        if self.executor_info:
            content["executor_info"] = dict(self.executor_info)
        if self.metadata is not None:
            content["additional_metadata"] = self.metadata
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageComponent:
    """One model of a package.

    Attributes:
        variants: In the order of the manifest, which breaks ties.
        metadata: additional_metadata; None if absent.
        folder: Absolute path that variants' directories are relative to; "" for a value that was
            not read from a package.
    """

    name: str
    variants: tuple[PackageVariant, ...] = ()
    metadata: JsonValue = None
    folder: str = ""

    def variant(self, name: str) -> PackageVariant | None:
        """The variant of this name; None if absent."""
        return next((one for one in self.variants if one.name == name), None)

    def to_json(self) -> dict[str, JsonValue]:
        """The JSON object of an inline component."""
        content: dict[str, JsonValue] = {
            "variants": {variant.name: variant.to_json() for variant in self.variants}
        }
        if self.metadata is not None:
            content["additional_metadata"] = self.metadata
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageManifest:
    """A package as manifest.json and its component files describe it.

    Attributes:
        schema_version: "<major>.<minor>".
        name: package_name, "" if absent; like `version` and `description`.
        layout: "portable" or "installed".
        components: In the order of the manifest.
        shared_assets: By `sha256:` URI the path that overrides the default one.
        metadata: additional_metadata; None if absent.
    """

    schema_version: str = SCHEMA_VERSION
    name: str = ""
    version: str = ""
    description: str = ""
    layout: str = PORTABLE
    components: tuple[PackageComponent, ...] = ()
    shared_assets: Mapping[str, str] = field(default_factory=dict)
    metadata: JsonValue = None

    def component(self, name: str) -> PackageComponent | None:
        """The component of this name; None if absent."""
        return next((one for one in self.components if one.name == name), None)


def encode_manifest(manifest: PackageManifest) -> bytes:
    """The bytes of manifest.json with every component inline; equal values give equal bytes."""
    content: dict[str, JsonValue] = {"schema_version": manifest.schema_version}
    texts = {
        "package_name": manifest.name,
        "package_version": manifest.version,
        "description": manifest.description,
    }
    content |= {key: text for key, text in texts.items() if text}
    content["layout"] = manifest.layout
    content["components"] = {one.name: one.to_json() for one in manifest.components}
    if manifest.shared_assets:
        content["shared_assets"] = dict(sorted(manifest.shared_assets.items()))
    if manifest.metadata is not None:
        content["additional_metadata"] = manifest.metadata
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
