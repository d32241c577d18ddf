"""A model from a path or bytes to a resolved Graph."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ctx_formats.copied_file import open_file
from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.model_reader import read_model
from ort_lite.model.external_data import ExternalFiles
from ort_lite.model.graph import Graph, body_definitions
from ort_lite.status import InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.mapped_file import MappedFile
    from ctx_formats.onnx_model import GraphDef, Model
    from ort_lite.options import SessionOptions

WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
IMPLIED_VERSIONS = {"": 26, "ai.onnx.ml": 5, "com.microsoft": 1}
"""Versions that onnxruntime 1.31 takes of domains that a model uses and does not import: the
last that it knows as released."""
FIRST_OPEN_INITIALIZERS = 4
"""IR version from which an initializer that is also a graph input may be overridden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A decoded model and what its bytes live in.

    Attributes:
        path: Of the model file, as it was given; None for a model from memory.
        data: The file's bytes, copied or mapped; every tensor of `model` is a view of these or of
            an external file.
        label: What messages call the model, where that is not its path.
    """

    model: Model
    path: str | None
    data: memoryview
    owner: MappedFile | None
    external: ExternalFiles
    label: str = ""

    @property
    def described(self) -> str:
        """The model in a message."""
        return self.label or self.path or "model from memory"

    def labeled(self, label: str) -> LoadedModel:
        """The same under another name in messages."""
        return replace(self, label=label)

    def close(self) -> None:
        """Let go of the files; views that others hold keep their maps alive."""
        self.external.close()
        if self.owner is not None:
            self.owner.close()


def load(source: object, options: SessionOptions) -> LoadedModel:
    """Read and decode a model; tensors stay where they are.

    Args:
        source: A path, or the bytes of a ModelProto (bytes, bytearray, memoryview).
        options: For the folder of external data.

    Raises:
        NoSuchFile: The path is not there.
        InvalidArgument: It is a folder, or holds no graph.
        InvalidProtobuf: The bytes are no ModelProto.
        InvalidGraph: Reason integrity; the file changes for as long as it is being read.
        Fail: External data is missing, outside the model's folder or of the wrong size, or
            weights that the user gave do not fit.
        TypeError: `source` is none of these.
    """
    path, owner, data = _open(source)
    try:
        model = _decoded(data, path)
        given = options.given_weights
        graph = given.inject(model.graph) if given is not None else model.graph
        if options.denoted_dimensions:
            graph = _denoted(graph, data, options)
        in_memory = given.files if given is not None else {}
        external = ExternalFiles(_weights_folder(path, options), path, in_memory)
        model = replace(model, graph=external.attach(graph))
    except Exception:
        if owner is not None:
            owner.close()
        raise
    return LoadedModel(model=model, path=path, data=data, owner=owner, external=external)


def resolve(model: Model, free_dimensions: Mapping[str, int]) -> Graph:
    """The graph of a plain model, ready to be partitioned: constants lifted, types inferred.

    Raises:
        InvalidGraph: The model contradicts itself.
    """
    return as_graph(typed(model, free_dimensions))


def typed(model: Model, free_dimensions: Mapping[str, int]) -> Model:
    """A plain model with constants lifted, functions inlined and types inferred.

    Raises:
        InvalidGraph: The model contradicts itself.
    """
    from ort_lite.model.drop_dropout import drop_dropout  # noqa: PLC0415 - see above
    from ort_lite.model.free_dimensions import bind  # noqa: PLC0415 - plain models only
    from ort_lite.model.lift_constants import lift_constants  # noqa: PLC0415 - see above
    from ort_lite.model.shape_inference import infer_types  # noqa: PLC0415 - imports onnx

    model = _with_missing_imports(model)
    graph = lift_constants(bind(model.graph, free_dimensions))
    graph = drop_dropout(graph, model.opset_imports.get("", 1))
    return infer_types(replace(model, graph=graph))


def _with_missing_imports(model: Model) -> Model:
    """The model with a version of each official domain, if it imports any, as in onnxruntime."""
    if not model.opset_imports or IMPLIED_VERSIONS.keys() <= model.opset_imports.keys():
        return model
    used = _domains(model.graph)
    missing = {
        domain: version
        for domain, version in IMPLIED_VERSIONS.items()
        if domain in used and domain not in model.opset_imports
    }
    return replace(model, opset_imports={**model.opset_imports, **missing}) if missing else model


def _domains(graph: GraphDef) -> set[str]:
    """Domains of the graph's operators, bodies included."""
    inside = (body for node in graph.nodes for _, body in body_definitions(node))
    return {node.domain for node in graph.nodes}.union(*map(_domains, inside))


def with_definition(model: Model, graph: Graph) -> Model:
    """`model` with its graph as `graph` has sorted it."""
    return replace(model, graph=graph.definition)


def as_graph(model: Model) -> Graph:
    """The graph with the types that the file itself gives."""
    return Graph(
        model.graph,
        model.opset_imports,
        constant_inputs=model.ir_version < FIRST_OPEN_INITIALIZERS,
    )


def _open(source: object) -> tuple[str | None, MappedFile | None, memoryview]:
    if isinstance(source, bytes | bytearray | memoryview):
        return None, None, memoryview(source).cast("B")
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"Unable to load from type '{type(source)}'")
    path = os.fspath(source)
    if not isinstance(path, str):
        raise TypeError(f"Unable to load from type '{type(source)}'")
    if os.path.isdir(path or os.curdir):
        raise InvalidArgument(
            f"The model path is a directory: {path}. Give the path of a model file."
        )
    try:
        owner = open_file(path)
    except FormatError as exc:
        if exc.reason is Reason.INTEGRITY:
            raise InvalidGraph(f"Load model from {path} failed: {exc}", reason=exc.reason) from exc
        if exc.reason is Reason.MISSING_PAYLOAD:
            raise NoSuchFile(
                f"Load model from {path} failed:Load model {path} failed. File doesn't exist"
            ) from exc
        raise InvalidArgument(f"Load model from {path} failed: {exc}") from exc
    return path, owner, owner.view


def _decoded(data: memoryview, path: str | None) -> Model:
    try:
        return read_model(data, file=path or "")
    except FormatError as exc:
        from ctx_formats.file_kind import kind_of  # noqa: PLC0415 - only what fails needs it

        kind = kind_of(data)
        seen = f". {path or 'The data'} looks like {kind}, not like an ONNX model." if kind else ""
        if exc.field == "model.graph":
            raise InvalidArgument(f"No graph was found in the protobuf{seen or '.'}") from exc
        where = f"Load model from {path} failed:" if path else "Failed to load model because "
        raise InvalidProtobuf(f"{where}protobuf parsing failed. {exc}{seen}") from exc


def _denoted(graph: GraphDef, data: memoryview, options: SessionOptions) -> GraphDef:
    from ctx_formats.denotations import input_denotations  # noqa: PLC0415 - few sessions ask
    from ort_lite.model.free_dimensions import bind_denoted  # noqa: PLC0415 - see above

    sizes, names = options.denoted_dimensions, options.free_dimensions
    return bind_denoted(graph, input_denotations(data), sizes, names)


def _weights_folder(path: str | None, options: SessionOptions) -> str:
    chosen = options.config.get(WEIGHTS_FOLDER)
    return chosen or os.path.dirname(path or "") or os.curdir
