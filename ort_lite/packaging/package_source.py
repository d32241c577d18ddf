"""Models that become variants of a package: their files, and the device that they are for."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from ctx_formats.directory_digest import FileDigest, digest_file
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.model_reader import read_model
from ctx_formats.notes import read_notes
from ctx_formats.onnx_model import ExternalData
from ctx_formats.safe_path import resolve_payload
from ort_lite.context.compatibility_info import METADATA_PREFIX
from ort_lite.context.hints import refusal_of
from ort_lite.context.nodes import is_context_node
from ort_lite.context.payload_checks import recorded_identity
from ort_lite.context.signing import all_tensors
from ort_lite.model.bodies import walk_nodes
from ort_lite.model.loader import load
from ort_lite.model.type_text import type_text
from ort_lite.options import SessionOptions
from ort_lite.packages.variant_notes import COMPILED, SOURCE
from ort_lite.providers.catalog import DEFAULT_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ctx_formats.onnx_model import Model, ValueInfo

LEFT_OPTIONS = ("npu_platform", "cache_dir")
"""Options of a compile that say nothing about the device that a payload needs."""
KINDS = ("gpu", "npu")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSource:
    """A model file with everything that a variant says of it.

    Attributes:
        model: Name of its file.
        files: By location, as the model names it, the path of each of its files, itself included.
        digests: Of `files`, by location.
        weights: Locations of weight files.
        ep: The execution provider of its first EPContext node; the CPU EP for a plain model.
        device: "gpu" or "npu"; "" for a CPU, which onnxruntime 1.31.1 never matches, and where it
            is not recorded.
        architecture: As recorded; "" if it is not.
        provider_options: Open the device that it was compiled for.
        compatibility: The compatibility text of its metadata; None if absent.
        inputs, outputs: Type without its shape by name, as ONNX spells it; "" if it is not known.
    """

    model: str
    files: Mapping[str, str]
    digests: Mapping[str, FileDigest]
    weights: frozenset[str]
    ep: str
    device: str
    architecture: str
    provider_options: Mapping[str, str]
    compatibility: str | None
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def role(self) -> str:
        """The role of its variant."""
        return SOURCE if self.ep == DEFAULT_PROVIDER else COMPILED

    def default_name(self) -> str:
        """A name for its variant, such as openvino-npu-4000."""
        if self.role == SOURCE:
            return SOURCE
        kind = self.device or "cpu"
        parts = [self.ep.removesuffix("ExecutionProvider").lower(), kind]
        if kind == "npu" and self.architecture.isalnum():
            parts.append(self.architecture.lower())
        return "-".join(parts)


def read_source(path: Path) -> PackageSource:
    """Look at a model file, plain or compiled; payloads are not opened by an SDK.

    Raises:
        OrtLiteError: It cannot be read, or a file that it names is missing or misplaced.
    """
    with closing(load(path, SessionOptions())) as loaded:
        # Decoded again, as the loader puts weights in place of their locations.
        model = read_model(loaded.data.view, runs=loaded.data.runs)
    nodes = [EpContextNode.from_node(n) for n in walk_nodes(model.graph) if is_context_node(n)]
    locations = {
        t.data.location for t in all_tensors(model.graph) if isinstance(t.data, ExternalData)
    }
    payloads = {n.payload_path for n in nodes if n.main_context and not n.embed_mode}
    files = {path.name: str(path)}
    try:
        for location in sorted(locations | payloads):
            colons = location in locations
            files[_plain(location)] = resolve_payload(
                path.parent, location, model_path=path, colons=colons
            )
        digests = {name: digest_file(os.path.realpath(file)) for name, file in files.items()}
    except FormatError as exc:
        raise refusal_of(exc.in_file(str(path)), "", None) from exc
    return _source_of(model, path.name, nodes, files, digests, frozenset(locations))


def _source_of(
    model: Model,
    name: str,
    nodes: list[EpContextNode],
    files: Mapping[str, str],
    digests: Mapping[str, FileDigest],
    weights: frozenset[str],
) -> PackageSource:
    ep, device, architecture, options = DEFAULT_PROVIDER, "", "", {}
    if nodes:
        notes = read_notes(nodes[0])
        identity = recorded_identity(nodes[0], notes)
        ep, architecture = nodes[0].source, identity.architecture
        recorded = dict(notes.options) if notes is not None else {}
        options = {key: value for key, value in recorded.items() if key not in LEFT_OPTIONS}
        place = recorded.get("device_type") or identity.device.partition(":")[0]
        kind = place.partition(".")[0].lower()
        device = kind if kind in KINDS else ""
    return PackageSource(
        model=name,
        files=files,
        digests=digests,
        weights=weights,
        ep=ep,
        device=device,
        architecture=architecture,
        provider_options=options,
        compatibility=model.metadata_props.get(METADATA_PREFIX + ep),
        inputs=_spell_types(
            info for info in model.graph.inputs if info.name not in model.graph.initializers
        ),
        outputs=_spell_types(model.graph.outputs),
    )


def _spell_types(infos: Iterable[ValueInfo]) -> dict[str, str]:
    return {info.name: type_text(info.type) for info in infos}


def _plain(location: str) -> str:
    """A location as a path below a variant's folder.

    Raises:
        FormatError: It has "..", which a package cannot keep.
    """
    parts = [part for part in location.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise FormatError(
            "path", f"{location[:200]!r} has '..'", "files next to the model",
            reason=Reason.UNSAFE_PATH,
        )  # fmt: skip
    return "/".join(parts)
