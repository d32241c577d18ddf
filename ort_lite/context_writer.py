"""Writes a context model: payloads into containers, EPContext nodes, then the model file."""

from __future__ import annotations

import io
import logging
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, BinaryIO

from blake3 import blake3

from ctx_formats.atomic_write import publish, publish_new, written_beside
from ctx_formats.container_writer import write_container
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError
from ctx_formats.model_writer import encode_model
from ctx_formats.notes import ContextNotes
from ctx_formats.onnx_model import Model
from ort_lite.context_graph import context_graph
from ort_lite.execution_provider import SupportsEpContext
from ort_lite.placement import all_partitions
from ort_lite.status import Fail
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ctx_formats.container import Entry
    from ctx_formats.onnx_model import Node
    from ort_lite.context_target import ContextTarget
    from ort_lite.execution_provider import ExecutionProvider
    from ort_lite.model_loader import LoadedModel
    from ort_lite.preparation import Partition, PreparedGraph

log = logging.getLogger(__name__)

MIN_IR_VERSION = 8
CONTRIB = "com.microsoft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a context model says about the plain one."""

    model: Model
    file_name: str
    blake3: str


@dataclass(frozen=True, slots=True)
class _Stored:
    """The payloads of one EP, stored: in a file of this name, or in `embedded`."""

    entries: Mapping[str, Entry]
    file_name: str = ""
    embedded: bytes = b""


def source_of(loaded: LoadedModel) -> Source:
    """Name and digest of a plain model; its external data is part of the digest."""
    digest = blake3(loaded.data, max_threads=blake3.AUTO)
    for view in loaded.external.views():
        digest.update(view)
    name = loaded.path.name if loaded.path is not None else ""
    return Source(model=loaded.model, file_name=name, blake3=digest.hexdigest())


def write_context(
    prepared: PreparedGraph,
    source: Source,
    target: ContextTarget,
    provider_options: Mapping[str, Mapping[str, str]],
) -> Path | None:
    """Write the context model of `prepared` to the target, payload files first.

    Nothing appears under its final name before it is whole, and a file that exists is never
    written into. Two processes that write to one place at once both succeed or one of them
    fails cleanly.

    Returns:
        The model's path; None where no partition belongs to an EP that keeps contexts.

    Raises:
        Fail: The output exists, is over 2 GiB, or cannot be written (disk full, permissions).
    """
    kept = context_partitions(prepared)
    if not kept:
        log.warning("nothing was compiled for an EP context; %s is not written", target.model_path)
        return None
    published: list[Path] = []
    try:
        stored = {ep: _store(parts, ep, target, published) for ep, parts in _by_ep(kept).items()}
        nodes = _nodes(kept, stored, source, target, provider_options)
        model = context_model(prepared, source.model, nodes)
        pieces = encode_model(model)
        with written_beside(target.model_path) as (file, temporary):
            for piece in pieces:
                file.write(piece)
        publish(temporary, target.model_path, replace=target.overwrite)
    except FileExistsError as exc:
        _unpublish(published)
        raise Fail(
            f"Failed to generate EP context model since the file '{target.model_path}' exists "
            "already. Please remove the EP context model if you want to re-generate it."
        ) from exc
    except FormatError as exc:
        _unpublish(published)
        raise Fail(
            f"the EP context model {target.model_path} cannot be written: {exc}. With "
            "ep.context_embed_mode=0 payloads go to a file beside it, which has no such limit."
        ) from exc
    except OSError as exc:
        _unpublish(published)
        raise Fail(f"the EP context model {target.model_path} cannot be written: {exc}") from exc
    except BaseException:
        _unpublish(published)
        raise
    log.info("wrote %s", target.model_path)
    return target.model_path


def context_partitions(prepared: PreparedGraph) -> list[Partition]:
    """Partitions, those of bodies included, whose EP keeps contexts."""
    return [part for part in all_partitions(prepared) if isinstance(part.ep, SupportsEpContext)]


def context_model(prepared: PreparedGraph, source: Model, nodes: Mapping[str, Node]) -> Model:
    """The context model, given the EPContext node of each compiled partition by name."""
    info = {
        f"ep_compatibility_info.{part.ep.name}": part.ep.compatibility_info()
        for part in context_partitions(prepared)
        if isinstance(part.ep, SupportsEpContext)
    }
    return Model(
        graph=context_graph(prepared, lambda part: nodes.get(part.name)),
        ir_version=max(source.ir_version, MIN_IR_VERSION),
        opset_imports={**prepared.graph.opset_imports, CONTRIB: 1},
        producer_name=source.producer_name,
        producer_version=source.producer_version,
        domain=source.domain,
        model_version=source.model_version,
        doc_string=source.doc_string,
        metadata_props={**source.metadata_props, **{k: v for k, v in info.items() if v}},
    )


def _by_ep(kept: Sequence[Partition]) -> dict[str, list[Partition]]:
    found: dict[str, list[Partition]] = {}
    for part in kept:
        found.setdefault(part.ep.name, []).append(part)
    return found


def _exporter(part: Partition) -> Callable[[BinaryIO], None]:
    ep: ExecutionProvider = part.ep
    assert isinstance(ep, SupportsEpContext), "only such partitions are kept"
    return lambda out: ep.export_model(part.compiled, out)


def _store(
    parts: Sequence[Partition], ep: str, target: ContextTarget, published: list[Path]
) -> _Stored:
    payloads = [(target.prefix + part.name, _exporter(part)) for part in parts]
    if target.embed:
        memory = io.BytesIO()
        entries = write_container(memory, payloads, PRODUCER)
        return _Stored({e.name: e for e in entries}, embedded=memory.getvalue())
    path = target.model_path.with_name(target.payload_name(ep))
    with written_beside(path) as (file, temporary):
        entries = write_container(file, payloads, PRODUCER)
    path = publish_new(temporary, list(_names(path, entries)))
    published.append(path)
    return _Stored({e.name: e for e in entries}, file_name=path.name)


def _names(path: Path, entries: Sequence[Entry]) -> Iterator[Path]:
    """The usual name; where a file has it already, names that carry the content.

    The file that is there may belong to a context model that somebody is running.
    """
    yield path
    content = blake3("".join(entry.blake3 for entry in entries).encode()).hexdigest()
    yield path.with_name(f"{path.stem}-{content[:12]}{path.suffix}")
    yield path.with_name(f"{path.stem}-{content[:12]}-{token_hex(4)}{path.suffix}")


def _unpublish(published: Sequence[Path]) -> None:
    for path in published:
        with suppress(FileNotFoundError):
            path.unlink()


def _nodes(
    kept: Sequence[Partition],
    stored: Mapping[str, _Stored],
    source: Source,
    target: ContextTarget,
    provider_options: Mapping[str, Mapping[str, str]],
) -> dict[str, Node]:
    """EPContext nodes by partition name.

    As ONNX Runtime's OpenVINO EP: external, every node names the file; embedded, the first
    node of an EP holds the container and the others point to it with main_context 0.
    """
    nodes: dict[str, Node] = {}
    holders: set[str] = set()
    for part in kept:
        store = stored[part.ep.name]
        main = not target.embed or part.ep.name not in holders
        holders.add(part.ep.name)
        entry = store.entries[target.prefix + part.name]
        node = EpContextNode(
            name=target.prefix + part.name,
            inputs=tuple(info.name for info in part.graph.inputs),
            outputs=tuple(info.name for info in part.graph.outputs),
            source=part.ep.name,
            main_context=main,
            embed_mode=target.embed,
            ep_cache_context=(store.embedded or store.file_name.encode()) if main else b"",
            ep_sdk_version=part.ep.identity.sdk_version,
            hardware_architecture=part.ep.identity.architecture,
            onnx_model_filename=source.file_name,
            partition_name=target.prefix + part.name,
        )
        notes = ContextNotes(
            producer=PRODUCER,
            identity=part.ep.identity,
            payload_blake3=entry.blake3,
            payload_size=entry.size,
            source_blake3=source.blake3,
            options=provider_options.get(part.ep.name, {}),
        )
        nodes[part.name] = notes.sealed_into(node).to_node()
    return nodes
