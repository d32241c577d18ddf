"""Writes a context model: payloads into containers, EPContext nodes, then the model file."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FileChangedError, FormatError
from ctx_formats.model_file import digest_pieces
from ctx_formats.model_writer import encode_model
from ctx_formats.notes import ContextNotes
from ctx_formats.signatures import without_signatures
from ort_lite.context.destinations import Embedded
from ort_lite.context.external_initializers import place_initializers, write_external
from ort_lite.context.graph import context_graph, outputs_swapped
from ort_lite.context.target import exists_already
from ort_lite.ep.interface import SupportsEpContext, SupportsMemorySharing
from ort_lite.execution.values import OrtValue
from ort_lite.planning.placement import all_partitions
from ort_lite.providers.catalog import handle_options
from ort_lite.session_log import get_logger
from ort_lite.status import Fail, load_canceled
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ctx_formats.onnx_model import ExternalData, Model, Node
    from ort_lite.context.destinations import Stored
    from ort_lite.context.target import ContextTarget
    from ort_lite.model.loader import LoadedModel
    from ort_lite.planning.prepared_graph import Partition, PreparedGraph

log = get_logger(__name__)

MIN_IR_VERSION = 8
CONTRIB = "com.microsoft"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSource:
    """The plain model, as a context model records it.

    Attributes:
        origins: Where initializers lay that came out of data files.
    """

    model: Model
    file_name: str
    blake3: str
    origins: Mapping[str, ExternalData]


def source_of(loaded: LoadedModel) -> ContextSource:
    """Name and digest of a plain model; its external data is part of the digest.

    Raises:
        Fail: Of a data file, parts that the model does not use have changed since it was read.
    """
    try:
        digest = digest_pieces((*loaded.data.pieces(), *loaded.external.pieces()))
    except FileChangedError as exc:
        raise Fail(f"{loaded.description} cannot be digested: {exc}") from exc
    name = os.fsencode(Path(loaded.path or "").name).decode(errors="replace")
    return ContextSource(
        model=loaded.model,
        file_name=name,
        blake3=digest.hexdigest(),
        origins=loaded.external.origins,
    )


def context_partitions(prepared: PreparedGraph) -> list[Partition]:
    """Partitions, those of bodies included, whose EP keeps contexts."""
    return [part for part in all_partitions(prepared) if isinstance(part.ep, SupportsEpContext)]


@contextmanager
def context_pieces(
    prepared: PreparedGraph,
    source: ContextSource,
    target: ContextTarget,
    provider_options: Mapping[str, Mapping[str, str]],
) -> Iterator[Sequence[bytes | memoryview]]:
    """The encoded context model, its payloads stored; withdrawn if the body fails.

    Embedded payloads that would make the model too large go to files, if a path is known.

    Raises:
        Fail: It is over 2 GiB, or something cannot be written (disk full, permissions).
    """
    try:
        with _write_errors(target):
            try:
                pieces = _encode(prepared, source, target, provider_options)
            except FormatError as exc:
                files = target.payloads.overflow if isinstance(target.payloads, Embedded) else None
                if files is None:
                    raise
                log.warning("%s: payloads go to a file in its folder: %s", target.description, exc)
                target = replace(target, payloads=files)
                pieces = _encode(prepared, source, target, provider_options)
            yield pieces
    except BaseException:
        target.payloads.withdraw()
        raise


@contextmanager
def _write_errors(target: ContextTarget) -> Iterator[None]:
    """Raise Fail for a model that is too large or that cannot be written."""
    try:
        yield
    except FormatError as exc:
        raise Fail(
            f"{target.description} cannot be written: {exc}. With ep.context_embed_mode=0 payloads "
            "go to a file in its folder, which has no such limit."
        ) from exc
    except FileExistsError as exc:
        if target.model_path is not None:
            raise exists_already(target.model_path) from exc
        raise Fail(f"{target.description} cannot be written: {exc}") from exc
    except OSError as exc:
        raise Fail(f"{target.description} cannot be written: {exc}") from exc


def _encode(
    prepared: PreparedGraph,
    source: ContextSource,
    target: ContextTarget,
    provider_options: Mapping[str, Mapping[str, str]],
) -> Sequence[bytes | memoryview]:
    """Store the payloads of every EP and encode the model that refers to them."""
    kept = context_partitions(prepared)
    stored = {
        ep: target.payloads.store(ep, {target.prefix + part.name: part for part in parts})
        for ep, parts in _by_ep(kept).items()
    }
    nodes = _nodes(kept, stored, source, target, provider_options)
    model = _with_initializers(_model(prepared, source.model, nodes), source, target)
    return sign_pieces(encode_model(model), model, target)


def write_context(
    prepared: PreparedGraph,
    source: ContextSource,
    target: ContextTarget,
    provider_options: Mapping[str, Mapping[str, str]],
    canceled: Callable[[], bool] = lambda: False,
) -> None:
    """Write the context model of `prepared` to the target, payload files first.

    No file gets its final name before it is complete, and no existing file is written into. Of
    two processes that write to one path at once one fails cleanly.

    Raises:
        Fail: The output exists, is over 2 GiB, or cannot be written (disk full, permissions).
        ModelLoadCanceled: `canceled` said so before the model was published; nothing is left.
    """
    if not context_partitions(prepared):
        log.warning("nothing was compiled for an EP context; %s is not written", target.description)
        return
    assert target.model_path is not None, "a session's target is a file"
    with context_pieces(prepared, source, target, provider_options) as pieces:
        if canceled():
            raise load_canceled()
        write_pieces(pieces, target)
    log.info("wrote %s", target.model_path)


def write_pieces(pieces: Sequence[bytes | memoryview], target: ContextTarget) -> None:
    """Publish the model file; in a session group, keep it for publishing.

    Raises:
        FileExistsError: It exists and is not to be overwritten.
        OSError: It cannot be written.
    """
    assert target.model_path is not None, "only a file is published"
    if target.group is not None:
        target.group.add_model(
            pieces, target.model_path, overwrite=target.overwrite, signer=target.signer
        )
        return
    with create_sibling_file(target.model_path) as (file, temporary):
        for piece in pieces:
            file.write(piece)
    publish(temporary, target.model_path, replace=target.overwrite)


def sign_pieces(
    pieces: Sequence[bytes | memoryview], model: Model, target: ContextTarget
) -> Sequence[bytes | memoryview]:
    """A model's bytes, followed by a signature where the target has a signer.

    In a session group it is signed when it is published: no file is complete before.

    Raises:
        Fail: It cannot be signed.
        OSError: A file that the signature covers cannot be read.
    """
    if target.signer is None or target.group is not None:
        return pieces
    from ort_lite.context.signing import signature_of  # noqa: PLC0415 - lazy: rare

    return [*pieces, signature_of(pieces, model, target.folder, target.signer)]


def _with_initializers(model: Model, source: ContextSource, target: ContextTarget) -> Model:
    if target.locate is not None:
        graph = place_initializers(model.graph, target.locate, source.origins, OrtValue.of_tensor)
        return replace(model, graph=graph)
    if target.initializers is None:
        return model
    if target.folder is None:
        raise Fail("external initializers have no folder: the output model has no path")
    graph = write_external(
        model.graph, target.initializers, target.folder, overwrite=target.overwrite
    )
    return replace(model, graph=graph)


def _model(prepared: PreparedGraph, source: Model, nodes: Mapping[str, Node]) -> Model:
    """The context model, given the EPContext node of each compiled partition by name."""
    info = {
        f"ep_compatibility_info.{part.ep.name}": part.ep.compatibility_info()
        for part in context_partitions(prepared)
        if isinstance(part.ep, SupportsEpContext)
    }
    metadata = without_signatures(source.metadata_props)
    return replace(
        source,
        graph=outputs_swapped(context_graph(prepared, lambda part: nodes.get(part.name))),
        ir_version=max(source.ir_version, MIN_IR_VERSION),
        opset_imports={**prepared.graph.opset_imports, CONTRIB: 1},
        metadata_props={**metadata, **{k: v for k, v in info.items() if v}},
        functions=(),
    )


def _by_ep(kept: Sequence[Partition]) -> dict[str, list[Partition]]:
    parts: dict[str, list[Partition]] = {}
    for part in kept:
        parts.setdefault(part.ep.name, []).append(part)
    return parts


def _nodes(
    kept: Sequence[Partition],
    stored: Mapping[str, Stored],
    source: ContextSource,
    target: ContextTarget,
    provider_options: Mapping[str, Mapping[str, str]],
) -> dict[str, Node]:
    """EPContext nodes by partition name.

    As ONNX Runtime's OpenVINO EP: external, every node names the file; embedded, the first
    node of an EP holds the container and the others point to it with main_context 0.
    """
    nodes: dict[str, Node] = {}
    holders: set[str] = set()
    sizes = {ep: _max_size(parts) for ep, parts in _by_ep(kept).items()}
    options = {ep: _recorded_options(ep, provider_options.get(ep, {})) for ep in sizes}
    embed = isinstance(target.payloads, Embedded)
    for part in kept:
        store = stored[part.ep.name]
        main = not embed or part.ep.name not in holders
        holders.add(part.ep.name)
        name = target.prefix + part.name
        identity = part.ep.identity
        node = EpContextNode(
            name=name,
            inputs=part.inputs,
            outputs=part.outputs,
            source=part.ep.name,
            main_context=main,
            embed_mode=embed,
            ep_cache_context=store.reference if main else b"",
            ep_sdk_version=identity.sdk_version,
            hardware_architecture=identity.architecture,
            onnx_model_filename=source.file_name,
            partition_name=name,
            max_size=sizes[part.ep.name] if main else 0,
        )
        notes = ContextNotes(
            producer=PRODUCER,
            identity=identity,
            payload_blake3=store.entries[name].blake3,
            payload_size=store.entries[name].size,
            weights_blake3=store.weights.get(name, ""),
            source_blake3=source.blake3,
            options=options[part.ep.name],
        )
        nodes[part.name] = notes.seal_into(node).to_node()
    return nodes


def _recorded_options(ep: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Those that mean something in another process: a handle of a command queue does not."""
    handles = handle_options(ep) if options else {}
    return {key: value for key, value in options.items() if key not in handles}


def _max_size(parts: Sequence[Partition]) -> int:
    """Working memory that the largest of one EP's partitions needs; 0 if it needs none."""
    return max(
        part.ep.max_size(part.compiled) if isinstance(part.ep, SupportsMemorySharing) else 0
        for part in parts
    )
