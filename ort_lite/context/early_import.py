"""Imports the payloads of a context model while the rest of its session is made ready."""

from __future__ import annotations

from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING

from ort_lite.context.importing import release_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.ep_context import EpContextNode
    from ort_lite.context.importing import Imported, Importer
    from ort_lite.execution_provider import ExecutionProvider
    from ort_lite.model.graph import Graph


def may_import_early(primaries: Sequence[EpContextNode], eps: Sequence[ExecutionProvider]) -> bool:
    """Whether every EP whose contexts are pointed to lets another thread import them."""
    willing = {ep.name for ep in eps if ep.imports_without_lock}
    return all(node.source in willing for node in primaries)


class EarlyImport:
    """The EPContext nodes of a graph, imported in a thread of its own; `close` in any case.

    Until `result` the importer and its clock are the thread's.
    """

    def __init__(self, importer: Importer, graph: Graph) -> None:
        """Begin."""
        self.graph = graph
        self._importer = importer
        self._found: tuple[Imported, ...] = ()
        self._failed: BaseException | None = None
        context = copy_context()  # log lines of the thread are the session's, too
        self._thread = Thread(target=context.run, args=(self._run,), name="ort_lite import")
        self._thread.start()

    def result(self) -> tuple[Imported, ...]:
        """What was imported, which is the caller's from now on.

        Raises:
            OrtLiteError: As `Importer.import_all`.
        """
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        found, self._found = self._found, ()
        return found

    def close(self) -> None:
        """Wait for the thread; release what nobody has taken."""
        self._thread.join()
        release_all(self._found)
        self._found = ()

    def _run(self) -> None:
        try:
            self._found = self._importer.import_all(self.graph)
        except BaseException as exc:  # noqa: BLE001 - raised again by `result`
            self._failed = exc
