"""Plans of a session for input shapes that come again and again.

A model with free dimensions, or with branches that only shapes and flags decide, is one graph for
all shapes. For the shapes at hand it is often a simpler one: shape arithmetic is constant, branches
are settled, and an execution provider gets in one piece what it got in many, or not at all.
docs/adr/0058-specialized-plans.md.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.onnx_model import TensorType
from ort_lite import forks
from ort_lite.context.keys import CACHE_FOLDER_VARIABLE, CACHE_KEY, ENABLE_KEY
from ort_lite.ep.interface import SupportsCompileByShape
from ort_lite.model.fixed_inputs import FixedInputs
from ort_lite.planning.control_inputs import find_control_inputs, is_fixed, may_have_random_nodes
from ort_lite.planning.faster_steps import MOVED
from ort_lite.providers.provider_list import Fallback
from ort_lite.sdk_thread import SdkThread
from ort_lite.session_log import get_logger, logging_as, scope_of
from ort_lite.start.load_report import BackgroundCompile
from ort_lite.start.load_request import BACKGROUND_KEY, LoadClock
from ort_lite.start.plan_providers import find_faster_steps, may_move_steps, may_plan
from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ort_lite.ep.interface import Value
    from ort_lite.model.graph import Graph
    from ort_lite.model_cache.kept_choice import ChoiceRecord
    from ort_lite.options import SessionOptions
    from ort_lite.planning.prepared_graph import PreparedGraph
    from ort_lite.providers.provider_list import ProviderRequest
    from ort_lite.start.load_session import SessionLoader
    from ort_lite.start.prepare_model import PreparedModel

log = get_logger(__name__)

MAX_PLANS = 4
"""Of one session; each holds the weights in the form of its execution provider once more."""
MAX_COUNTED = 64
"""Sets of shapes that are counted; all counts begin again where there are more."""
LEAST_SAVED = 0.1
"""Part of the nodes that must go, where the default EP runs all of them."""

Key = tuple[object, ...]
"""Shapes of all inputs, then the bytes of those that decide branches."""


@dataclass(frozen=True, slots=True)
class SpecializedPlan:
    """The model, ready for one set of input shapes.

    Attributes:
        inputs: Shapes and values that it is for.
        kept: Positions of the session's inputs that it reads.
    """

    inputs: FixedInputs
    model: PreparedModel
    kept: tuple[int, ...]

    def run(self, values: Sequence[Value]) -> Sequence[Value]:
        """The session's outputs for the session's inputs."""
        return self.model.prepared.run([values[position] for position in self.kept])


class SpecializedPlans:
    """The plans of one session, and the thread that makes them one after the other.

    The thread is there while there is something to do, and is not a daemon.
    """

    def __init__(
        self,
        model: PreparedModel,
        loader: SessionLoader,
        source: object,
        requests: Sequence[ProviderRequest],
        least_runs: int,
        kept: Collection[str] = (),
    ) -> None:
        """Count runs from now on.

        Args:
            model: Runs whatever no plan is for.
            loader: The session's.
            source: The model, as the session was given it.
            requests: The execution providers that the session asked for.
            least_runs: With the same shapes before a plan is made.
            kept: Inputs for which the model cache has a plan, which comes with the first such run.
        """
        generic = model.prepared
        self._settled = not _has_shapes_to_fix(generic.graph)
        self._names_of_eps = {part.ep.name for part in generic.partitions}
        self._nodes, self._pieces = count_nodes(generic.graph), count_partitions(generic)
        self._origin = model.origin
        self._loader = loader
        self._source = source
        self._requests = tuple(requests)
        self._least_runs = least_runs
        self._in_cache = frozenset(kept)
        self._names = tuple(info.name for info in generic.graph.inputs)
        control = find_control_inputs(generic.graph)
        self._deciding = tuple(i for i, name in enumerate(self._names) if name in control)
        self._kept = tuple(i for i, name in enumerate(self._names) if name not in control)
        self._lock = threading.RLock()
        self._plans: dict[Key, SpecializedPlan] = {}
        self._counts: dict[Key, int] = {}
        self._thread: SdkThread | None = None
        self._at_work = False
        self._full = False
        self._closed = False
        self._reason = ""
        forks.watch(self)

    def find(self, values: Sequence[Value]) -> SpecializedPlan | None:
        """The plan for these inputs; None if there is none, which counts the run."""
        key = (*[value.shape for value in values], *[values[i].tobytes() for i in self._deciding])
        plan = self._plans.get(key)
        if plan is None and not self._full:
            self._count(key, values)
        return plan

    def _count(self, key: Key, values: Sequence[Value]) -> None:
        with self._lock:
            if key not in self._counts and len(self._counts) >= MAX_COUNTED:
                self._counts.clear()
            count = self._counts.get(key, 0) + 1
            if count == 1 and self._in_cache and str(self._fix(values)) in self._in_cache:
                count = self._least_runs  # an earlier session has met them so often
            self._counts[key] = count
            if count < self._least_runs or self._full or self._is_busy():
                return
            inputs = self._fix(values)
            name = "ort_lite-specialized-plan"
            self._thread = SdkThread(target=self._make, args=(key, inputs), name=name)
            self._at_work = True
            try:
                self._thread.start()
            except RuntimeError as exc:  # no more threads, or the interpreter is on its way out
                self._give_up(str(exc))

    def _fix(self, values: Sequence[Value]) -> FixedInputs:
        return FixedInputs(
            shapes={name: tuple(v.shape) for name, v in zip(self._names, values, strict=True)},
            values={self._names[i]: values[i].copy() for i in self._deciding},
        )

    def _make(self, key: Key, inputs: FixedInputs) -> None:
        with logging_as(scope_of(self._loader.options)):
            try:
                model = self._prepare(inputs)
            except Exception as exc:  # noqa: BLE001 - whatever it is, the session goes on without
                self._give_up(f"for {inputs}: {type(exc).__name__}: {exc}")
                log.info("no plan for %s: %s", inputs, exc)
                return
            self._install(key, SpecializedPlan(inputs, model, self._kept))

    def _prepare(self, inputs: FixedInputs) -> PreparedModel:
        options = self._loader.options.snapshot()
        options.optimized_model_filepath = ""
        options.set_progress_func(None)
        for key in (ENABLE_KEY, BACKGROUND_KEY):
            options.add_session_config_entry(key, "0")
        record = self._find_record(inputs)
        choice = None if record is None else record.choice()
        if record is None or not record.learns:
            options.add_session_config_entry(CACHE_KEY, "0")
        loader = replace(
            self._loader,
            options=options,
            clock=LoadClock(),
            fallback=Fallback(enabled=False),
            sdks_loaded=True,
            plans=choice is None and may_plan(options, self._requests),
            fixed_inputs=inputs,
        )
        model = loader.load(self._source, self._requests, choice).model
        assert model is not None, "it was just loaded"
        if model.origin != self._origin:
            model.release()
            raise Fail("the model's files have changed since the session was made")
        return model.forget_weights()

    def _find_record(self, inputs: FixedInputs | None) -> ChoiceRecord | None:
        """What the model cache knows of the model with these inputs; None without a cache."""
        config = self._loader.options.config
        if CACHE_KEY not in config and CACHE_FOLDER_VARIABLE not in os.environ:
            return None
        from ort_lite.model_cache.kept_choice import find_record  # noqa: PLC0415 - lazy: rare

        loader = self._loader
        return find_record(self._source, loader.options, self._requests, loader.disabled, inputs)

    def _keep(self, plan: SpecializedPlan) -> None:
        """Have the next session of the model begin with this plan, if the cache has it."""
        after_run = plan.model.after_run
        if after_run is not None:
            after_run()
        text = str(plan.inputs)
        if plan.model.cache.state in ("stored", "hit") and text not in self._in_cache:
            record = self._find_record(None)
            if record is not None and record.learns:
                record.keep_inputs(text)

    def _install(self, key: Key, plan: SpecializedPlan) -> None:
        # An earlier session compared it with a graph that had all its nodes.
        is_proven = plan.model.cache.state == "hit" and str(plan.inputs) in self._in_cache
        why = "" if is_proven else self._objection(plan.model)
        with self._lock:
            self._at_work = False
            if self._closed:
                why = "the session was closed"
            if not why:
                self._plans[key] = plan
                self._counts.pop(key, None)
                self._full = len(self._plans) >= MAX_PLANS
        if not why:
            self._keep(plan)
            return
        self._give_up(f"for {plan.inputs}: {why}")
        plan.model.release()

    def _objection(self, model: PreparedModel) -> str:
        """Why a plan is not used; "" if it is."""
        default, pieces = model.eps[-1], count_partitions(model.prepared)
        if pieces > self._pieces:
            return f"it would run in {pieces} partitions instead of {self._pieces}"
        names = {part.ep.name for part in model.prepared.partitions}
        if self._settled and names == self._names_of_eps:
            return "it would run where it runs already"
        if any(part.ep is not default for part in model.prepared.partitions):
            return ""
        after = count_nodes(model.prepared.graph)
        if after <= (1 - LEAST_SAVED) * self._nodes:
            return ""
        return f"it would run {after} of {self._nodes} nodes, all on {default.name}"

    def _give_up(self, reason: str) -> None:
        with self._lock:
            self._at_work = False
            self._full, self._reason = True, reason
            self._counts.clear()

    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()  # it is not, after a fork

    def outcome(self, timeout: float | None = 0.0) -> BackgroundCompile:
        """State after at most `timeout` seconds; None waits until no plan is being made."""
        thread = self._thread
        if thread is not None:
            thread.wait_for_end(timeout)
        if self._is_busy():
            return BackgroundCompile(state="compiling", reason="for shapes that it has met")
        with self._lock:
            return BackgroundCompile(
                state="done" if self._plans else "off", reason="; ".join(self.describe())
            )

    def describe(self) -> tuple[str, ...]:
        """Lines for `explain()`: each plan with its nodes by EP, and why there is no other one."""
        with self._lock:
            lines = [_describe(plan) for plan in self._plans.values()]
            if self._reason:
                lines.append(f"no specialized plan {self._reason}")
        return tuple(lines)

    def models(self) -> tuple[PreparedModel, ...]:
        """The model of each plan."""
        return tuple(plan.model for plan in self._plans.values())

    def lose_threads(self) -> object:
        """Forget plans in a forked process, where threads are missing; see forks.watch."""
        held, self._plans, self._full = self._plans, {}, True
        self._lock = threading.RLock()
        return held

    def release(self) -> None:
        """Release the plans; one that is being made is released once it is ready."""
        with self._lock:
            self._closed = self._full = True
            plans, self._plans = self._plans, {}
            thread = None if self._at_work else self._thread
        if thread is not None:
            thread.wait_for_end()
        for plan in plans.values():
            plan.model.release()


def may_specialize(
    model: PreparedModel, options: SessionOptions, requests: Sequence[ProviderRequest]
) -> bool:
    """Whether plans for shapes could be simpler than this graph, or faster elsewhere.

    Not where all shapes are fixed and no input decides branches, unless another execution provider
    of a default list runs recurrences faster. Not where an execution provider compiles for each set
    of shapes anyway, nor with random nodes: a session goes on with the numbers that it began with.
    """
    prepared = model.prepared
    graph, parts = prepared.graph, prepared.partitions
    if graph.overridable or not all(isinstance(i.type, TensorType) for i in graph.inputs):
        return False
    if any(isinstance(part.compiled, SupportsCompileByShape) for part in parts):
        return False
    if may_have_random_nodes(graph):
        return False
    if _has_shapes_to_fix(graph):
        return True
    if len(parts) != 1 or parts[0].ep is not model.eps[0]:
        return False
    moves = may_plan(options, requests) and may_move_steps(options)
    return moves and bool(find_faster_steps(graph, parts[0].ep, requests))


def _has_shapes_to_fix(graph: Graph) -> bool:
    """Whether a set of shapes, and of values that decide branches, makes the graph another one."""
    return not all(is_fixed(i) for i in graph.inputs) or bool(find_control_inputs(graph))


def count_nodes(graph: Graph) -> int:
    """Nodes of a graph and of the bodies in it."""
    inside = (graph.bodies(index).values() for index in range(len(graph.nodes)))
    return len(graph.nodes) + sum(count_nodes(body) for bodies in inside for body in bodies)


def count_partitions(prepared: PreparedGraph) -> int:
    """Partitions of a graph and of the bodies in it."""
    return sum(1 + sum(map(count_partitions, part.bodies.values())) for part in prepared.partitions)


def _describe(plan: SpecializedPlan) -> str:
    prepared = plan.model.prepared
    counts: dict[str, int] = {}
    for part in prepared.partitions:
        counts[part.ep.name] = counts.get(part.ep.name, 0) + len(part.nodes)
    nodes = ", ".join(f"{ep} {count}" for ep, count in counts.items())
    lines = [f"specialized plan for {plan.inputs}: {nodes or 'no nodes'}"]
    first = plan.model.eps[0].name
    reasons = {reasons.get(first, "") for reasons in prepared.refusals.values()}
    lines += [f"{first}: {reason}" for reason in sorted(reasons) if MOVED in reason]
    return "; ".join(lines)
