"""What preparing a graph needs besides the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.execution_provider import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.planning.partitioner import Part
    from ort_lite.planning.preparation import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """The EPs and rules of a session.

    Attributes:
        eps: In order of preference, the default EP last.
        forbid_compile: `session.disable_model_compile`.
        progress: Called with (partition name, how many are done, how many there are at this
            level) before each compile; an exception from it cancels.
        canceled: Whether the caller has asked to stop; asked before each compile.
        settle: For a context model: gives the partitions of a graph that are EPContext nodes;
            EPs that keep contexts are then offered nothing else.
        fuse: Rewrites a partition into what its EP asks for; inputs and outputs stay.
        names: How often each `<EP>_<metadef>` was given out in this session.
    """

    eps: Sequence[ExecutionProvider]
    forbid_compile: bool = False
    progress: Callable[[str, int, int], None] | None = None
    canceled: Callable[[], bool] = lambda: False
    settle: Callable[[Graph], Mapping[Part, Partition]] | None = None
    fuse: Callable[[ExecutionProvider, Graph], Graph] | None = None
    names: dict[str, int] = field(default_factory=dict)

    def partition_name(self, ep: str, subgraph: Graph) -> str:
        """`<EP>_<metadef>_<id>`: the id counts partitions of one content."""
        from ort_lite.planning.naming import metadef_id  # noqa: PLC0415 - for what is compiled

        base = f"{ep}_{metadef_id(subgraph)}"
        count = self.names.get(base, 0)
        self.names[base] = count + 1
        return f"{base}_{count}"
