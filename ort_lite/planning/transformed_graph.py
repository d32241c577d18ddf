"""A graph that is ready to be partitioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.transforms.fusions import Fuser


@dataclass(frozen=True, slots=True)
class TransformedGraph:
    """A graph that is ready to be partitioned.

    Attributes:
        graph: After its transformations.
        fired: How often each transformation changed something.
        fuser: What fuses in its partitions; None where nothing may.
    """

    graph: Graph
    fired: Mapping[str, int] = field(default_factory=dict)
    fuser: Fuser | None = None

    @property
    def fuse(self) -> Callable[[ExecutionProvider, Graph], Graph] | None:
        """Rewrites a partition into what its EP asks for."""
        return None if self.fuser is None else self.fuser.fuse

    def list_fired(self) -> dict[str, int]:
        """How often each transformation and fusion has changed something so far."""
        return {**self.fired, **(self.fuser.fired if self.fuser is not None else {})}
