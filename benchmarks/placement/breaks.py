"""Which operators cut models into pieces on an execution provider, and what would each save?

`python -m benchmarks.placement.breaks EP MODEL.onnx ...`. Nothing is compiled: models are
partitioned by `session.placement=all`, once as they are and once for each operator as if the EP
ran it, too.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import ort_lite as ort
from benchmarks.harness.report import text_table
from ort_lite.ep import Capability, ExecutionProvider, GraphView
from ort_lite.model import loader
from ort_lite.planning.node_work import value_bytes
from ort_lite.planning.optimization import optimize_model, settings_of
from ort_lite.planning.partitioner import assign
from ort_lite.providers import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.ep import CompiledPartition, FusedNode
    from ort_lite.model.graph import Graph

CPU = "CPUExecutionProvider"
COLUMNS = ("model", "operator", "nodes", "pieces", "without", "saves us", "reason")
LEGEND = """
pieces, without: partitions on the EP, bodies included, now and if it ran the operator.
saves us: launches and crossings that would go, each body counted once, by the EP's costs.
reason: the most frequent one.
"""


class Accepting(ExecutionProvider):
    """An EP as if it ran one more operator, bodies included; it only says which nodes it takes."""

    runs_bodies_through_session: ClassVar[bool] = True

    def __init__(self, ep: ExecutionProvider, operator: str) -> None:
        self.name = ep.name  # type: ignore[misc] # one class plays each EP
        self._ep, self._operator = ep, operator

    @property
    def identity(self) -> HardwareIdentity:
        """See ExecutionProvider."""
        return self._ep.identity

    def get_capability(self, view: GraphView) -> Capability:
        """What the EP takes, and every node of the operator."""
        graph = view.graph
        more = {i for i in view.candidates if graph.nodes[i].op_type == self._operator}
        plain = frozenset(i for i in view.candidates if not graph.bodies(i))
        return Capability(self._ep.get_capability(GraphView(graph, plain)).supported | more)

    def compile(self, fused: Sequence[FusedNode]) -> Sequence[CompiledPartition]:
        """See ExecutionProvider."""
        raise NotImplementedError(f"{len(fused)} partitions are only planned here")


def main() -> int:
    """Plan and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("provider", metavar="EP")
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL.onnx")
    arguments = parser.parse_args()
    installed = catalog.entries()
    ep, cpu = (catalog.open_provider(installed[name], {}) for name in (arguments.provider, CPU))
    rows = []
    try:
        for path in arguments.models:
            rows += list(_rows(path, ep, cpu))
    finally:
        ep.release()
        cpu.release()
    rows.sort(key=lambda row: -row[0])
    sys.stdout.write(text_table(COLUMNS, [row[1:] for row in rows]) + LEGEND)
    return 0


def _rows(
    path: Path, ep: ExecutionProvider, cpu: ExecutionProvider
) -> Iterator[tuple[float, str, str, str, str, str, str, str]]:
    options = ort.SessionOptions()
    loaded = loader.load(str(path), options)
    settings = settings_of(options, [ep, cpu], options.graph_optimization_level)
    graph, _ = optimize_model(loaded.model, {}, settings)
    refused: dict[str, Counter[str]] = {}
    pieces, cost = _plan(graph, ep, cpu, refused)
    for operator, reasons in refused.items():
        fewer, less = _plan(graph, Accepting(ep, operator), cpu, {}, ep)
        saved, count = cost - less, reasons.total()
        ((reason, _),) = reasons.most_common(1)
        shown = reason if len(reason) < 60 else f"{reason[:57]}..."
        figures = (str(count), str(pieces), str(fewer), f"{saved:.0f}")
        yield (saved, path.stem, operator, *figures, shown)
    loaded.close()


def _plan(
    graph: Graph,
    ep: ExecutionProvider,
    cpu: ExecutionProvider,
    refused: dict[str, Counter[str]],
    priced: ExecutionProvider | None = None,
) -> tuple[int, float]:
    """Partitions on the EP with those in bodies, and microseconds of launches and crossings."""
    assignment = assign(graph, [ep, cpu])
    costs = (priced or ep).placement_costs()
    pieces, total = 0, 0.0
    for part in assignment.parts:
        inner = graph.extract(part.nodes, "part")
        if part.owner == 0:
            pieces += 1
            ends = (*inner.inputs, *inner.outputs)
            if costs is not None:
                total += costs.launch + costs.crossing * len(ends)
                total += sum(value_bytes(graph, e.name) for e in ends) / costs.crossing_rate
            continue
        for i in part.nodes:
            reason = assignment.refusals.get(i, {}).get(ep.name, "")
            refused.setdefault(graph.nodes[i].op_type, Counter())[reason] += 1
        for i in range(len(inner.nodes)):
            for body in inner.bodies(i).values():
                more, time = _plan(body, ep, cpu, refused, priced)
                pieces, total = pieces + more, total + time
    return pieces, total


if __name__ == "__main__":
    sys.exit(main())
