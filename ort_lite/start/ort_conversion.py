"""A plain model as a file in the ORT format, ready for onnxruntime: types, defaults, functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.atomic_write import create_sibling_file, publish
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from ctx_formats.model_reader import read_model
from ctx_formats.model_writer import encode_model, model_bytes
from ctx_formats.onnx_model import DataType, TensorType, ValueInfo
from ctx_formats.ort_model_writer import encode_ort_model
from ctx_formats.signatures import without_signatures
from ort_lite.model import loader
from ort_lite.model.bodies import map_bodies, walk_nodes
from ort_lite.model.lift_constants import lift_constants
from ort_lite.model.ort_schemas import find_ort_schema, has_half_kernel, is_inlined
from ort_lite.options import GraphOptimizationLevel
from ort_lite.start.body_types import declare_body_inputs
from ort_lite.start.cast_halves import cast_halves
from ort_lite.status import Fail
from ort_lite.transforms.pipeline import TransformSettings, transform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ctx_formats.onnx_model import GraphDef, Model, Node
    from ctx_formats.ort_operators import OrtOperator
    from ort_lite.model.ort_schemas import OrtSchema

_ROUNDS = 8
"""Functions whose bodies use functions; onnx's go two deep."""
_FIRST_CONTRIB = 1
_FIRST_IR_VERSION = 3


def encode_ort(model: Model) -> Sequence[bytes | memoryview]:
    """The pieces of a file in the ORT format that onnxruntime loads and runs.

    Args:
        model: A plain model, its data in memory.

    Raises:
        Fail: The format cannot hold it, or ONNX Runtime does not know an operator.
        InvalidGraph: The model contradicts itself.
    """
    model = _inline_functions(_complete(model))
    model = replace(model, graph=cast_halves(model.graph, _half_kernels(model)))
    schemas = _find_schemas(model)
    graph = _fill_defaults(model.graph, schemas)
    opsets = {**model.opset_imports}
    if any(domain == "com.microsoft" for domain, _ in schemas):
        opsets.setdefault("com.microsoft", _FIRST_CONTRIB)
    operators: dict[tuple[str, str], OrtOperator] = {k: s.operator for k, s in schemas.items()}
    try:
        return encode_ort_model(replace(model, graph=graph, opset_imports=opsets), operators)
    except FormatError as exc:
        raise Fail(f"the model cannot be written in the ORT format: {exc}") from exc


def write_ort_file(model: Model, path: Path) -> None:
    """Write a plain model in the ORT format; the file appears whole or not at all.

    Raises:
        Fail: It cannot be written; as `encode_ort`, nothing is written then.
        InvalidGraph: The model contradicts itself.
    """
    _write_pieces(encode_ort(model), path)


def write_onnx_file(model: Model, path: Path) -> None:
    """Write a model, out of the ORT format perhaps, in ONNX; whole or not at all.

    Raises:
        Fail: It cannot be written, or is over 2 GiB.
    """
    metadata = without_signatures(model.metadata_props)
    try:
        pieces = encode_model(replace(as_onnx_model(model), metadata_props=metadata))
    except FormatError as exc:
        raise Fail(f"the model cannot be written in ONNX: {exc}") from exc
    _write_pieces(pieces, path)


def _write_pieces(pieces: Sequence[bytes | memoryview], path: Path) -> None:
    try:
        with create_sibling_file(path) as (file, temporary):
            for piece in pieces:
                file.write(piece)
        publish(temporary, path, replace=True)
    except OSError as exc:
        raise Fail(f"the model {path} cannot be written: {exc}") from exc


def as_onnx_model(model: Model) -> Model:
    """A model out of the ORT format as an ONNX model: with names of graphs, and what it uses alone.

    The ORT format has no name of a graph, and ONNX Runtime lists every domain that it knows.
    """
    used = {node.domain for node in walk_nodes(model.graph)} | {""}
    opsets = {domain: v for domain, v in model.opset_imports.items() if domain in used}
    graph = model.graph if model.graph.name else replace(model.graph, name="graph")
    return replace(
        model,
        graph=graph,
        ir_version=max(model.ir_version, _FIRST_IR_VERSION),
        opset_imports=opsets,
        kernel_types=None,
    )


def _complete(model: Model) -> Model:
    """The model with constants lifted, a type for each value, and nodes in order."""
    typed = loader.infer_model(replace(model, kernel_types=None), {})
    declared = declare_body_inputs(typed.graph)
    if declared is not typed.graph:
        typed = loader.infer_model(replace(typed, graph=declared), {})
    typed = loader.with_definition(typed, loader.as_graph(typed))
    # CastLike, which ONNX Runtime has no kernel for, becomes Cast.
    settings = TransformSettings(level=GraphOptimizationLevel.ORT_DISABLE_ALL)
    model = transform(typed, settings).model
    # ONNX Runtime has no kernel for Constant.
    graph = lift_constants(model.graph, outputs_too=True)
    return replace(model, graph=graph, functions=())


def _inline_functions(model: Model) -> Model:
    """`model` without the operators that ONNX Runtime runs only as their schema's function.

    Raises:
        Fail: One remains, as onnx has no function for its types.
    """
    for _ in range(_ROUNDS):
        names = _list_inlined(model)
        if not names:
            return model
        import onnx  # noqa: PLC0415 - lazy: rare
        import onnx.inliner  # noqa: PLC0415 - lazy: rare

        weights = model.graph.initializers
        typed = replace(model, graph=_declare_constants(model.graph))
        proto = onnx.load_model_from_string(model_bytes(typed))
        try:
            inlined = onnx.inliner.inline_selected_functions(
                proto, names, exclude=False, inline_schema_functions=True
            )
        except RuntimeError as exc:  # an assertion in onnx's C++ code
            operators = ", ".join(op_type for _, op_type in names)
            raise Fail(
                f"the model cannot be written in the ORT format: ONNX Runtime runs {operators} as "
                f"a function, and onnx cannot expand it here: {exc}"
            ) from exc
        read = read_model(memoryview(inlined.SerializeToString()))
        kept = {**read.graph.initializers}
        kept.update({name: weights[name] for name in kept if name in weights})
        model = _complete(replace(read, graph=replace(read.graph, initializers=kept)))
        if _list_inlined(model) == names:
            break
    raise Fail(
        f"the model cannot be written in the ORT format: onnx has no function for {names[0][1]} "
        "in this model, and ONNX Runtime no kernel"
    )


def _declare_constants(graph: GraphDef) -> GraphDef:
    """`graph` with a value_info for each constant, where onnx's inliner looks for types.

    It looks for that of an omitted argument, too: the empty name.
    """
    infos = {
        "": ValueInfo("", TensorType(DataType.FLOAT, ())),
        **{
            name: ValueInfo(name, TensorType(tensor.data_type, tensor.dims))
            for name, tensor in graph.initializers.items()
        },
    }
    nodes = tuple(map_bodies(node, _declare_constants) for node in graph.nodes)
    return replace(graph, nodes=nodes, value_info={**graph.value_info, **infos})


def _list_inlined(model: Model) -> list[tuple[str, str]]:
    names = set()
    for domain, op_type in {(n.domain, n.op_type) for n in walk_nodes(model.graph)}:
        schema = find_ort_schema(domain, op_type, model.opset_imports.get(domain, 1))
        if schema is None or not schema.has_function:
            continue
        if is_inlined(domain, op_type, schema.operator.since_version):
            names.add((domain, op_type))
    return sorted(names)


def _half_kernels(model: Model) -> Callable[[Node], bool]:
    """Whether ONNX Runtime has a kernel for a node of float16; of unknown operators, too."""

    def has_kernel(node: Node) -> bool:
        opset = model.opset_imports.get(node.domain, 1)
        schema = find_ort_schema(node.domain, node.op_type, opset)
        if schema is None:
            return True
        return has_half_kernel(node.domain, node.op_type, schema.operator.since_version)

    return has_kernel


def _find_schemas(model: Model) -> dict[tuple[str, str], OrtSchema]:
    schemas = {}
    for domain, op_type in sorted({(n.domain, n.op_type) for n in walk_nodes(model.graph)}):
        schema = find_ort_schema(domain, op_type, model.opset_imports.get(domain, 1))
        if schema is None:
            raise Fail(
                "the model cannot be written in the ORT format: ONNX Runtime has no operator "
                f"{op_type} of domain {domain or 'ai.onnx'} in opset "
                f"{model.opset_imports.get(domain, 1)}"
            )
        schemas[domain, op_type] = schema
    return schemas


def _fill_defaults(graph: GraphDef, schemas: Mapping[tuple[str, str], OrtSchema]) -> GraphDef:
    """`graph` with all attributes that schemas have defaults of, in its bodies too."""

    def fill(node: Node) -> Node:
        defaults = schemas[node.domain, node.op_type].defaults
        missing = {name: a for name, a in defaults.items() if name not in node.attributes}
        if missing:
            node = replace(node, attributes={**node.attributes, **missing})
        return map_bodies(node, lambda body: _fill_defaults(body, schemas))

    return replace(graph, nodes=tuple(map(fill, graph.nodes)))
