"""Checks the payloads of a context model while the execution providers' SDKs are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.context.examination import (
    base_folder,
    context_nodes,
    examine,
    primaries_of,
)
from ort_lite.context.keys import SHARE_KEY
from ort_lite.context.payload_store import PayloadStore
from ort_lite.shortages import start_helper
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from threading import Thread

    from ctx_formats.onnx_model import Node
    from ort_lite.context.examination import Examined
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions


class EarlyExamination:
    """All EPContext nodes of a model, examined in a thread of its own; `close` in any case.

    Digests let go of the interpreter's lock, as loading an SDK's library does not. A user's read
    function is never called from here: it may not expect another thread. What a group of sessions
    shares is read when it is needed, under the group's rules.

    Attributes:
        store: Where payloads are; used by the thread alone until it has ended.
    """

    def __init__(self, loaded: LoadedModel, options: SessionOptions) -> None:
        """Begin."""
        base = base_folder(loaded.path, options)
        self.store = PayloadStore(base, loaded.path, options, proof=loaded.proof)
        self._loaded = loaded
        self._options = options
        self._found: dict[int, Examined | OrtLiteError] = {}
        self._broken: Exception | None = None
        self._thread: Thread | None = None
        if options.read_data is None and not options.flag(SHARE_KEY):
            self._thread = start_helper(self._run, "ort_lite examination")

    def of(self, node: Node) -> Examined | None:
        """What was found; None for a node that was not examined.

        Raises:
            InvalidGraph: As `examine`.
        """
        self._wait()
        found = self._found.get(id(node))
        if isinstance(found, OrtLiteError):
            raise found
        return found

    def close(self) -> None:
        """Let go of the files, once nobody reads them any more."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.store.close()

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._broken is not None:
            raise self._broken

    def _run(self) -> None:
        try:
            self._examine_all()
        except Exception as exc:  # noqa: BLE001 - raised again where it is asked for
            self._broken = exc

    def _examine_all(self) -> None:
        try:
            nodes = context_nodes(self._loaded)
        except OrtLiteError:
            return  # a malformed node; whoever reads it next says so
        primaries = primaries_of(nodes)
        for node, parsed in nodes:
            try:
                self._found[id(node)] = examine(parsed, self.store, primaries, self._options)
            except OrtLiteError as exc:
                self._found[id(node)] = exc
                return  # the session ends with the first
