"""A context model on disk that is damaged, edited and loaded again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ctx_formats.bson import encode_document
from ctx_formats.container import ALIGNMENT, HEADER, MAGIC, VERSION, padding
from ctx_formats.container_reader import read_container
from ctx_formats.ep_context import EpContextNode
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ctx_formats.bson import Writable


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A context model; its payload is next to it, or inside it where `payload` is None."""

    path: Path
    payload: Path | None

    def nodes(self) -> list[EpContextNode]:
        """EPContext nodes of the model."""
        graph = read_model(memoryview(self.path.read_bytes())).graph
        return [EpContextNode.from_node(n) for n in graph.nodes if n.op_type == "EPContext"]

    def edit(self, change: Callable[[EpContextNode], EpContextNode]) -> None:
        """Rewrite the model with every EPContext node changed."""
        model = read_model(memoryview(self.path.read_bytes()))
        nodes = tuple(
            change(EpContextNode.from_node(node)).to_node() if node.op_type == "EPContext" else node
            for node in model.graph.nodes
        )
        changed = replace(model, graph=replace(model.graph, nodes=nodes))
        self.path.write_bytes(model_bytes(changed))

    def container(self) -> bytes:
        """The payload container, wherever it is."""
        if self.payload is not None:
            return self.payload.read_bytes()
        return next(bytes(n.ep_cache_context) for n in self.nodes() if n.main_context)

    def put_container(self, data: bytes) -> None:
        """Replace the payload container; everything else stays."""
        if self.payload is not None:
            self.payload.write_bytes(data)
            return
        self.edit(lambda n: replace(n, ep_cache_context=data) if n.main_context else n)


@dataclass(frozen=True, slots=True)
class Damage:
    """One way to spoil a container, and the reasons that say so."""

    name: str
    change: Callable[[bytes], bytes]
    reasons: frozenset[str]


def flip_bit(data: bytes, at: int) -> bytes:
    """`data` with one bit changed."""
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def remove_digests(data: bytes, change: Callable[[bytes], bytes] = bytes) -> bytes:
    """A container with one payload, as a producer without digests writes it; `change` spoils it.

    ONNX Runtime's OpenVINO EP is such a producer.
    """
    (entry,) = read_container(memoryview(data)).entries.values()
    payload = change(data[entry.offset : entry.offset + entry.size])
    fields: dict[str, Writable] = {"data_offset": ALIGNMENT, "size": len(payload)}
    index = encode_document(
        {"version": "1.1.0", "producer": "somebody", "blob_metadata_map": {entry.name: fields}}
    )
    head = HEADER.pack(MAGIC, VERSION, HEADER.size, HEADER.size, len(index)) + index
    body = head + bytes(padding(len(head))) + payload
    return body + bytes(padding(len(body)))


def payload_middle(data: bytes) -> int:
    """Offset of the middle byte of the first payload."""
    entry = min(read_container(memoryview(data)).entries.values(), key=lambda e: e.offset)
    return entry.offset + entry.size // 2


def damages() -> tuple[Damage, ...]:
    """Every region of a container, and its length, changed one at a time."""
    integrity, form = frozenset(("integrity",)), frozenset(("format",))
    either = integrity | form
    return (
        Damage("magic", lambda data: flip_bit(data, 0), form),
        Damage("index", lambda data: flip_bit(data, 60), either),
        Damage("payload", lambda data: flip_bit(data, payload_middle(data)), integrity),
        Damage("padding", lambda data: flip_bit(data, payload_offset(data) - 1), form),
        Damage("tail", lambda data: flip_bit(data, -1), either),
        Damage("half", lambda data: data[: len(data) // 2], form),
        Damage("one_byte_less", lambda data: data[:-1], form),
        Damage("one_byte_more", lambda data: data + b"\0", form),
        Damage("header_only", lambda data: data[:40], form),
        Damage("magic_only", lambda _: MAGIC, form),
        Damage("zeros", lambda data: bytes(len(data)), form),
    )


def payload_offset(data: bytes) -> int:
    """Offset of the first payload."""
    return min(e.offset for e in read_container(memoryview(data)).entries.values())
