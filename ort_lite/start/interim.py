"""What a session runs on while its compile is not done: EPs that compile nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.context.keys import ENABLE_KEY
from ort_lite.ep.interface import SupportsEpContext
from ort_lite.planning.preparation import PreparedGraph
from ort_lite.start.opening import compile_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import Value
    from ort_lite.model.loader import LoadedModel
    from ort_lite.start.opening import Opened, Opening


class InterimGraph(PreparedGraph):
    """A prepared graph that hands over to another one while threads run it.

    A run that has begun ends on the graph that it began on; one that comes later goes to the
    successor. The first graph is released when its last run has ended.
    """

    def __init__(self, first: PreparedGraph) -> None:
        """Take over `first`, whose partitions are this one's from now on."""
        super().__init__(first.graph, first.partitions, first.refusals)
        self._lock = threading.Lock()
        self._running = 0
        self._successor: PreparedGraph | None = None

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """As PreparedGraph, or as the successor does."""
        with self._lock:
            successor = self._successor
            if successor is None:
                self._running += 1
        if successor is not None:
            return successor.run(inputs)
        try:
            return super().run(inputs)
        finally:
            with self._lock:
                self._running -= 1
                last = self._successor is not None and not self._running
            if last:
                self.release()

    def hand_over(self, successor: PreparedGraph) -> None:
        """Let every run that begins from now on be the successor's."""
        with self._lock:
            self._successor = successor
            idle = not self._running
        if idle:
            self.release()


def quick_eps(opening: Opening) -> Opening:
    """The same with those EPs only that keep no compiled form, for they compile nothing long.

    What is written of a model is written of its compiled form, so nothing is here; progress is
    the compile's.
    """
    options = opening.options.snapshot()
    options.add_session_config_entry(ENABLE_KEY, "0")
    options.optimized_model_filepath = ""
    options.set_progress_func(None)
    eps = [ep for ep in opening.eps if not isinstance(ep, SupportsEpContext)]
    return replace(opening, options=options, eps=eps)


def open_interim(loaded: LoadedModel, opening: Opening) -> Opened:
    """`loaded` on the EPs of `quick_eps`, to be handed over.

    Raises:
        NotImplemented: They do not run every node.
        OrtLiteError: As a session on them alone.
    """
    opened = compile_plain(loaded, opening)
    return replace(opened, prepared=InterimGraph(opened.prepared))
