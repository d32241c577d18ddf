"""All transformations before partitioning, over a model and the bodies in it, by level."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.onnx_model import TensorType
from ort_lite.model.bodies import map_bodies, walk_nodes
from ort_lite.options import GraphOptimizationLevel
from ort_lite.session_log import get_logger
from ort_lite.transforms import (
    cast_like,
    eliminate,
    equal_sizes,
    fold_loops,
    fuse_conv_bn,
    fuse_reshape,
    ifs_to_where,
    inline_if,
    insert_casts,
    loop_ifs,
    loop_invariants,
    loop_states,
    loops_to_lstm,
    move_transposes,
    subexpressions,
    unused,
)
from ort_lite.transforms.eliminate_empty import EMPTY
from ort_lite.transforms.fold_constants import MAX_OUTPUT, Folder
from ort_lite.transforms.known_shapes import CertainShapes
from ort_lite.transforms.mutable_graph import MutableGraph
from ort_lite.transforms.pick_sizes import PICK_SIZES
from ort_lite.transforms.rules import GraphTransformer, RewriteRule, apply_rules
from ort_lite.transforms.tile_to_expand import TILE_TO_EXPAND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import GraphDef, Model, ValueInfo
    from ort_lite.model.shape_inference import Inferred
    from ort_lite.transforms.fold_constants import Evaluate
    from ort_lite.transforms.ifs_to_where import BranchesPay
    from ort_lite.transforms.known_shapes import InferTypes

log = get_logger(__name__)

ROUNDS = 5
"""One transformation makes room for another; so often all of them are tried."""
MAX_DEPTH = 64
"""Bodies inside bodies; deeper ones are left as they are."""
SETTLING_ROUNDS = 12
"""A branch that comes out, or a Loop that becomes a constant, tells inference more, and so settles
the conditions of other branches: so often they are looked at again."""
SIZE_ROUNDS = 16
"""Constants decide the sizes of others, and a layer's sizes those of the next layer: so often types
are inferred again, while that settles any."""
SLOW_ROUNDS = 4
"""From then on a round has to settle a tenth of what is left, for inference is not cheap."""
FIRST_OPEN_INITIALIZERS = 4
"""IR version from which an initializer that is also a graph input may be overridden."""

RULES: tuple[RewriteRule, ...] = (
    *eliminate.RULES,
    *(EMPTY, TILE_TO_EXPAND, PICK_SIZES, fuse_conv_bn.CONV_BN),
)
LAST_RULES: tuple[RewriteRule, ...] = (cast_like.CAST_LIKE,)
"""Run when the others have settled: ONNX Runtime, too, inlines functions after them."""
TIDYING = (unused.REMOVE_NODES, unused.REMOVE_OUTPUTS, unused.REMOVE_INITIALIZERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformSettings:
    """Settings of the transformations, and the function that computes constants.

    Attributes:
        disabled: Names of rules and transformers that are not to run.
        widened: Narrow float types that are to be computed in float32.
        evaluate: Computes constants; None folds none.
        max_constant: Bytes of one folded constant.
        infer: Infers types; None if shapes of values inside a graph are not to be folded.
        certain: See CertainShapes.
        branches_pay: See `ifs_to_where`; None keeps the Ifs.
    """

    level: GraphOptimizationLevel
    disabled: frozenset[str] = frozenset()
    widened: frozenset[int] = frozenset()
    evaluate: Evaluate | None = None
    max_constant: int = MAX_OUTPUT
    infer: InferTypes | None = None
    certain: GraphDef | None = None
    branches_pay: BranchesPay | None = None


@dataclass(frozen=True, slots=True)
class Transformed:
    """A model and what was done to it.

    Attributes:
        fired: How often each rule and transformer changed something, bodies included.
    """

    model: Model
    fired: Mapping[str, int] = field(default_factory=dict)


def transform(model: Model, settings: TransformSettings) -> Transformed:
    """Apply every rule and transformer of the level until none fires.

    Args:
        model: Its nodes sorted, its types inferred, its functions inlined.
        settings: At ORT_DISABLE_ALL only CastLike becomes Cast.
    """
    plain = settings.level < GraphOptimizationLevel.ORT_ENABLE_BASIC
    if plain and all(node.op_type != cast_like.OPERATOR for node in walk_nodes(model.graph)):
        return Transformed(model)
    fired: Counter[str] = Counter()
    if settings.widened and not plain and insert_casts.NAME not in settings.disabled:
        opset = model.opset_imports.get("", 1)
        graph, count = insert_casts.insert_casts(model.graph, opset, settings.widened)
        fired += Counter({insert_casts.NAME: count})
        model = replace(model, graph=graph)
    if not plain and settings.certain is not None and fuse_reshape.NAME not in settings.disabled:
        model, count = fuse_reshape.fuse_reshapes(
            model, settings.certain, constant_inputs=_has_constant_inputs(model)
        )
        fired += Counter({fuse_reshape.NAME: count})
    model = _apply_all(model, settings, fired)
    if not plain and move_transposes.NAME not in settings.disabled:
        model = _move_transposes(model, settings, fired)
    if not plain and settings.infer is not None:
        model = _lift_loops(model, settings, settings.infer, fired)
        model = _settle(model, settings, settings.infer, fired)
        model = _choose_by_where(model, settings, settings.infer, fired)
    for name, count in fired.items():
        log.debug("%s changed %d places of %s", name, count, model.graph.name)
    return Transformed(model, dict(fired))


def _apply_all(model: Model, settings: TransformSettings, fired: Counter[str]) -> Model:
    """`model` after every rule and transformer; `fired` counts them."""
    certain = None
    if settings.infer is not None:
        certain = CertainShapes(model, settings.infer, settings.certain).dims
    work = _Work(settings, transformers(settings), certain)
    graph = work.graph(
        model.graph, model.opset_imports, constant_inputs=_has_constant_inputs(model)
    )
    fired.update(work.fired)
    return model if graph is model.graph else replace(model, graph=graph)


def _apply_inferred(inferred: Inferred, settings: TransformSettings, fired: Counter[str]) -> Model:
    return _apply_all(inferred.model, replace(settings, certain=inferred.certain), fired)


def _move_transposes(model: Model, settings: TransformSettings, fired: Counter[str]) -> Model:
    """`model` with fewer Transposes, and with what then lies side by side folded and fused."""
    opset = model.opset_imports.get("", 1)
    graph, count = move_transposes.move_transposes(
        model.graph, opset, constant_inputs=_has_constant_inputs(model)
    )
    if not count:
        return model
    fired[move_transposes.NAME] += count
    return _apply_all(replace(model, graph=graph), settings, fired)


def _lift_loops(
    model: Model, settings: TransformSettings, infer: InferTypes, fired: Counter[str]
) -> Model:
    """`model` with what the bodies of Loops need not compute again, and LSTMs in place of Loops."""
    if all(node.op_type != "Loop" for node in model.graph.nodes):
        return model
    opsets, constant_inputs = model.opset_imports, _has_constant_inputs(model)
    choose = partial(loop_ifs.ifs_to_logic, opset_imports=opsets, constant_inputs=constant_inputs)
    move = partial(
        loop_invariants.move_invariants, opset_imports=opsets, constant_inputs=constant_inputs
    )
    steps: list[tuple[str, Callable[[GraphDef], tuple[GraphDef, int]]]] = [
        (loop_states.NAME, loop_states.capture_constant_states),
        (loop_ifs.NAME, choose),
        (loop_invariants.NAME, move),
    ]
    if settings.level >= GraphOptimizationLevel.ORT_ENABLE_EXTENDED:
        opset = opsets.get("", 1)
        write = partial(loops_to_lstm.loops_to_lstm, opset=opset, constant_inputs=constant_inputs)
        steps.append((loops_to_lstm.NAME, write))
    for name, change in steps:
        if name in settings.disabled:
            continue
        graph, count = change(model.graph)
        if count:
            fired[name] += count
            model = _apply_inferred(infer(replace(model, graph=graph)), settings, fired)
    return model


def _settle(
    model: Model, settings: TransformSettings, infer: InferTypes, fired: Counter[str]
) -> Model:
    """`model` after whatever sizes settle: others, Loops, and Ifs, whose branches do so, too."""
    model = _settle_sizes(model, settings, infer, fired)
    is_settled = True
    for _ in range(SETTLING_ROUNDS):
        further = _inline_ifs(model, settings, infer, fired)
        if further is model:
            further = _fold_loops(model, settings, infer, fired)
        if further is not model:
            model, is_settled = further, False
            continue
        if is_settled:
            break
        model, is_settled = _settle_sizes(model, settings, infer, fired), True
    return model


def _settle_sizes(
    model: Model, settings: TransformSettings, infer: InferTypes, fired: Counter[str]
) -> Model:
    """`model` after inference again, where folded constants decide sizes.

    PyTorch pads with ConstantOfShape of a size that is computed, and computes positions from the
    sizes of windows; inference knows these once the constants before them are folded.
    """
    enough = 0
    for number in range(SIZE_ROUNDS):
        before = _unsettled_sizes(model.graph)
        if not before or (number > SLOW_ROUNDS and len(before) > enough):
            break
        enough = len(before) * 9 // 10
        inferred = infer(model)
        if _unsettled_sizes(inferred.model.graph) == before:
            break
        model = _apply_inferred(inferred, settings, fired)
    return model


def _unsettled_sizes(graph: GraphDef) -> set[str]:
    """Values of unknown shape that are computed from constants alone, or that Shape reads.

    The latter only where all inputs have known shapes, so that every Shape could be a constant.
    """
    constants = graph.initializers.keys() - {info.name for info in graph.inputs}
    names = {
        name
        for node in graph.nodes
        if all(not name or name in constants for name in node.inputs)
        for name in node.outputs
        if name
    }
    if all(map(_has_fixed_shape, graph.inputs)):
        names |= {node.inputs[0] for node in graph.nodes if node.op_type == "Shape"}
    return {name for name in names if not _has_fixed_shape(graph.value_info.get(name))}


def _has_fixed_shape(info: ValueInfo | None) -> bool:
    shape = info.type.shape if info is not None and isinstance(info.type, TensorType) else None
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def _inline_ifs(
    model: Model, settings: TransformSettings, infer: InferTypes, fired: Counter[str]
) -> Model:
    """`model` with the branches of Ifs whose condition is a constant in place of the Ifs.

    Itself where there is none.
    """
    if inline_if.NAME in settings.disabled:
        return model
    constant_inputs = _has_constant_inputs(model)
    if equal_sizes.NAME not in settings.disabled:
        settled, count = equal_sizes.settle_equal_sizes(
            model, infer, constant_inputs=constant_inputs
        )
        if settled is not None:
            fired[equal_sizes.NAME] += count
            model = _apply_inferred(settled, settings, fired)
    graph, count = inline_if.inline_constant_ifs(model.graph, constant_inputs=constant_inputs)
    if not count:
        return model
    fired[inline_if.NAME] += count
    return _apply_inferred(infer(replace(model, graph=graph)), settings, fired)


def _fold_loops(
    model: Model, settings: TransformSettings, infer: InferTypes, fired: Counter[str]
) -> Model:
    """`model` with constants in place of Loops that read only constants; itself without any."""
    if settings.evaluate is None or fold_loops.NAME in settings.disabled:
        return model
    graph, count = fold_loops.fold_constant_loops(
        model.graph,
        model.opset_imports,
        settings.evaluate,
        max_output=settings.max_constant,
        constant_inputs=_has_constant_inputs(model),
    )
    if not count:
        return model
    fired[fold_loops.NAME] += count
    return _apply_inferred(infer(replace(model, graph=graph)), settings, fired)


def _choose_by_where(
    model: Model, settings: TransformSettings, infer: InferTypes, fired: Counter[str]
) -> Model:
    """`model` with both branches in place of those Ifs that cost more than they save."""
    is_low = settings.level < GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    if settings.branches_pay is None or is_low or ifs_to_where.NAME in settings.disabled:
        return model
    graph, count = ifs_to_where.ifs_to_where(
        model.graph, model.opset_imports, settings.branches_pay, CertainShapes(model, infer).shape
    )
    if not count:
        return model
    fired[ifs_to_where.NAME] += count
    return _apply_inferred(infer(replace(model, graph=graph)), settings, fired)


def _has_constant_inputs(model: Model) -> bool:
    return model.ir_version < FIRST_OPEN_INITIALIZERS


def transformers(settings: TransformSettings) -> tuple[GraphTransformer, ...]:
    """The global transformations, of every level, in the order in which they run."""
    folding: tuple[GraphTransformer, ...] = ()
    if settings.evaluate is not None:
        folder = Folder(settings.evaluate, settings.max_constant)
        folding = (GraphTransformer(name="ConstantFolding", transform=folder.transform),)
    return (
        *folding,
        subexpressions.SHARE_CONSTANTS,
        subexpressions.ELIMINATE,
        *TIDYING,
    )


class _Work:
    """One model's rules, transformers, and what fired."""

    def __init__(
        self,
        settings: TransformSettings,
        transformers: tuple[GraphTransformer, ...],
        shapes: Callable[[str], tuple[int | None, ...] | None] | None,
    ) -> None:
        def runs(step: RewriteRule | GraphTransformer) -> bool:
            return step.level <= settings.level and step.name not in settings.disabled

        self._rules = tuple(rule for rule in RULES if runs(rule))
        self._last = tuple(rule for rule in LAST_RULES if runs(rule))
        self._transformers = tuple(step for step in transformers if runs(step))
        self._shapes = shapes
        self.fired: Counter[str] = Counter()

    def graph(
        self,
        definition: GraphDef,
        opset_imports: Mapping[str, int],
        *,
        constant_inputs: bool = False,
        outer: MutableGraph | None = None,
        depth: int = 0,
    ) -> GraphDef:
        """`definition` transformed, then its bodies, then itself again if they changed."""
        graph = MutableGraph(
            definition,
            opset_imports,
            constant_inputs=constant_inputs,
            outer=outer,
            certain=self._shapes,
        )
        self._settle(graph)
        if depth < MAX_DEPTH and self._bodies(graph, depth):
            self._settle(graph)
        if fired := apply_rules(graph, self._last):
            self.fired += fired
            for step in self._transformers:
                if step in TIDYING:
                    self.fired += Counter({step.name: step.transform(graph)})
        return graph.freeze()

    def _settle(self, graph: MutableGraph) -> None:
        for _ in range(ROUNDS):
            fired = apply_rules(graph, self._rules)
            for step in self._transformers:
                count = step.transform(graph)
                if count:
                    fired[step.name] += count
            if not fired:
                return
            self.fired += fired

    def _bodies(self, graph: MutableGraph, depth: int) -> bool:
        def transform_body(body: GraphDef) -> GraphDef:
            return self.graph(body, graph.opset_imports, outer=graph, depth=depth + 1)

        changed = False
        for index, node in graph.living_nodes():
            new = map_bodies(node, transform_body)
            if new is not node:
                graph.replace(index, new)
                changed = True
        return changed
