"""Opens the execution providers of a default list one by one, as far as the model needs them.

A user who names no provider wants the model to run fast, not every SDK to be loaded. So the first
one is opened, and asked. Those behind it are opened only where it leaves nodes that could pay on
one of them (docs/adr/0048-providers-opened-on-demand.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ort_lite.context.keys import ENABLE_KEY
from ort_lite.ep.factory import SupportsLeastCosts, SupportsMissingReason, SupportsStepCosts
from ort_lite.processor import count_usable_cpus
from ort_lite.providers import catalog
from ort_lite.providers.provider_choice import ProviderChoice
from ort_lite.start.placement_option import PAYS, choose_placement
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.model.graph import Graph
    from ort_lite.options import SessionOptions
    from ort_lite.planning.partitioner import Assignment
    from ort_lite.providers.provider_list import ProviderRequest


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """The execution providers of a session that a model needs.

    Attributes:
        opened: Requests of those to be opened, without the first and the default one.
        choice: All names, and why the others are not opened; None where all are.
        assignment: Of the nodes to the first and the default one; None where others are opened.
    """

    opened: tuple[ProviderRequest, ...]
    choice: ProviderChoice | None
    assignment: Assignment | None = None


def may_plan(options: SessionOptions, requests: Sequence[ProviderRequest]) -> bool:
    """Whether the user leaves it to the session which execution providers it opens.

    Each but the first must be able to say from files whether it is here and what it costs at least.
    """
    if len(requests) < 3 or any(request.explicit for request in requests):
        return False
    if options.flag(ENABLE_KEY) or options.custom_kernels or choose_placement(options) != PAYS:
        return False
    installed = catalog.entries()
    return all(
        isinstance(factory := installed[request.name].load(), SupportsLeastCosts)
        and isinstance(factory, SupportsMissingReason)
        for request in requests[1:-1]
    )


def may_move_steps(options: SessionOptions) -> bool:
    """Whether recurrences may go where several threads compute them.

    Not if the user chose a number of threads, and not with a single CPU.
    """
    return not options.intra_op_num_threads and count_usable_cpus() > 1


def plan_providers(
    requests: Sequence[ProviderRequest],
    eps: Sequence[ExecutionProvider],
    transform: Callable[[], Graph],
    *,
    for_many_runs: bool = False,
) -> ProviderPlan:
    """Find out which of the other execution providers a model needs.

    Args:
        requests: All of the session, the default EP last.
        eps: The first and the default one, open.
        transform: Gives the graph that is going to be partitioned.
        for_many_runs: Whether one that runs recurrences faster is opened, although the first one
            runs every node.
    """
    from ort_lite.planning.judge_placement import may_pay  # noqa: PLC0415 - lazy: reload

    first, default = eps
    others = requests[1:-1]
    installed = catalog.entries()
    factories = {request.name: installed[request.name].load() for request in others}
    graph = transform()
    at_home = default.placement_costs()
    assignment = _assign_to_both(graph, first, default)
    left = _left_nodes(graph, assignment)
    faster = find_faster_steps(graph, first, requests) if for_many_runs and not left else ""
    why: dict[str, str] = {}
    for request in others:
        factory = factories[request.name]
        if request.name == faster:
            continue
        if not left:
            why[request.name] = f"{first.name} runs every node"
        elif (
            at_home is not None
            and isinstance(factory, SupportsLeastCosts)
            and not may_pay(graph, factory.least_costs(), at_home, nodes=left)
        ):
            why[request.name] = f"no node that {first.name} leaves is enough work to pay there"
    plan = _make_plan(requests, why, factories)
    return plan if plan.opened else replace(plan, assignment=assignment)


def find_faster_steps(
    graph: Graph, first: ExecutionProvider, requests: Sequence[ProviderRequest]
) -> str:
    """Name of an EP that may run the recurrences of a graph faster than the first one; "" if none.

    Args:
        graph: Every node of it runs on `first`.
        first: Of the session's EPs, open.
        requests: All of the session, as `may_plan` accepts them.
    """
    from ort_lite.planning.faster_steps import compare_steps  # noqa: PLC0415 - lazy: rare

    here, installed = first.placement_costs(), catalog.entries()
    for request in requests[1:-1]:
        factory = installed[request.name].load()
        if here is None or not isinstance(factory, SupportsStepCosts):
            continue
        if compare_steps(graph, here, factory.step_costs()) is not None:
            missing = isinstance(factory, SupportsMissingReason) and factory.missing()
            if not missing:
                return request.name
    return ""


def _assign_to_both(
    graph: Graph, first: ExecutionProvider, default: ExecutionProvider
) -> Assignment | None:
    """The nodes of a graph as both share them; None where another EP has to run some."""
    from ort_lite.planning.judge_placement import Judge  # noqa: PLC0415 - lazy: reload
    from ort_lite.planning.partitioner import assign  # noqa: PLC0415 - lazy: reload

    try:
        return assign(graph, (first, default), judge=Judge(default))
    except NotImplementedByAny:  # another EP may run what these two do not
        return None


def _left_nodes(graph: Graph, assignment: Assignment | None) -> Sequence[int]:
    """Nodes that the first EP does not run, or that do not pay there."""
    if assignment is None:
        return range(len(graph.nodes))
    return [node for part in assignment.parts if part.owner for node in part.nodes]


def _make_plan(
    requests: Sequence[ProviderRequest], why: Mapping[str, str], factories: Mapping[str, object]
) -> ProviderPlan:
    opened = tuple(request for request in requests[1:-1] if request.name not in why)
    if not why:
        return ProviderPlan(opened, None)
    missing = {
        name: factory.missing()
        for name, factory in factories.items()
        if name in why and isinstance(factory, SupportsMissingReason)
    }
    present = [request for request in requests if not missing.get(request.name)]
    choice = ProviderChoice(
        names=tuple(request.name for request in present),
        opened={request.name: request.options for request in present if request.name not in why},
        notes=tuple(
            f"{name} is not opened: {reason}"
            for name, reason in why.items()
            if not missing.get(name)
        ),
    )
    return ProviderPlan(opened, choice)
