"""Types and shapes of every value, by onnx's inference on a copy without the weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import Attribute, AttributeType, GraphDef, TensorType, ValueInfo
from ctx_formats.type_reader import GraphTypes, read_types
from ort_lite.extension_module import onnx_extension
from ort_lite.model.bodies import bodies, map_nodes, with_bodies
from ort_lite.model.ceil_pools import (
    hide_ceil_pools,
    infer_ceil_pool,
    is_ceil_pool,
    show_ceil_pools,
)
from ort_lite.model.contrib_types import infer_contrib_types, infer_simple_types, is_contrib
from ort_lite.model.declarations import fill_types, loosen_shapes, show_outputs
from ort_lite.model.declared_types import contradict, merge_types, remove_declarations, says_more
from ort_lite.model.graph import declared_types
from ort_lite.model.inference_bounds import bounds_of
from ort_lite.model.long_attributes import without_long_lists
from ort_lite.model.negative_sizes import without_negative_sizes
from ort_lite.model.node_schemas import check_attributes
from ort_lite.model.short_symbols import with_original_symbols, with_short_symbols
from ort_lite.model.varying import varying_values, without_shapes
from ort_lite.model.vector_bounds import MOST_ELEMENTS, is_settled, vector_elements
from ort_lite.model.visible_constants import show_constants
from ort_lite.session_log import get_logger
from ort_lite.status import Fail, InvalidGraph, InvalidProtobuf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import ModelProto

    from ctx_formats.onnx_model import Model, Node, Tensor, ValueType
    from ort_lite.status import OrtLiteError

log = get_logger(__name__)

KEPT_ELEMENTS = 64
"""Larger constants do not take part: no operator infers a shape from them, and serialising
100 MB of weights takes a hundred times as long as inference itself."""

ONNX_DOMAINS = frozenset(("", "ai.onnx", "ai.onnx.ml"))
ROUNDS = 16
"""Bound on passes over a model in which ONNX and contrib operators alternate."""
_MISTAKEN = ("(op_type:MeanVarianceNormalization",)
"""Operators whose own inference fails in onnx 1.23 for nodes that are right: the Constant nodes of
their function bodies have an attribute in the wrong place."""
_SHADOWED = (
    "Inferred shape and existing shape differ",
    "differs from existing elem type",
    "Mismatched type: inferred=",
)
"""About a value whose name means something else further out, as initializers of branches may; for
values inside the graph no type was declared that inference could differ from."""
_INVALID = ("not in range [min=", "has unsupported type", "marked single but has an empty string")
"""In messages about what a node is; the others are about what its inputs are."""
_NODE = re.compile(r"\(op_type:(?P<op>[^,)]*)(?:, node name: (?P<name>.*?))?\): (?=\S)")
_SUMMARY = re.compile(r"^\[ShapeInferenceError\] (?:Inference error\(s\): )?(?=\(op_type:)")


@dataclass(frozen=True, slots=True)
class Inferred:
    """A model with types.

    Attributes:
        model: Its functions inlined, its `value_info` full.
        certain: A graph of the same values whose types follow from the model's inputs alone,
            whatever the file declares of others; None where only a further inference tells.
    """

    model: Model
    certain: GraphDef | None


def infer_types(model: Model, *, strict: bool = False) -> Model:
    """The model of `infer_with_certain`, which has the arguments and errors."""
    return infer_with_certain(model, strict=strict).model


def infer_with_certain(model: Model, *, strict: bool = False) -> Inferred:
    """`model` with functions inlined and `value_info` of every graph as full as it gets.

    What the file declares of values inside counts where inference finds nothing. Weights are
    those of `model`, by reference. Outputs have the types that a session shows; where these
    are not what inference finds, `value_info` has what it finds besides.

    Args:
        model: Its nodes sorted, if `strict`.
        strict: Whether to refuse nodes that contradict their schemas or inputs.

    Raises:
        InvalidGraph: A node is not as its operator's schema has it, or shapes would fill the
            memory.
        Fail: Inputs of a node do not fit each other or its attributes, or a declared element
            type is not the one that its node makes.
    """
    light, heavy = _without_weights(model)
    if model.functions:
        light = _inline_functions(light)
    if strict:
        check_attributes(light)
    usual = with_short_symbols(without_negative_sizes(light.graph))
    light = replace(light, graph=map_nodes(usual, _with_onesided))
    inferred, certain = _infer_with_declarations(hide_ceil_pools(light), heavy, strict=strict)
    graph = with_original_symbols(show_ceil_pools(inferred.graph), model.graph)
    kept = [info for info in graph.inputs if info.name not in heavy]
    graph = replace(
        graph,
        inputs=_original_inputs(model, kept),
        initializers={**graph.initializers, **heavy},
    )
    return Inferred(replace(light, graph=graph), certain)


def _infer_with_declarations(
    model: Model, heavy: Mapping[str, Tensor], *, strict: bool
) -> tuple[Model, GraphDef | None]:
    """`model` with what inference finds without its declarations, then with what is missing.

    Returns:
        The model, and the graph with the former alone, see `Inferred`.
    """
    declared, names = model.graph, frozenset[str]()
    bare, inferred = _infer_filled(model, strict=strict)
    certain = None if any(map(is_ceil_pool, declared.nodes)) else bare.graph
    for _ in range(ROUNDS):
        loose = loosen_shapes(model.graph, inferred.graph)
        if loose is model.graph:
            known, names = names, varying_values(inferred.graph, bare.graph, names)
            if names == known:
                break
            loose = without_shapes(loose, names)
        model = replace(model, graph=loose)
        bare, inferred = _infer_filled(model)
    constants = {**model.graph.initializers, **heavy}
    makers: dict[str, ValueType] = {
        info.name: info.type for info in model.graph.inputs if info.type is not None
    }
    makers.update({n: TensorType(t.data_type, t.dims) for n, t in constants.items()})
    return replace(inferred, graph=show_outputs(declared, inferred.graph, makers)), certain


def _infer_filled(model: Model, *, strict: bool = False) -> tuple[Model, Model]:
    """`model` with what inference finds alone, and with what is declared where it is blind.

    Args:
        model: With or without types of values inside.
        strict: As for `infer_types`.
    """
    bare = replace(model, graph=remove_declarations(model.graph))
    inferred = _infer(bare, strict=strict)
    if any(map(_is_foreign, model.graph.nodes)):
        inferred = _with_foreign(bare, inferred, declared_types(model.graph))
    filled = fill_types(inferred.graph, model.graph)
    if filled is inferred.graph:
        return inferred, inferred
    return inferred, _infer(replace(inferred, graph=filled))


def _original_inputs(model: Model, kept: list[ValueInfo]) -> tuple[ValueInfo, ...]:
    """Inputs in the model's order: those backed by a heavy initializer come back in place."""
    by_name = {info.name: info for info in kept}
    return tuple(by_name.get(info.name, info) for info in model.graph.inputs)


def _without_weights(model: Model) -> tuple[Model, dict[str, Tensor]]:
    """The model with large initializers as graph inputs, and those initializers."""
    graph = model.graph
    heavy = {n: t for n, t in graph.initializers.items() if _elements(t) > KEPT_ELEMENTS}
    declared = {info.name for info in graph.inputs}
    added = tuple(
        ValueInfo(name, TensorType(tensor.data_type, tensor.dims))
        for name, tensor in heavy.items()
        if name not in declared
    )
    rest = {n: t for n, t in graph.initializers.items() if n not in heavy}
    light = replace(graph, inputs=graph.inputs + added, initializers=rest)
    return replace(model, graph=light), heavy


def _elements(tensor: Tensor) -> int:
    count = 1
    for dim in tensor.dims:
        count *= dim
    return count


def _inline_functions(model: Model) -> Model:
    import onnx  # noqa: PLC0415 - lazy: rare
    import onnx.checker  # noqa: PLC0415 - lazy: rare
    import onnx.inliner  # noqa: PLC0415 - lazy: rare
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - lazy: rare

    from ort_lite.model.function_expansion import check_expansion  # noqa: PLC0415 - lazy: rare

    # A function of an operator's name does not replace the operator, as in onnxruntime.
    own = tuple(f for f in model.functions if f.domain not in ONNX_DOMAINS)
    try:
        proto = onnx.load_model_from_string(model_bytes(replace(model, functions=own)))
    except DecodeError as exc:  # functions are decoded where they are used
        raise InvalidProtobuf(f"a function of the model cannot be read: {exc}") from exc
    check_expansion(proto)
    align_opsets(proto)
    try:
        inlined = onnx.inliner.inline_local_functions(proto)
    except (RuntimeError, onnx.checker.ValidationError) as exc:
        raise InvalidGraph(f"the model's functions cannot be inlined: {exc}") from exc
    try:
        return read_model(memoryview(inlined.SerializeToString()))
    except FormatError as exc:  # of a function's body
        raise InvalidProtobuf(f"a function of the model cannot be read: {exc}") from exc


def _infer(model: Model, *, strict: bool = False) -> Model:
    """`model` with what onnx's inference finds, first without following the elements of shapes.

    They are followed where that can find more, and does not fill the memory.

    Args:
        model: With or without types.
        strict: As for `infer_types`.
    """
    bounds = bounds_of(model.graph)
    bounds.require_writable()
    try:
        shown = show_constants(without_long_lists(model.graph))
        data = model_bytes(replace(model, graph=shown))
    except FormatError as exc:
        log.info("no shape inference: %s", exc)
        return model
    inferred = replace(model, graph=_by_onnx(model.graph, data, follow=False, strict=strict))
    if is_settled(inferred.graph) or not bounds.may_propagate():
        return inferred
    if vector_elements(inferred.graph) > MOST_ELEMENTS:
        log.info("shapes are inferred without following their elements: vectors are too long")
        return inferred
    return replace(model, graph=_by_onnx(model.graph, data, follow=True))


def _with_onesided(node: Node) -> Node:
    """An STFT with its attribute `onesided` written: onnx infers the shape of 0 without it.

    Its default is 1 (ONNX STFT-17), which makes half as many bins.
    """
    if node.op_type != "STFT" or "onesided" in node.attributes:
        return node
    onesided = Attribute("onesided", AttributeType.INT, 1)
    return replace(node, attributes={**node.attributes, "onesided": onesided})


def _by_onnx(graph: GraphDef, data: bytes, *, follow: bool, strict: bool = False) -> GraphDef:
    """`graph`, of the encoded model `data`, with the types that onnx's inference finds."""
    inference = onnx_extension().shape_inference
    try:
        inferred = inference.infer_shapes(data, strict, strict, follow)
    except inference.InferenceError as exc:
        error = (
            inference_error(str(exc)) if strict else InvalidGraph(f"shape inference failed: {exc}")
        )
        if error is not None:
            raise error from exc
        return _by_onnx(graph, data, follow=follow)
    except ValueError as exc:  # of an element type that onnx does not know
        raise InvalidGraph(f"shape inference failed: {exc}") from exc
    return _merge_types(graph, read_types(memoryview(inferred)))


def _merge_types(graph: GraphDef, inferred: GraphTypes) -> GraphDef:
    """`graph` with the value_info and output types of `inferred`, bodies included.

    Of the nodes, which are those of `graph`, only those with bodies are looked at.
    """
    outputs = {info.name: info for info in inferred.outputs if _is_known(info)}
    values = {name: info for name, info in inferred.value_info.items() if _is_known(info)}
    nodes = list(graph.nodes)
    for index, node in enumerate(nodes):
        named_bodies = bodies(node)
        if named_bodies:
            pairs = zip(named_bodies, inferred.bodies(index), strict=True)
            nodes[index] = with_bodies(
                node, [_merge_types(body, types) for (_, body), types in pairs]
            )
    return replace(
        graph,
        nodes=tuple(nodes),
        value_info={**graph.value_info, **values},
        outputs=tuple(_refine(info, outputs.get(info.name, info)) for info in graph.outputs),
    )


def _is_known(info: ValueInfo) -> bool:
    """Whether inference says anything: of a Constant with a sparse value onnx says data type 0."""
    return not isinstance(info.type, TensorType) or info.type.elem_type != 0


def _refine(mine: ValueInfo, theirs: ValueInfo) -> ValueInfo:
    """The declared type, with the sizes that inference knows of dimensions declared without."""
    declared, inferred = mine.type, theirs.type
    if declared is None:
        return theirs
    if not isinstance(declared, TensorType) or not isinstance(inferred, TensorType):
        return mine
    if (
        declared.shape is None
        or inferred.shape is None
        or len(declared.shape) != len(inferred.shape)
    ):
        return mine
    shape = tuple(
        theirs if isinstance(theirs, int) and not isinstance(mine, int) else mine
        for mine, theirs in zip(declared.shape, inferred.shape, strict=True)
    )
    return (
        mine
        if shape == declared.shape
        else ValueInfo(mine.name, TensorType(declared.elem_type, shape), mine.doc_string)
    )


def _is_foreign(node: Node) -> bool:
    """Whether onnx's inference does not know a node's operator."""
    return is_contrib(node) or node.domain not in ONNX_DOMAINS


def _with_foreign(bare: Model, inferred: Model, declared: Mapping[str, ValueType]) -> Model:
    """Alternate our types of com.microsoft operators with onnx's inference until both rest.

    What the file declares of results of operators that onnx does not know saves rounds; it is
    given up where it contradicts our types.

    Args:
        bare: The model without what it declares of values inside.
        inferred: What inference made of it.
        declared: Types by the file.
    """
    seeds: dict[str, ValueInfo] = {}
    for _ in range(ROUNDS):
        more = _foreign_types(inferred.graph, declared, seeds)
        if more == seeds:
            break
        seeds = more
        inferred = _infer(replace(bare, graph=_seed(bare.graph, seeds)))
    return inferred


def _seed(graph: GraphDef, seeds: Mapping[str, ValueInfo]) -> GraphDef:
    return replace(
        graph,
        value_info=seeds,
        outputs=tuple(seeds.get(info.name, info) for info in graph.outputs),
    )


def _foreign_types(
    graph: GraphDef, declared: Mapping[str, ValueType], seeds: Mapping[str, ValueInfo]
) -> dict[str, ValueInfo]:
    known: dict[str, ValueType] = declared_types(graph)
    for name, tensor in graph.initializers.items():
        known[name] = TensorType(tensor.data_type, tensor.dims)
    infos = dict(seeds)
    for node in graph.nodes:
        if not _is_foreign(node):
            _pass_on(node, known)
            continue
        computed: Sequence[ValueType | None] = (None,) * len(node.outputs)
        if is_ceil_pool(node):
            computed = infer_ceil_pool(node, [known.get(name) for name in node.inputs])
        elif is_contrib(node):
            computed = infer_contrib_types(node, [known.get(name) for name in node.inputs])
        for name, value_type in zip(node.outputs, computed, strict=True):
            old = infos.get(name)
            if not name:
                continue
            best = merge_types(value_type, declared.get(name), frozenset())
            if best is not None and (
                old is None or contradict(old.type, value_type) or says_more(best, old.type)
            ):
                infos[name] = ValueInfo(name, best)
                known[name] = best
    return infos


def _pass_on(node: Node, known: dict[str, ValueType]) -> None:
    """Note what a node of ONNX makes of types that inference has not seen yet.

    So a chain of operators of both kinds is known after one round, unless others are in it.
    """
    inferred = infer_simple_types(node, [known.get(name) for name in node.inputs])
    for name, value_type in zip(node.outputs, inferred, strict=True):
        old = known.get(name)
        if name and value_type is not None and (old is None or says_more(value_type, old)):
            known[name] = value_type


def inference_error(text: str) -> OrtLiteError | None:
    """The error for a message of `infer_shapes` in its strict mode.

    Returns:
        None if part of the message is about nodes that are right all the same, for then the
        rest may be, too: what such nodes make has no type.
    """
    lines = [line for line in _SUMMARY.sub("", text).split("\n") if line]
    if any(line.startswith(_MISTAKEN) or _is_shadowed(line) for line in lines):
        return None
    message = _NODE.sub(lambda m: f"Node ({m['name'] or ''}) Op ({m['op']}) ", lines[0])
    if any(part in lines[0] for part in _INVALID):
        return InvalidGraph(f"This is an invalid model. {message}")
    return Fail(message)


def _is_shadowed(line: str) -> bool:
    return any(part in line for part in _SHADOWED)


def align_opsets(model: ModelProto) -> None:
    """Give functions the opset versions of the model, and the model what only functions import.

    `onnx.inliner` does not inline a function of other versions. In a valid model they make no
    difference (onnx.proto demands that both have the same schema for each node of the function),
    and onnxruntime 1.31.1 gives the nodes of all functions the model's: a Softmax without an axis
    in a function of opset 12 runs over the last axis in a model of opset 13.
    """
    of_model = {_domain(opset.domain): opset.version for opset in model.opset_import}
    for function in model.functions:
        for opset in function.opset_import:
            domain = _domain(opset.domain)
            if domain not in of_model:
                of_model[domain] = opset.version
                model.opset_import.add(domain=domain, version=opset.version)
            opset.version = of_model[domain]


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
