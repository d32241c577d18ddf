"""The decisions of a session with their reasons, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.planning.prepared_graph import Partition, PreparedGraph

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """One node: where it runs, and why not where it was offered before."""

    name: str
    op_type: str
    domain: str
    ep: str
    refusals: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """One partition.

    Attributes:
        graph: "" for the main graph, else the path to the body that it is part of.
        origin: "compiled" here, "context" when it came out of an EPContext node.
        identity: The device and SDK it runs on.
        notes: What its EP says of it at this moment.
    """

    name: str
    ep: str
    graph: str
    origin: str
    nodes: tuple[NodeReport, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    identity: dict[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReport:
    """Everything a session decided.

    Attributes:
        transforms: How often each graph transformation changed something before partitioning.
        signed_by: The model's signers, and whether their signatures are valid; "" if unsigned.
    """

    model: str
    providers: tuple[str, ...]
    partitions: tuple[PartitionReport, ...]
    notes: tuple[str, ...] = ()
    transforms: dict[str, int] = field(default_factory=dict)
    signed_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain dicts and lists with a `schema_version`."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}

    def node_counts(self) -> dict[str, int]:
        """Nodes by EP, main graph and bodies."""
        counts = Counter(n.ep for part in self.partitions for n in part.nodes)
        return {ep: counts[ep] for ep in (*self.providers, *counts) if ep in counts}

    def fallen_nodes(self) -> dict[str, Counter[str]]:
        """For each EP the operators that it was offered and that run elsewhere."""
        counts: dict[str, Counter[str]] = {}
        for part in self.partitions:
            for node in part.nodes:
                for ep in node.refusals:
                    counts.setdefault(ep, Counter())[node.op_type] += 1
        return counts

    def __str__(self) -> str:
        """A few lines for a person."""
        counts = ", ".join(f"{ep} {n}" for ep, n in self.node_counts().items())
        lines = [f"{self.model}: {counts or 'no nodes'}"]
        if self.signed_by:
            lines.append(f"  signed by {self.signed_by}")
        for part in self.partitions:
            ops = Counter(node.op_type for node in part.nodes)
            shown = ", ".join(f"{op} x{n}" for op, n in ops.most_common(6))
            more = f", ... ({len(ops)} operators)" if len(ops) > 6 else ""
            where = f" in {part.graph}" if part.graph else ""
            lines.append(f"  {part.name} [{part.origin}]{where}: {shown}{more}")
            lines += [f"    {note}" for note in part.notes]
        reasons = Counter(
            (ep, node.op_type, why)
            for part in self.partitions
            for node in part.nodes
            for ep, why in node.refusals.items()
        )
        lines += [f"  not on {ep}: {op} x{n}: {why}" for (ep, op, why), n in reasons.items()]
        if self.transforms:
            fired = ", ".join(f"{name} x{n}" for name, n in self.transforms.items())
            lines.append(f"  transformed: {fired}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)


def report(
    prepared: PreparedGraph,
    *,
    model: str,
    providers: tuple[str, ...],
    notes: tuple[str, ...],
    transforms: Mapping[str, int],
    signed_by: str = "",
) -> SessionReport:
    """The report of a prepared graph, bodies included."""
    return SessionReport(
        model=model,
        providers=providers,
        partitions=tuple(_partitions(prepared, "")),
        notes=notes,
        transforms=dict(transforms),
        signed_by=signed_by,
    )


def _partitions(prepared: PreparedGraph, path: str) -> list[PartitionReport]:
    reports = []
    for part in prepared.partitions:
        reports.append(_partition(prepared, part, path))
        for (index, key), body in part.bodies.items():
            node = part.graph.nodes[index]
            reports += _partitions(body, f"{path}/{node.name or node.op_type}.{key}")
    return reports


def _partition(prepared: PreparedGraph, part: Partition, path: str) -> PartitionReport:
    nodes = tuple(
        NodeReport(
            name=prepared.graph.nodes[i].name,
            op_type=prepared.graph.nodes[i].op_type,
            domain=prepared.graph.nodes[i].domain,
            ep=part.ep.name,
            refusals=dict(prepared.refusals.get(i, {})),
        )
        for i in part.nodes
    )
    return PartitionReport(
        name=part.name,
        ep=part.ep.name,
        graph=path,
        origin=part.origin,
        nodes=nodes,
        inputs=tuple(info.name for info in part.graph.inputs),
        outputs=tuple(info.name for info in part.graph.outputs),
        identity=part.ep.identity.to_mapping(),
        notes=part.compiled.notes,
    )
