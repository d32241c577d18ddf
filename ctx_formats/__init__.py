"""Reads and writes ONNX models, EPContext nodes, containers and packages as frozen values.

The package needs the standard library and blake3: no protobuf, onnx or numpy. It never trusts the
bytes it reads; what is wrong with a file is a `FormatError` with the field, the value found and the
value expected. Formats and examples: docs/formats/README.md.

The public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_MODULES = {
    "Adapter": "adapter_file",
    "Container": "container",
    "ContextNotes": "notes",
    "Entry": "container",
    "EpContextNode": "ep_context",
    "FileChangedError": "errors",
    "FormatError": "errors",
    "HardwareIdentity": "identity",
    "Model": "onnx_model",
    "PackageComponent": "package_manifest",
    "PackageFolder": "package_reader",
    "PackageManifest": "package_manifest",
    "PackageVariant": "package_manifest",
    "Reason": "errors",
    "encode_manifest": "package_manifest",
    "encode_model": "model_writer",
    "encode_ort_model": "ort_model_writer",
    "read_adapter": "adapter_file",
    "read_container": "container_reader",
    "read_model": "model_reader",
    "read_notes": "notes",
    "read_ort_model": "ort_model_reader",
    "read_package": "package_reader",
    "read_signed": "signatures",
    "resolve_payload": "safe_path",
    "write_adapter": "adapter_file",
    "write_container": "container_writer",
}

if TYPE_CHECKING:
    from ctx_formats.adapter_file import Adapter as Adapter
    from ctx_formats.adapter_file import read_adapter as read_adapter
    from ctx_formats.adapter_file import write_adapter as write_adapter
    from ctx_formats.container import Container as Container
    from ctx_formats.container import Entry as Entry
    from ctx_formats.container_reader import read_container as read_container
    from ctx_formats.container_writer import write_container as write_container
    from ctx_formats.ep_context import EpContextNode as EpContextNode
    from ctx_formats.errors import FileChangedError as FileChangedError
    from ctx_formats.errors import FormatError as FormatError
    from ctx_formats.errors import Reason as Reason
    from ctx_formats.identity import HardwareIdentity as HardwareIdentity
    from ctx_formats.model_reader import read_model as read_model
    from ctx_formats.model_writer import encode_model as encode_model
    from ctx_formats.notes import ContextNotes as ContextNotes
    from ctx_formats.notes import read_notes as read_notes
    from ctx_formats.onnx_model import Model as Model
    from ctx_formats.ort_model_reader import read_ort_model as read_ort_model
    from ctx_formats.ort_model_writer import encode_ort_model as encode_ort_model
    from ctx_formats.package_manifest import PackageComponent as PackageComponent
    from ctx_formats.package_manifest import PackageManifest as PackageManifest
    from ctx_formats.package_manifest import PackageVariant as PackageVariant
    from ctx_formats.package_manifest import encode_manifest as encode_manifest
    from ctx_formats.package_reader import PackageFolder as PackageFolder
    from ctx_formats.package_reader import read_package as read_package
    from ctx_formats.safe_path import resolve_payload as resolve_payload
    from ctx_formats.signatures import read_signed as read_signed

    __all__: list[str]
else:
    __all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Import the module that defines `name` (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'ctx_formats' has no attribute '{name}'")
    return getattr(import_module(f"ctx_formats.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Sorted public names, for `dir(ctx_formats)`."""
    return sorted(_MODULES)
