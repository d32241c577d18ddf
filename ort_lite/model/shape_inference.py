"""Types and shapes of every value, by onnx's inference on a copy without the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import AttributeType, GraphDef, TensorType, ValueInfo
from ctx_formats.type_reader import GraphTypes, read_types
from ort_lite.model.contrib_types import infer_contrib_types, is_contrib
from ort_lite.model.graph import body_definitions
from ort_lite.model.onnx_extension import onnx_extension
from ort_lite.session_log import get_logger
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Attribute, Model, Node, Tensor

log = get_logger(__name__)

KEPT_ELEMENTS = 64
"""Larger constants do not take part: no operator infers a shape from them, and serialising
100 MB of weights takes a hundred times as long as inference itself."""

CHECK_TYPE, STRICT_MODE, DATA_PROP = False, False, True
"""As `onnx.shape_inference.infer_shapes` has them."""

ROUNDS = 16
"""Bound on passes over a model in which ONNX and contrib operators alternate."""


def infer_types(model: Model) -> Model:
    """`model` with functions inlined and `value_info` of every graph as full as it gets.

    Weights are those of `model`, by reference.

    Raises:
        InvalidGraph: onnx finds the model contradicting itself.
    """
    light, heavy = _without_weights(model)
    if model.functions:
        light = _inlined(light)
    light = _inferred(light)
    if _has_contrib(light.graph):
        light = _with_contrib(light)
    graph = light.graph
    kept = [info for info in graph.inputs if info.name not in heavy]
    return replace(
        light,
        graph=replace(
            graph,
            inputs=_original_inputs(model, kept),
            initializers={**graph.initializers, **heavy},
        ),
    )


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


def _inlined(model: Model) -> Model:
    import onnx  # noqa: PLC0415 - takes 0.1 s, and few models have functions
    import onnx.checker  # noqa: PLC0415 - see above
    import onnx.inliner  # noqa: PLC0415 - see above

    from ort_lite.model.function_expansion import check_expansion  # noqa: PLC0415 - see above

    proto = onnx.load_model_from_string(model_bytes(model))
    check_expansion(proto)
    try:
        inlined = onnx.inliner.inline_local_functions(proto)
    except (RuntimeError, onnx.checker.ValidationError) as exc:
        raise InvalidGraph(f"the model's functions cannot be inlined: {exc}") from exc
    return read_model(memoryview(inlined.SerializeToString()))


def _inferred(model: Model) -> Model:
    try:
        data = model_bytes(model)
    except FormatError as exc:
        log.info("no shape inference: %s", exc)
        return model
    inference = onnx_extension().shape_inference
    try:
        found = inference.infer_shapes(data, CHECK_TYPE, STRICT_MODE, DATA_PROP)
    except inference.InferenceError as exc:
        raise InvalidGraph(f"shape inference failed: {exc}") from exc
    return replace(model, graph=_merged(model.graph, read_types(memoryview(found))))


def _merged(graph: GraphDef, inferred: GraphTypes) -> GraphDef:
    """`graph` with the value_info and output types of `inferred`, bodies included.

    Of the nodes, which are those of `graph`, only those with bodies are looked at.
    """
    outputs = {info.name: info for info in inferred.outputs}
    nodes = tuple(
        _merged_node(mine, inferred.node(index)) if body_definitions(mine) else mine
        for index, mine in enumerate(graph.nodes)
    )
    return replace(
        graph,
        nodes=nodes,
        value_info={**graph.value_info, **inferred.value_info},
        outputs=tuple(_refined(info, outputs.get(info.name, info)) for info in graph.outputs),
    )


def _refined(mine: ValueInfo, theirs: ValueInfo) -> ValueInfo:
    """The declared type, with the sizes that inference knows of dimensions declared without."""
    declared, found = mine.type, theirs.type
    if declared is None:
        return theirs
    if not isinstance(declared, TensorType) or not isinstance(found, TensorType):
        return mine
    if declared.shape is None or found.shape is None or len(declared.shape) != len(found.shape):
        return mine
    shape = tuple(
        theirs if isinstance(theirs, int) and not isinstance(mine, int) else mine
        for mine, theirs in zip(declared.shape, found.shape, strict=True)
    )
    return (
        mine
        if shape == declared.shape
        else ValueInfo(mine.name, TensorType(declared.elem_type, shape), mine.doc_string)
    )


def _merged_node(mine: Node, theirs: Node) -> Node:
    changed = {
        name: _merged_attribute(attribute, theirs.attributes[name])
        for name, attribute in mine.attributes.items()
        if attribute.type in (AttributeType.GRAPH, AttributeType.GRAPHS)
        and not attribute.ref_attr_name
    }
    return replace(mine, attributes={**mine.attributes, **changed}) if changed else mine


def _merged_attribute(mine: Attribute, theirs: Attribute) -> Attribute:
    if isinstance(mine.value, GraphDef) and isinstance(theirs.value, GraphDef):
        return replace(mine, value=_merged_body(mine.value, theirs.value))
    if isinstance(mine.value, tuple) and isinstance(theirs.value, tuple):
        pairs = zip(mine.value, theirs.value, strict=True)
        return replace(mine, value=tuple(_merged_body(a, b) for a, b in pairs))
    return mine


def _merged_body(mine: GraphDef, theirs: GraphDef) -> GraphDef:
    found = GraphTypes(theirs.outputs, theirs.value_info, theirs.nodes.__getitem__)
    return _merged(mine, found)


def _has_contrib(graph: GraphDef) -> bool:
    return any(map(is_contrib, graph.nodes))


def _with_contrib(model: Model) -> Model:
    """Alternate our types of com.microsoft operators with onnx's inference until both rest."""
    for _ in range(ROUNDS):
        graph = model.graph
        found = _contrib_types(graph)
        if not found:
            return model
        model = replace(model, graph=replace(graph, value_info={**graph.value_info, **found}))
        model = _inferred(model)
    return model


def _contrib_types(graph: GraphDef) -> Mapping[str, ValueInfo]:
    known = {info.name: info.type for info in (*graph.inputs, *graph.outputs)}
    known.update({name: info.type for name, info in graph.value_info.items()})
    for name, tensor in graph.initializers.items():
        known[name] = TensorType(tensor.data_type, tensor.dims)
    found: dict[str, ValueInfo] = {}
    for node in graph.nodes:
        if not is_contrib(node) or all(known.get(out) for out in node.outputs if out):
            continue
        types = infer_contrib_types(node, [known.get(name) for name in node.inputs])
        for name, value_type in zip(node.outputs, types, strict=False):
            if name and value_type is not None and known.get(name) is None:
                found[name] = ValueInfo(name, value_type)
                known[name] = value_type
    return found
