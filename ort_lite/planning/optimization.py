"""Graph transformations of a session: the enabled ones, and the EP that computes constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.ep.interface import FusedNode, GraphView
from ort_lite.model import loader
from ort_lite.model.graph import Graph
from ort_lite.planning.judge_branches import judge_branches
from ort_lite.session_log import get_logger
from ort_lite.status import InvalidArgument, OrtLiteError
from ort_lite.transforms.fold_constants import MAX_OUTPUT
from ort_lite.transforms.pipeline import Transformed, TransformSettings, transform

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ctx_formats.onnx_model import GraphDef, Model
    from ort_lite.ep.interface import ExecutionProvider, Value
    from ort_lite.model.shape_inference import Inferred
    from ort_lite.options import GraphOptimizationLevel, SessionOptions

log = get_logger(__name__)

DISABLED_KEY = "optimization.disable_specified_optimizers"
MAX_CONSTANT_KEY = "optimization.constant_folding_max_output_size_in_bytes"


def settings_of(
    options: SessionOptions,
    eps: Sequence[ExecutionProvider],
    level: GraphOptimizationLevel,
    disabled: Iterable[str] = (),
    *,
    judged: bool = False,
) -> TransformSettings:
    """The transformations that a session's options allow.

    Args:
        options: For `optimization.disable_specified_optimizers` (names separated by ";") and
            `optimization.constant_folding_max_output_size_in_bytes` (0 means our bound).
        eps: The session's; the first says which floats are widened, the last computes
            constants.
        level: Up to which level.
        disabled: More names of rules and transformers that are not to run.
        judged: Whether EPs get only nodes that pay there (`session.placement`).

    Raises:
        InvalidArgument: The size is not a whole number.
    """
    names = {*disabled, *options.config.get(DISABLED_KEY, "").split(";")}
    text = options.config.get(MAX_CONSTANT_KEY, "0")
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgument(f"{MAX_CONSTANT_KEY} is '{text}', expected a number of bytes")
    return TransformSettings(
        level=level,
        disabled=frozenset(name.strip() for name in names if name.strip()),
        widened=eps[0].widened_types if eps else frozenset(),
        evaluate=_Evaluator(eps[-1]).evaluate if eps else None,
        max_constant=int(text) or MAX_OUTPUT,
        infer=_infer_types,
        branches_pay=judge_branches(eps[0], eps[-1]) if judged and len(eps) > 1 else None,
    )


def _infer_types(model: Model) -> Inferred:
    from ort_lite.model.shape_inference import infer_with_certain  # noqa: PLC0415 - lazy: reload

    return infer_with_certain(model)


def optimize_model(
    model: Model,
    free_dimensions: Mapping[str, int],
    settings: TransformSettings,
    inferred: Inferred | None = None,
) -> tuple[Graph, Transformed]:
    """The graph of a plain model, transformed and ready to be partitioned.

    Args:
        model: A plain model.
        free_dimensions: Sizes by name.
        settings: Of the transformations.
        inferred: What `infer_certain` makes of both; None to infer it.

    Raises:
        InvalidGraph: The model contradicts itself.
    """
    inferred = inferred or loader.infer_certain(model, free_dimensions)
    typed = inferred.model
    graph = loader.as_graph(typed)  # refuses what is contradictory, and sorts the nodes
    sorted_model = loader.with_definition(typed, graph)
    certain = inferred.certain if graph.definition.nodes == typed.graph.nodes else None
    done = transform(sorted_model, replace(settings, certain=certain))
    if done.model is sorted_model or done.model.graph is sorted_model.graph:
        return graph, done
    return loader.as_graph(done.model), done


class _Evaluator:
    """Computes graphs without inputs on one EP."""

    def __init__(self, ep: ExecutionProvider) -> None:
        self._ep = ep

    def evaluate(
        self, definition: GraphDef, opset_imports: Mapping[str, int]
    ) -> Sequence[Value] | None:
        """The outputs; None if the EP does not take a node, or one fails."""
        graph = Graph(definition, opset_imports)
        candidates = frozenset(range(len(graph.nodes)))
        if not candidates <= self._ep.get_capability(GraphView(graph, candidates)).supported:
            return None
        try:
            (compiled,) = self._ep.compile([FusedNode(name="constants", graph=graph)])
        except OrtLiteError as exc:
            log.debug("constants are left as they are: %s", exc.message)
            return None
        try:
            return compiled.run([])
        except OrtLiteError as exc:
            log.debug("constants are left as they are: %s", exc.message)
            return None
        finally:
            compiled.release()
