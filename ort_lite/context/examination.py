"""What the files alone say about EPContext nodes, before any SDK is asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.notes import read_notes
from ort_lite.context.keys import PATH_KEY
from ort_lite.context.mending import refused
from ort_lite.context.nodes import is_context_node
from ort_lite.model.bodies import walk_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.notes import ContextNotes
    from ctx_formats.onnx_model import Node
    from ort_lite.context.payload_store import Payload, PayloadStore
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions

DIGEST_KEY = "session.require_payload_digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the files say about one node.

    Attributes:
        payload: Every byte is what was written, where that was recorded.
        seal: Set where the node's attributes are not the ones that were written; told after
            the identity, which says better what an edited version means.
    """

    payload: Payload
    notes: ContextNotes | None
    recorded: HardwareIdentity
    seal: FormatError | None


def examine(
    node: EpContextNode,
    store: PayloadStore,
    primaries: Sequence[EpContextNode],
    options: SessionOptions,
) -> Examined:
    """Check all that the files alone decide; a session and a check without one share it.

    Raises:
        InvalidGraph: The payload is missing, misplaced or damaged.
    """
    notes: ContextNotes | None = None
    seal: FormatError | None = None
    try:
        notes = read_notes(node)
    except FormatError as exc:
        seal = exc
    recorded = recorded_identity(node, notes)
    try:
        payload = store.payload(node, notes, primaries, require_digest=options.flag(DIGEST_KEY))
    except FormatError as exc:
        raise refused(exc, node.onnx_model_filename, recorded=recorded) from exc
    return Examined(payload=payload, notes=notes, recorded=recorded, seal=seal)


def recorded_identity(node: EpContextNode, notes: ContextNotes | None) -> HardwareIdentity:
    """What the payload was built for; a foreign node tells less.

    The node's attributes win over the notes: they are what other tools read and edit.
    """
    identity = notes.identity if notes is not None else HardwareIdentity()
    changes = {}
    if node.ep_sdk_version:
        changes["sdk_version"] = node.ep_sdk_version
    if node.hardware_architecture:
        changes["architecture"] = node.hardware_architecture
    return replace(identity, **changes)


def base_folder(path: str | None, options: SessionOptions) -> str | None:
    """The folder that payload paths are relative to: `ep.context_file_path` wins."""
    beside = options.config.get(PATH_KEY, "") or path
    return os.path.dirname(beside) or os.curdir if beside is not None else None


def context_nodes(loaded: LoadedModel) -> tuple[tuple[Node, EpContextNode], ...]:
    """Every EPContext node of a model, as it is in the graph and parsed.

    Raises:
        InvalidGraph: One is malformed.
    """
    return tuple(
        (node, parse_node(node, loaded.described))
        for node in walk_nodes(loaded.model.graph)
        if is_context_node(node)
    )


def primaries_of(nodes: Sequence[tuple[Node, EpContextNode]]) -> tuple[EpContextNode, ...]:
    """Those that point to a context themselves."""
    return tuple(parsed for _, parsed in nodes if parsed.main_context)


def parse_node(node: Node, file: str) -> EpContextNode:
    """An EPContext node.

    Raises:
        InvalidGraph: It is malformed.
    """
    try:
        return EpContextNode.from_node(node)
    except FormatError as exc:
        raise refused(exc.in_file(file), _name_in(node)) from exc


def _name_in(node: Node) -> str:
    """The recorded name of the original model in a node that may be malformed."""
    attribute = node.attributes.get("onnx_model_filename")
    value = attribute.value if attribute is not None else b""
    return bytes(value).decode(errors="replace") if isinstance(value, bytes | memoryview) else ""
