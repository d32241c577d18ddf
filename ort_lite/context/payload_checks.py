"""Checks of EPContext nodes and their payloads that need no SDK."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.notes import read_notes
from ort_lite.context.keys import PATH_KEY, SHARE_KEY
from ort_lite.context.nodes import is_context_node
from ort_lite.context.payload_store import PayloadStore
from ort_lite.model.bodies import walk_nodes
from ort_lite.shortages import start_helper
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from threading import Thread

    from ctx_formats.notes import ContextNotes
    from ctx_formats.onnx_model import Node
    from ort_lite.context.payload_store import CheckedPayload
    from ort_lite.context.shared_reading import SharedPayloads
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions

DIGEST_KEY = "session.require_payload_digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedNode:
    """An EPContext node whose payload passed all checks that need no SDK.

    Attributes:
        payload: Every byte is what was written, where a digest is recorded.
        recorded: What the payload was compiled for.
        seal: Set where the node's attributes are not the ones that were written. Raised after the
            comparison of identities, whose message explains an edited version better.
        loaded: The context model, for the command of a hint.
    """

    payload: CheckedPayload
    notes: ContextNotes | None
    recorded: HardwareIdentity
    seal: FormatError | None
    loaded: LoadedModel


class PayloadChecks:
    """Checks of all EPContext nodes of a model against its files; `close` closes the files.

    Nodes are checked when they are asked for, or all of them in a thread once `start` is called:
    digests release the GIL, as loading an SDK's library does not.

    Attributes:
        loaded: The model.
        store: Its payloads; used by the thread alone until it has ended.
    """

    def __init__(
        self, loaded: LoadedModel, options: SessionOptions, group: SharedPayloads | None = None
    ) -> None:
        """Check nothing yet.

        Args:
            loaded: A context model.
            options: Where payloads are, and what is required of them.
            group: Files that other sessions of a group have read.
        """
        base = base_folder(loaded.path, options)
        self.loaded = loaded
        self.store = PayloadStore(base, loaded.path, options, group, proof=loaded.proof)
        self._options = options
        self._nodes: tuple[tuple[Node, EpContextNode], ...] | None = None
        self._primaries: tuple[EpContextNode, ...] | None = None
        self._checked: dict[int, CheckedNode | OrtLiteError] = {}
        self._broken: Exception | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        """Return these checks."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the payload files."""
        self.close()

    def start(self) -> None:
        """Check all nodes in a thread.

        Not for sessions with a read function, which may not be thread-safe, or of a group, whose
        files are read under the group's lock: these check each node when they need it.
        """
        if self._options.read_data is None and not self._options.flag(SHARE_KEY):
            self._thread = start_helper(self._run, "ort_lite payload checks")

    @property
    def nodes(self) -> tuple[tuple[Node, EpContextNode], ...]:
        """Every EPContext node of the model, as it is in the graph and parsed.

        Raises:
            InvalidGraph: One is malformed.
        """
        nodes = self._nodes
        if nodes is None:  # both threads may get here: they parse the same
            self._nodes = nodes = tuple(
                (node, parse_node(node, self.loaded))
                for node in walk_nodes(self.loaded.model.graph)
                if is_context_node(node)
            )
        return nodes

    @property
    def primaries(self) -> tuple[EpContextNode, ...]:
        """The nodes that point to a container themselves: those with main_context 1.

        Raises:
            InvalidGraph: One is malformed.
        """
        if self._primaries is None:
            self._primaries = tuple(parsed for _, parsed in self.nodes if parsed.main_context)
        return self._primaries

    def check(self, node: Node, parsed: EpContextNode) -> CheckedNode:
        """Check one node, unless the thread has.

        Raises:
            InvalidGraph: The payload is missing, misplaced or damaged.
        """
        self._join()
        checked = self._checked.get(id(node))
        if isinstance(checked, OrtLiteError):
            raise checked
        return checked or self._check_node(parsed)

    def close(self) -> None:
        """Close the files once the thread has ended; payloads keep their memory."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.store.close()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._broken is not None:
            raise self._broken

    def _run(self) -> None:
        try:
            self._check_all()
        except Exception as exc:  # noqa: BLE001 - raised again in the session's thread
            self._broken = exc

    def _check_all(self) -> None:
        try:
            nodes = self.nodes
        except OrtLiteError:
            return  # a malformed node; `nodes` raises the error again
        for node, parsed in nodes:
            try:
                checked = self._check_node(parsed)
                self._checked[id(node)] = checked
            except OrtLiteError as exc:
                self._checked[id(node)] = exc
                return  # the session fails with the first error

    def _check_node(self, node: EpContextNode) -> CheckedNode:
        """Check all that can be checked without an SDK.

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
        strict = self._options.flag(DIGEST_KEY)
        try:
            payload = self.store.payload(node, notes, self.primaries, require_digest=strict)
        except FormatError as exc:
            from ort_lite.context.hints import refusal_of  # noqa: PLC0415 - lazy: rare

            raise refusal_of(exc, node.onnx_model_filename, self.loaded, recorded=recorded) from exc
        return CheckedNode(
            payload=payload, notes=notes, recorded=recorded, seal=seal, loaded=self.loaded
        )


def recorded_identity(node: EpContextNode, notes: ContextNotes | None) -> HardwareIdentity:
    """The recorded target of a payload; other producers record fewer fields.

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
    model = options.config.get(PATH_KEY, "") or path
    return os.path.dirname(model) or os.curdir if model is not None else None


def parse_node(node: Node, loaded: LoadedModel) -> EpContextNode:
    """Parse an EPContext node of a model.

    Raises:
        InvalidGraph: It is malformed.
    """
    try:
        return EpContextNode.from_node(node)
    except FormatError as exc:
        from ort_lite.context.hints import refusal_of  # noqa: PLC0415 - lazy: rare

        where = exc.in_file(loaded.description)
        raise refusal_of(where, _name_in(node), loaded) from exc


def _name_in(node: Node) -> str:
    """The recorded name of the original model in a node that may be malformed."""
    attribute = node.attributes.get("onnx_model_filename")
    value = attribute.value if attribute is not None else b""
    return bytes(value).decode(errors="replace") if isinstance(value, bytes | memoryview) else ""
