"""Rules and words about nodes that fell to the default execution provider."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ort_lite.options import SessionOptions
    from ort_lite.planning.prepared_graph import Partition, PreparedGraph

SHOWN = 5
NO_FALLBACK_KEY = "session.disable_cpu_ep_fallback"


def all_partitions(prepared: PreparedGraph) -> Iterator[Partition]:
    """Every partition, those of bodies included."""
    for part in prepared.partitions:
        yield part
        for body in part.bodies.values():
            yield from all_partitions(body)


def check_placement(prepared: PreparedGraph, options: SessionOptions) -> None:
    """Enforce `session.disable_cpu_ep_fallback`, in bodies too (ONNX Runtime: main graph).

    Raises:
        Fail: A node is on the default EP.
    """
    if not options.flag(NO_FALLBACK_KEY):
        return
    fallen = [
        n for p in all_partitions(prepared) if p.ep.name == DEFAULT_PROVIDER for n in p.graph.nodes
    ]
    if fallen:
        counts = Counter(node.op_type for node in fallen)
        shown = ", ".join(f"{op} x{n}" for op, n in counts.most_common(SHOWN))
        raise Fail(
            "This session contains graph nodes that are assigned to the default CPU EP, but "
            "fallback to CPU EP has been explicitly disabled by the user. "
            f"Nodes: {shown}."
        )


def placement_line(prepared: PreparedGraph, model: str) -> str | None:
    """One line on what another EP was asked to run and the default EP runs; None if nothing."""
    total = count = faster = 0
    fallen: Counter[tuple[str, str]] = Counter()
    eps: dict[str, None] = {}
    for part, index in _main_nodes(prepared):
        total += 1
        if part.ep.name != DEFAULT_PROVIDER:
            continue
        reasons = prepared.refusals.get(index, {})
        refused = _without_left(reasons)
        count += bool(refused)
        faster += len(refused) < len(reasons)
        for ep, reason in refused.items():
            eps[ep] = None
            fallen[(prepared.graph.nodes[index].op_type, reason)] += 1
    if not fallen:
        return None
    shown = "; ".join(f"{op} x{n} ({why})" for (op, why), n in fallen.most_common(SHOWN))
    more = f"; and {len(fallen) - SHOWN} more" if len(fallen) > SHOWN else ""
    left = f"; {faster} nodes are faster there" if faster else ""
    return (
        f"{model}: {count} of {total} nodes run on {DEFAULT_PROVIDER} and not on "
        f"{', '.join(eps)}: {shown}{more}{left}. session.explain() lists them."
    )


def _without_left(reasons: Mapping[str, str]) -> Mapping[str, str]:
    """Reasons of EPs that could not run a node, without those that leave it for speed."""
    if not reasons:
        return reasons
    from ort_lite.planning.left_nodes import is_left  # noqa: PLC0415 - lazy: rare

    return {ep: reason for ep, reason in reasons.items() if not is_left(reason)}


def _main_nodes(prepared: PreparedGraph) -> Iterator[tuple[Partition, int]]:
    for part in prepared.partitions:
        for index in part.nodes:
            yield part, index
