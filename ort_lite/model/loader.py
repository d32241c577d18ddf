"""A model from a path or bytes to a resolved Graph."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeGuard

from ctx_formats.errors import FileChangedError, FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, replace
from ctx_formats.model_file import ModelBytes, read_model_file
from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import GraphDef
from ctx_formats.stamped_file import StampedFile, private_memory
from ort_lite.model.bodies import walk_nodes
from ort_lite.model.external_data import ExternalFiles
from ort_lite.model.graph import Graph
from ort_lite.options import TRUST_KEY
from ort_lite.status import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
    OrtLiteError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.copied_file import CopiedFile
    from ctx_formats.mapped_file import FileStamp, MappedFile
    from ctx_formats.onnx_model import Model
    from ort_lite.model.shape_inference import Inferred
    from ort_lite.options import SessionOptions
    from ort_lite.trust.verification import Proof

WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
ORT_FORMAT_KEY = "session.load_model_format"
MAP_WEIGHTS = "session.model_external_initializers_map"
IMPLIED_VERSIONS = {"": 26, "ai.onnx.ml": 5, "com.microsoft": 1}
"""Versions that onnxruntime 1.31 takes of domains that a model uses and does not import: the
last that it knows as released."""
NEWEST_IR_VERSION = 14
"""IR version of onnx 1.23; newer files may contain what this reader does not know."""
FIRST_OPEN_INITIALIZERS = 4
"""IR version from which an initializer that is also a graph input may be overridden."""
ARCHIVE_ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz")
"""Of files that are model packages."""
ATTEMPTS = 5
"""How often a model is read whose files change meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A decoded model and its bytes, in memory that nobody else writes to.

    Attributes:
        path: Of the model file, as it was given; None for a model from memory.
        data: The file's bytes; every tensor of `model` is a view of these or of an external
            file's.
        stamp: Of the file; None for a model from memory.
        label: What messages call the model, where that is not its path.
        proof: Of the signature that the session asked for; None if it asked for none.
        kept_here: Whether the file is of a model cache into which nobody else can put one.
        mapped: The model's own file, if its bytes are not in memory; None otherwise.
    """

    model: Model
    path: str | None
    data: ModelBytes
    stamp: FileStamp | None
    external: ExternalFiles
    label: str = ""
    proof: Proof | None = None
    kept_here: bool = False
    mapped: MappedFile | CopiedFile | None = None

    @property
    def description(self) -> str:
        """The model in a message."""
        return self.label or self.path or "model from memory"

    @property
    def user_path(self) -> str | None:
        """Path that a command may name; None for a model from memory, a cache or a package."""
        return None if self.label else self.path

    @property
    def stamps(self) -> tuple[FileStamp, ...]:
        """Of the model's files as they were read; none for a model from memory."""
        if self.stamp is None:
            return ()
        return self.stamp, *(file.stamp for _, file in self.external.files())

    def with_label(self, label: str) -> LoadedModel:
        """The same under another name in messages."""
        return replace(self, label=label)

    def require_unchanged(self) -> None:
        """Compare mapped data files with what they were when they were opened.

        Raises:
            InvalidGraph: Somebody wrote to one or replaced it (reason integrity).
        """
        if not self.external.mapped and self.mapped is None:
            return
        try:
            self.external.require_unchanged()
            if self.mapped is not None:
                self.mapped.require_unchanged()
        except FileChangedError as exc:
            raise _changed_error(self.description, exc) from exc

    def without_weights(self) -> LoadedModel:
        """The model without its graph, for a session that no longer compiles from it."""
        definition = self.model.graph
        graph = GraphDef(
            name=definition.name, nodes=(), inputs=(), outputs=(), doc_string=definition.doc_string
        )
        return replace(
            self,
            model=replace(self.model, graph=graph, functions=()),
            data=self.data.outline(),
            external=ExternalFiles("", None),
        )

    def close(self) -> None:
        """Let go of the files; views that others hold stay valid."""
        self.external.close()
        if self.mapped is not None:
            self.mapped.close()


def load(source: object, options: SessionOptions, *, with_weights: bool = True) -> LoadedModel:
    """Read and decode a model.

    Files that others write to meanwhile are read again, up to ATTEMPTS times.

    Args:
        source: A path, or the bytes (bytes, bytearray, memoryview) of a ModelProto or of a model
            in the ORT format.
        options: For the folder of external data, and the keys of those who may have signed it.
        with_weights: Whether files of external data are read; otherwise the tensors in them keep
            their ExternalData, and the files may be absent.

    Raises:
        InvalidGraph: Reason untrusted; options ask for a signature, and none is right.
        NoSuchFile: The path is not there.
        InvalidArgument: It is a folder, or holds no graph.
        InvalidProtobuf: The bytes are not a ModelProto.
        Fail: They are not a model in the ORT format, where that is expected.
        InvalidGraph: Its files change for as long as they are read (reason integrity).
        Fail: External data is missing, outside the model's folder or of the wrong size, or
            weights that the user gave do not fit; a newer IR version than is known; or there is
            not enough memory.
        TypeError: `source` is none of these.
    """
    path = _path_of(source)
    try:
        if path is None:
            assert isinstance(source, bytes | bytearray | memoryview), "_path_of refuses others"
            # Its owner may write to a bytearray, or close what a memoryview is of.
            data = memoryview(source)
            if not isinstance(source, bytes) and not _stays_in_place(data, options):
                data = memoryview(bytes(source))
            is_ort = _is_ort_bytes(data, options)
            place = _Place(None, os.curdir, is_ort=is_ort, with_weights=with_weights)
            return _load(ModelBytes(data), place, options)
        for _ in range(ATTEMPTS):
            try:
                return _read(path, options, with_weights=with_weights)
            except FileChangedError as exc:
                change = exc
    except MemoryError as exc:
        raise Fail(f"Load model from {path} failed: not enough memory: {exc}") from exc
    raise _changed_error(path, change)


def _read(path: str, options: SessionOptions, *, with_weights: bool) -> LoadedModel:
    """One try at reading a model, whose files are one version of it.

    Raises:
        FileChangedError: Somebody wrote to a file or replaced one meanwhile.
    """
    # With its symlinks followed once: they may be swapped between one file and the next.
    folder, name = os.path.split(path)
    folder = os.path.realpath(folder or os.curdir)
    is_ort = _is_ort_path(path, options)
    with _open_file(path, os.path.join(folder, name)) as file, ExitStack() as undo:
        place = _Place(path, folder, stamp=file.stamp, is_ort=is_ort, with_weights=with_weights)
        if is_ort:
            data, mapped = _read_ort(file, options)
            if mapped is not None:
                undo.callback(mapped.close)
                place = replace(place, mapped=mapped)
        else:
            data = read_model_file(file)
        file.require_unchanged()
        loaded = _load(data, place, options)
        undo.callback(loaded.close)
        loaded.external.require_unchanged()
        if loaded.external.origins:
            file.require_unchanged(in_place=True)
        undo.pop_all()
    return loaded


@dataclass(frozen=True, slots=True)
class _Place:
    """The origin of a model.

    Attributes:
        path: As it was given.
        folder: The file's, without symlinks.
        stamp: Of the file.
        is_ort: Whether it is in the ORT format.
        with_weights: Whether files of external data are read.
        mapped: The file, if it is mapped.
    """

    path: str | None
    folder: str
    stamp: FileStamp | None = None
    is_ort: bool = False
    with_weights: bool = True
    mapped: MappedFile | CopiedFile | None = None


def _load(data: ModelBytes, place: _Place, options: SessionOptions) -> LoadedModel:
    path, trust = place.path, options.config.get(TRUST_KEY)
    proof = _prove_model(data, path, trust) if trust is not None else None
    if place.is_ort:
        from ort_lite.model.ort_model_loader import decode_ort  # noqa: PLC0415 - lazy: rare

        model = decode_ort(data, path, options)
    else:
        model = _decode(data, path)
        _require_known_version(model)
    weights = options.added_initializers
    graph = weights.inject(model.graph) if weights is not None else model.graph
    if options.denoted_dimensions and not place.is_ort:
        graph = _apply_denotations(graph, data.view, options)
    in_memory = weights.files if weights is not None else {}
    chosen = options.config.get(WEIGHTS_FOLDER)
    folder, named = chosen or place.folder, chosen or os.path.dirname(path or "") or os.curdir
    with ExitStack() as undo:
        external = ExternalFiles(
            *(folder, path, in_memory, named, proof), mapped=options.flag(MAP_WEIGHTS)
        )
        undo.callback(external.close)
        model = replace(model, graph=external.attach(graph) if place.with_weights else graph)
        undo.pop_all()
    return LoadedModel(
        model=model,
        path=path,
        data=data,
        stamp=place.stamp,
        external=external,
        proof=proof,
        mapped=place.mapped,
    )


def _is_ort_path(path: str, options: SessionOptions) -> bool:
    if ORT_FORMAT_KEY not in options.config and not path.lower().endswith(".ort"):
        return False
    from ort_lite.model.ort_model_loader import is_ort_path  # noqa: PLC0415 - lazy: rare

    return is_ort_path(path, options.config)


def _is_ort_bytes(data: memoryview, options: SessionOptions) -> bool:
    if ORT_FORMAT_KEY not in options.config and bytes(data[4:8]) != b"ORTM":
        return False
    from ort_lite.model.ort_model_loader import is_ort_bytes  # noqa: PLC0415 - lazy: rare

    return is_ort_bytes(data, options.config)


def _stays_in_place(data: memoryview, options: SessionOptions) -> bool:
    """Whether memory that its owner could write to is used as it is, as the options ask for."""
    if data.ndim != 1 or data.format != "B" or not _is_ort_bytes(data, options):
        return False
    from ort_lite.model.ort_model_loader import uses_bytes_in_place  # noqa: PLC0415 - lazy: rare

    return uses_bytes_in_place(options)


def _read_ort(
    file: StampedFile, options: SessionOptions
) -> tuple[ModelBytes, MappedFile | CopiedFile | None]:
    """The bytes of a file in the ORT format, and the file if it is mapped.

    Raises:
        FileChangedError: It has changed since it was opened.
    """
    from ort_lite.model.ort_model_loader import MAP_KEY, map_ort_file  # noqa: PLC0415 - lazy: rare

    if options.flag(MAP_KEY) and options.config.get(TRUST_KEY) is None:
        mapped = map_ort_file(str(file.path))
        if mapped.stamp != file.stamp:
            mapped.close()
            raise FileChangedError(file.path)
        return ModelBytes(mapped.view), mapped
    view = private_memory(file.stamp.size)
    file.read_into(view, 0)
    return ModelBytes(view), None


def _require_known_version(model: Model) -> None:
    if model.ir_version > NEWEST_IR_VERSION:
        raise Fail(
            f"Unsupported model IR version: {model.ir_version}, max supported IR version: "
            f"{NEWEST_IR_VERSION}"
        )


def resolve(model: Model, free_dimensions: Mapping[str, int]) -> Graph:
    """The graph of a plain model, ready to be partitioned: constants lifted, types inferred.

    Raises:
        InvalidGraph: The model contradicts itself.
    """
    return as_graph(infer_model(model, free_dimensions))


def infer_model(model: Model, free_dimensions: Mapping[str, int]) -> Model:
    """The model of `infer_certain`, which has the arguments and errors."""
    return infer_certain(model, free_dimensions).model


def infer_certain(model: Model, free_dimensions: Mapping[str, int]) -> Inferred:
    """A plain model with constants lifted, functions inlined and types inferred.

    Raises:
        InvalidGraph: The model contradicts itself.
        Fail: As infer_with_certain; an input has no type; an unknown operator set.
    """
    from ort_lite.model.drop_dropout import drop_dropout  # noqa: PLC0415 - lazy: reload
    from ort_lite.model.free_dimensions import bind  # noqa: PLC0415 - lazy: reload
    from ort_lite.model.lift_constants import lift_constants  # noqa: PLC0415 - lazy: reload
    from ort_lite.model.node_schemas import check_versions, require_arity  # noqa: PLC0415 - lazy: reload
    from ort_lite.model.shape_inference import infer_with_certain  # noqa: PLC0415 - lazy: reload

    _require_versions(model)
    check_versions(model)
    model = _with_missing_imports(model)
    _require_input_types(model.graph)
    require_arity(model.graph, model.opset_imports)
    graph = lift_constants(bind(model.graph, free_dimensions))
    graph = drop_dropout(graph, model.opset_imports.get("", 1))
    model = replace(model, graph=graph)
    try:
        return infer_with_certain(model, strict=True)
    except OrtLiteError:
        ordered = as_graph(model)  # says of a missing or doubled name more than inference does
        if ordered.nodes == model.graph.nodes:
            raise
        return infer_with_certain(with_definition(model, ordered), strict=True)


def _require_input_types(graph: GraphDef) -> None:
    for info in graph.inputs:
        if info.type is None and info.name not in graph.initializers:
            raise Fail(
                f"This is an invalid model. Model input ({info.name}) does not have type "
                "information."
            )


def _require_versions(model: Model) -> None:
    """Refuse operator sets whose version is not a 32-bit integer; onnx's own code accepts no other.

    Raises:
        InvalidGraph: There is one.
    """
    for domain, version in model.opset_imports.items():
        if version < -(1 << 31):  # versions that are too new are refused as such
            raise InvalidGraph(
                f"the model imports version {version} of operator set '{domain or 'ai.onnx'}', "
                "expected an integer of 32 bits"
            )


def _with_missing_imports(model: Model) -> Model:
    """The model with a version of each official domain, if it imports any, as in onnxruntime."""
    if not model.opset_imports or IMPLIED_VERSIONS.keys() <= model.opset_imports.keys():
        return model
    used = {node.domain for node in walk_nodes(model.graph)}
    missing = {
        domain: version
        for domain, version in IMPLIED_VERSIONS.items()
        if domain in used and domain not in model.opset_imports
    }
    return replace(model, opset_imports={**model.opset_imports, **missing}) if missing else model


def with_definition(model: Model, graph: Graph) -> Model:
    """`model` with its graph as `graph` has sorted it."""
    return replace(model, graph=graph.definition)


def as_graph(model: Model) -> Graph:
    """The graph with the types that the file itself gives."""
    return Graph(
        model.graph,
        model.opset_imports,
        constant_inputs=model.ir_version < FIRST_OPEN_INITIALIZERS,
        kernel_types=model.kernel_types,
    )


def is_package(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a session's model is a folder with a manifest, an archive by its name, or a URL."""
    if isinstance(source, str) and "://" in source:
        return True
    if not isinstance(source, str | os.PathLike):
        return False
    path = os.fspath(source)
    if isinstance(path, str) and path.lower().endswith(ARCHIVE_ENDINGS):
        return os.path.isfile(path)
    return os.path.isdir(path) and os.path.exists(os.path.join(path, "manifest.json"))


def _changed_error(model: str | None, change: FileChangedError) -> InvalidGraph:
    return InvalidGraph(
        f"Load model from {model} failed: {change} (reason: {change.reason})",
        reason=change.reason,
    )


def _path_of(source: object) -> str | None:
    """The model's path; None for a model from memory."""
    if isinstance(source, bytes | bytearray | memoryview):
        return None
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"Unable to load from type '{type(source)}'")
    path = os.fspath(source)
    if not isinstance(path, str):
        raise TypeError(f"Unable to load from type '{type(source)}'")
    if os.path.isdir(path or os.curdir):
        is_package = os.path.isfile(os.path.join(path, "manifest.json"))
        advice = (
            "It is a model package: give the path of one of its models, which ort-lite package "
            "inspect lists."
            if is_package
            else "Give the path of a model file."
        )
        raise InvalidArgument(f"The model path is a directory: {path}. {advice}")
    return path


def _open_file(path: str, found_at: str) -> StampedFile:
    try:
        return StampedFile(found_at)
    except FormatError as exc:
        if exc.reason is Reason.MISSING_PAYLOAD:
            from ctx_formats.long_path import explain_length  # noqa: PLC0415 - lazy: rare

            sentence = explain_length(path)
            raise NoSuchFile(
                f"Load model from {path} failed:Load model {path} failed. File doesn't exist"
                + (f". {sentence}" if sentence else "")
            ) from exc
        raise InvalidArgument(f"Load model from {path} failed: {exc}") from exc


def _prove_model(data: ModelBytes, path: str | None, trust: str) -> Proof:
    """The proof that a session asked for, before a byte of the model is believed."""
    from ort_lite.trust.verification import require_signed  # noqa: PLC0415 - lazy: rare

    return require_signed(data, trust, path or "model from memory")


def _decode(data: ModelBytes, path: str | None) -> Model:
    try:
        return read_model(data.view, file=path or "", runs=data.runs)
    except FormatError as exc:
        from ctx_formats.file_kind import kind_of  # noqa: PLC0415 - lazy: rare

        kind = kind_of(data.view)
        guess = f". {path or 'The data'} looks like {kind}, not like an ONNX model." if kind else ""
        if exc.field == "model.graph":
            raise InvalidArgument(f"No graph was found in the protobuf{guess or '.'}") from exc
        where = f"Load model from {path} failed:" if path else "Failed to load model because "
        raise InvalidProtobuf(f"{where}protobuf parsing failed. {exc}{guess}") from exc


def _apply_denotations(graph: GraphDef, data: memoryview, options: SessionOptions) -> GraphDef:
    from ctx_formats.type_reader import input_denotations  # noqa: PLC0415 - lazy: rare
    from ort_lite.model.free_dimensions import bind_denoted  # noqa: PLC0415 - lazy: reload

    sizes, names = options.denoted_dimensions, options.free_dimensions
    return bind_denoted(graph, input_denotations(data), sizes, names)
