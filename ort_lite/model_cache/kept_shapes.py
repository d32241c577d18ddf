"""Adds the programs that a session compiles for new shapes to its model's entry in the cache.

The next start of the model then reloads them. An entry is replaced as a whole: its payloads are
written again, with the new programs, then the context model that names them, then the entry. What
another process has added to it meanwhile stays.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.container_reader import read_container
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.mapped_file import MappedFile
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import encode_model
from ctx_formats.notes import read_notes
from ort_lite.context.nodes import is_context_node
from ort_lite.ep.new_shapes import SupportsNewShapes, SupportsPayloadUpdate
from ort_lite.model.bodies import map_nodes, walk_nodes
from ort_lite.model_cache.eviction import evict
from ort_lite.model_cache.lock import single_flight
from ort_lite.model_cache.objects import ObjectWriter
from ort_lite.planning.placement import all_partitions
from ort_lite.session_log import get_logger, logging_as
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from ctx_formats.onnx_model import Model, Node
    from ort_lite.context.destinations import Stored
    from ort_lite.ep.interface import CompiledPartition
    from ort_lite.model_cache.entry import CacheEntry
    from ort_lite.model_cache.store import CacheStore
    from ort_lite.planning.prepared_graph import PreparedGraph
    from ort_lite.session_log import LogScope

log = get_logger(__name__)

MAX_REWRITTEN = 1 << 28
"""Bytes of the largest entry that is written again for one more set of shapes."""


@dataclass(frozen=True, slots=True)
class _Grown:
    """A partition with new programs."""

    ep: SupportsPayloadUpdate
    compiled: CompiledPartition


class KeptShapes:
    """New programs of one session on their way into the cache.

    A thread writes, and is there while there is something to write. It is not a daemon: a process
    that ends after its first run keeps what it has compiled.
    """

    def __init__(self, store: CacheStore, quota: int, key: str, log_scope: LogScope) -> None:
        """Write nothing yet.

        Args:
            store: The cache.
            quota: Bytes that it may take.
            key: Of the model's entry.
            log_scope: Of the session.
        """
        self._store = store
        self._quota = quota
        self._key = key
        self._log_scope = log_scope
        self._lock = threading.Lock()
        self._waiting: dict[str, _Grown] = {}
        self._thread: threading.Thread | None = None

    def watch(self, prepared: PreparedGraph) -> None:
        """Write whenever a partition of `prepared` has compiled for new shapes."""
        for part in all_partitions(prepared):
            if isinstance(part.compiled, SupportsNewShapes) and isinstance(
                part.ep, SupportsPayloadUpdate
            ):
                # A partition that held its graph, through its callback, would never be freed.
                part.compiled.on_new_shapes(partial(self._add, part.name, part.ep))

    def _add(self, name: str, ep: SupportsPayloadUpdate, compiled: CompiledPartition) -> None:
        with self._lock:
            self._waiting[name] = _Grown(ep, compiled)
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(target=self._work, name="ort_lite-keep-shapes")
            self._thread.daemon = False
            try:
                self._thread.start()
            except RuntimeError as exc:  # no more threads, or the interpreter is on its way out
                self._thread = None
                self._waiting.clear()
                log.warning("programs for new shapes are not kept in the model cache: %s", exc)
                _drop({name: _Grown(ep, compiled)})

    def _work(self) -> None:
        with logging_as(self._log_scope):
            while grown := self._next():
                is_kept = False
                try:
                    is_kept = self._keep(grown)
                except (OSError, FormatError, OrtLiteError) as exc:
                    log.warning("programs for new shapes are not kept in the model cache: %s", exc)
                finally:
                    if not is_kept:
                        _drop(grown)

    def _next(self) -> dict[str, _Grown]:
        with self._lock:
            grown, self._waiting = self._waiting, {}
            if not grown:
                self._thread = None
            return grown

    def _keep(self, grown: Mapping[str, _Grown]) -> bool:
        """Write the entry with the new programs; False if it stays as it is."""
        with single_flight(self._store.lock_path(self._key), lambda: False):
            entry = self._store.entry(self._key)
            if entry is None:
                log.info("the model's entry is gone from the cache; new programs are not kept")
                return False
            if entry.size > MAX_REWRITTEN:
                log.info("an entry of %d bytes is not written again for new shapes", entry.size)
                return False
            self._store.require_mac(entry)
            if not self._replace(entry, grown):
                return False
        log.info("added programs for new shapes of %s to the model cache", ", ".join(grown))
        evict(self._store, self._quota, keep=(self._key,))
        return True

    def _replace(self, entry: CacheEntry, grown: Mapping[str, _Grown]) -> bool:
        """Replace the entry; False if the new one exceeds the quota."""
        writer = ObjectWriter(self._store)
        try:
            with MappedFile(self._store.objects / entry.model.name, follow_symlink=False) as file:
                updated = self._write(entry, file.view, writer, grown)
            fits = updated.size <= self._quota
            if fits:
                # The objects of the old entry stay for an hour: another process may be reading it.
                self._store.commit(updated)
        except BaseException:
            writer.withdraw()
            raise
        if not fits:
            writer.withdraw()
            log.info("new programs are not kept: the entry would exceed the cache's quota")
        return fits

    def _write(
        self, entry: CacheEntry, data: memoryview, writer: ObjectWriter, grown: Mapping[str, _Grown]
    ) -> CacheEntry:
        if f"{blake3(data).hexdigest()}.onnx" != entry.model.name:
            raise _damage_error(entry.model.name)
        model = read_model(data)
        payloads = {one.name: one for one in entry.payloads}
        stored: dict[str, Stored] = {}
        for name in sorted(_containers_of(model, grown)):
            if name not in payloads:
                raise _damage_error(name)
            stored[name] = self._write_container(name, writer, grown)
            payloads[name] = writer.payloads[-1]
        new_model = replace(model, graph=map_nodes(model.graph, partial(_updated_node, stored)))
        written = writer.write_model(encode_model(new_model))
        return replace(entry, model=written, payloads=tuple(payloads.values()), mac="")

    def _write_container(
        self, name: str, writer: ObjectWriter, grown: Mapping[str, _Grown]
    ) -> Stored:
        with MappedFile(self._store.objects / name, follow_symlink=False) as file:
            old = read_container(file.view)
            return writer.store_payloads(
                [
                    (payload, partial(_export, old.read_payload(payload), grown.get(payload)))
                    for payload in old.entries
                ]
            )


def _export(payload: memoryview, grown: _Grown | None, out: BinaryIO) -> None:
    """Stream a payload, with the new programs of its partition."""
    if grown is None or not grown.ep.export_updated(grown.compiled, payload, out):
        out.write(payload)


def _containers_of(model: Model, partitions: Mapping[str, _Grown]) -> set[str]:
    """File names of the containers that have the payloads of some partitions."""
    nodes = map(EpContextNode.from_node, filter(is_context_node, walk_nodes(model.graph)))
    return {node.payload_path for node in nodes if node.partition_name in partitions}


def _updated_node(stored: Mapping[str, Stored], node: Node) -> Node:
    """`node` with the name and the digest of its new payload, where there is one."""
    if not is_context_node(node):
        return node
    context = EpContextNode.from_node(node)
    new = stored.get(context.payload_path)
    notes = read_notes(context)
    if new is None or notes is None:
        return node
    payload = new.entries[context.partition_name]
    notes = replace(notes, payload_blake3=payload.blake3, payload_size=payload.size)
    return notes.seal_into(replace(context, ep_cache_context=new.reference)).to_node()


def _drop(grown: Mapping[str, _Grown]) -> None:
    for one in grown.values():
        assert isinstance(one.compiled, SupportsNewShapes), "as `watch` sees to"
        one.compiled.drop_new_shapes()


def _damage_error(name: str) -> FormatError:
    return FormatError(
        f"cache object {name}", "other bytes", "what was written", reason=Reason.INTEGRITY
    )
