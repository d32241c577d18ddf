"""First answers from the default execution provider; the others compile for a later run.

A program that runs a model once waits longest for what it needs least: an SDK that loads, and a
compile. docs/adr/0067-compiled-for-later-runs.md.
"""

from __future__ import annotations

import os
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.onnx_model import DataType
from ctx_formats.tensor_size import tensor_bytes
from ort_lite.context.keys import (
    CONTEXT_FALLBACK_KEY,
    ENABLE_KEY,
    SHARE_KEY,
    TRUST_KEY,
    asks_for_cache,
)
from ort_lite.ep.factory import SupportsMissingReason
from ort_lite.options import RUNS_BY_ESTIMATE
from ort_lite.providers import catalog
from ort_lite.providers.provider_list import applied_options
from ort_lite.start.interim_graph import InterimGraph
from ort_lite.start.load_request import BACKGROUND_KEY
from ort_lite.start.placement_option import PAYS, choose_placement
from ort_lite.status import EPFail
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Model
    from ort_lite.ep.interface import ExecutionProvider
    from ort_lite.execution.signature import Signature
    from ort_lite.model.graph import Graph
    from ort_lite.model.shape_inference import Inferred
    from ort_lite.options import SessionOptions
    from ort_lite.providers.provider_list import ProviderRequest
    from ort_lite.start.load_request import LoadRequest
    from ort_lite.start.prepare_model import ModelSource, PreparedModel

MOST_WORK = 500_000
"""Microseconds that a run on the default EP may take by the estimate: OpenVINO loads and compiles
most models in less."""
WORK_BEFORE_COMPILE = 200_000
"""Microseconds, by the estimate, of the runs that the default EP answers: about a compile."""
MOST_RUNS = 8
"""Of these: a program that runs a model more often is likely to do so many times."""
MOST_WEIGHTS = 256 << 20
"""Bytes of weights: the default EP may hold some in a form of its own while the others compile."""
IMAGE_SIZE = 256
"""Of free height and width of an image whose feature maps have the size that estimates assume."""
LOOKED_THROUGH = 64 << 10
"""Bytes at the beginning of a file in which the operator of a compiled model's node is found."""
NEVER_LEFT = (
    ENABLE_KEY,
    SHARE_KEY,
    BACKGROUND_KEY,
    "session.disable_cpu_ep_fallback",
    "session.disable_model_compile",
)
"""Flags that say when to compile, or that the default EP must not run anything."""


def may_wait(options: SessionOptions, requests: Sequence[ProviderRequest], source: object) -> bool:
    """Whether nothing asks for the compile before the session is ready.

    Args:
        options: Of the session.
        requests: All of its execution providers; one that is named is opened at once, so that a
            wrong name or option, or a missing device, is an error of the session.
        source: The model's path or bytes.
    """
    if len(requests) < 2 or any(request.explicit for request in requests):
        return False
    if options.selects_devices or any(map(options.flag, NEVER_LEFT)):
        return False
    if TRUST_KEY in options.config or CONTEXT_FALLBACK_KEY in options.config:
        return False
    # What is kept for later starts is compiled in this one, and what is watched is shown whole.
    if asks_for_cache(options.config, os.environ) or options.optimized_model_filepath:
        return False
    if options.enable_profiling or options.custom_kernels:
        return False
    return choose_placement(options) == PAYS and not _looks_compiled(source)


def _looks_compiled(source: object) -> bool:
    """Whether a model seems to have EPContext nodes, whose SDK loads while the model is read."""
    if isinstance(source, bytes | bytearray | memoryview):
        return b"EPContext" in bytes(source[:LOOKED_THROUGH])
    if not isinstance(source, str | os.PathLike):
        return True
    try:
        with open(source, "rb") as file:  # noqa: PTH123 - a start goes without pathlib
            return b"EPContext" in file.read(LOOKED_THROUGH)
    except OSError:
        return True  # what is wrong with it, loading it says


@dataclass(frozen=True, slots=True)
class WorkOfRun:
    """Estimated time of a run on the default EP, for sizes that a feed determines.

    Attributes:
        microseconds: With the sizes that the estimate assumes for free dimensions.
        elements: Of all inputs, with the assumed sizes.
    """

    microseconds: float
    elements: int

    def is_large(self, elements: int) -> bool:
        """Whether a run with inputs of so many elements takes longer than a compile may."""
        return self.microseconds * max(1.0, elements / max(1, self.elements)) > MOST_WORK

    def runs_before_compile(self) -> int:
        """How many runs take about as long as a compile."""
        return min(MOST_RUNS, max(1, int(WORK_BEFORE_COMPILE / max(1.0, self.microseconds))))


@dataclass(frozen=True, slots=True)
class FirstModel:
    """A model on the default execution provider alone, which is going to be replaced.

    Attributes:
        model: Its graph is an `InterimGraph`.
        signature: Inputs and outputs.
        work: Estimate of a run.
        inferred: The model with its types, which are the same for all execution providers.
    """

    model: PreparedModel
    signature: Signature
    work: WorkOfRun
    inferred: Inferred


def may_answer(model: Model) -> bool:
    """Whether nothing of a model is compiled, typed or transformed yet, and its weights are few."""
    from ort_lite.context.nodes import has_context_nodes  # noqa: PLC0415 - lazy: reload

    if model.kernel_types is not None or has_context_nodes(model.graph):
        return False
    tensors = model.graph.initializers.values()
    sizes = (tensor_bytes(t.data_type, t.dims) for t in tensors if t.data_type != DataType.STRING)
    return sum(sizes) <= MOST_WEIGHTS


def prepare_first(source: ModelSource, request: LoadRequest) -> FirstModel | None:
    """A plain model on the default EP; None if the others have to compile before it runs.

    Args:
        source: The model.
        request: With the default EP alone.

    Raises:
        OrtLiteError: As a session on the default EP.
    """
    from ort_lite.model.loader import infer_certain  # noqa: PLC0415 - lazy: reload
    from ort_lite.start.prepare_model import compile_model, transform_model  # noqa: PLC0415 - lazy: reload

    loaded = source.load_plain()
    with request.clock.phase("transform"):
        inferred = infer_certain(loaded.model, request.options.free_dimensions)
    transformed = transform_model(loaded.model, replace(request, inferred=inferred))
    graph = transformed.graph
    work = _estimate_run(graph, request.eps[0])
    if work is None or work.is_large(work.elements):
        return None
    try:
        model = compile_model(loaded, replace(request, transformed=transformed))
    except NotImplementedByAny:  # another EP may run what the default one does not
        return None
    signature = model.prepared.signature(loaded.model.graph.initializers)
    model = replace(
        model,
        prepared=InterimGraph(model.prepared),
        cache=source.cache_outcome(),
        origin=source.stamps(),
    )
    return FirstModel(model, signature, work, inferred)


def _estimate_run(graph: Graph, home: ExecutionProvider) -> WorkOfRun | None:
    """The work of a run on the default EP; None for a graph with nodes that draw numbers.

    A session goes on with the sequence that it began with.
    """
    from ort_lite.planning.control_inputs import may_have_random_nodes  # noqa: PLC0415 - lazy: reload
    from ort_lite.planning.judge_placement import run_microseconds  # noqa: PLC0415 - lazy: reload

    costs = home.placement_costs()
    if costs is None or may_have_random_nodes(graph):
        return None
    elements = sum(_assumed_elements(graph, info.name) for info in graph.inputs)
    return WorkOfRun(run_microseconds(graph, costs), elements)


def _assumed_elements(graph: Graph, name: str) -> int:
    """Elements of an input with which values inside have about the sizes that estimates assume.

    Values in an image's network are smaller than the image, and those in other networks are not.
    """
    from ort_lite.planning.node_work import ASSUMED_SIZE, is_free, shape_of  # noqa: PLC0415 - lazy: reload

    shape = shape_of(graph, name) or ()
    elements = prod(shape)
    if len(shape) == 4 and is_free(graph, name):
        free = sum(size == ASSUMED_SIZE for size in shape)
        elements *= (IMAGE_SIZE // ASSUMED_SIZE) ** free
    return elements


class DeferredCompile:
    """The compile of a session that the default execution provider answers for at first.

    Attributes:
        source: The model, open; this object's until it is compiled.
        requests: All execution providers of the session.
        inferred: The model with its types.
    """

    def __init__(
        self, source: ModelSource, requests: Sequence[ProviderRequest], runs: int, first: FirstModel
    ) -> None:
        """Keep what the compile needs.

        Args:
            source: See above.
            requests: See above.
            runs: How many runs the default EP answers; RUNS_BY_ESTIMATE to take its estimate.
            first: The model that it runs.
        """
        self.source = source
        self.requests = requests
        self.inferred = first.inferred
        self._work = first.work
        self._runs_left = self._work.runs_before_compile() if runs == RUNS_BY_ESTIMATE else runs

    def note_run(self) -> None:
        """Count a run that the default EP has answered; threads that lose one add a run."""
        self._runs_left -= 1

    def is_due(self, feed: Mapping[str, Any]) -> bool:
        """Whether the others compile before this run: enough have been, or it is a large one.

        Arrays count with their elements, anything else as one.
        """
        if self._runs_left <= 0:
            return True
        return self._work.is_large(sum(getattr(value, "size", 1) for value in feed.values()))

    def list_options(self) -> dict[str, dict[str, str]]:
        """Options by name of the execution providers that seem to be here; it opens none."""
        installed = catalog.entries()
        names = []
        for request in self.requests:
            with suppress(EPFail, KeyError):  # broken, or a name that nothing has
                factory: object = installed[request.name].load()
                if not (isinstance(factory, SupportsMissingReason) and factory.missing()):
                    names.append(request.name)
        return applied_options(self.requests, names)
