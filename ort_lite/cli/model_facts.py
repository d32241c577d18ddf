"""Facts about a model file, read without any SDK and without onnx."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ctx_formats.container_reader import read_container
from ctx_formats.copied_file import open_file
from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError
from ctx_formats.notes import read_notes
from ctx_formats.onnx_model import Tensor
from ctx_formats.safe_path import resolve_payload
from ctx_formats.tensor_size import tensor_bytes
from ort_lite.context.nodes import is_context_node
from ort_lite.context.payload_checks import recorded_identity
from ort_lite.model.bodies import walk_nodes
from ort_lite.model.info import NodeArg
from ort_lite.model.loader import load
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.model.loader import LoadedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFacts:
    """One EPContext node.

    Attributes:
        payload: File name of the payload; "" where it is in the model.
        payload_bytes: Size of this partition's payload; None if it is not known.
        container_bytes: Size of the container that has the payload.
        identity: What it was compiled for.
        digest: BLAKE3 of the payload as recorded, or "".
        problem: What is wrong with the node or its payload's container; "" if nothing is.
    """

    node: str
    source: str = ""
    partition_name: str = ""
    main_context: bool = True
    embed_mode: bool = False
    ep_sdk_version: str = ""
    hardware_architecture: str = ""
    onnx_model_filename: str = ""
    producer: str = ""
    payload: str = ""
    payload_bytes: int | None = None
    container_bytes: int | None = None
    identity: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFile:
    """A file of external data that a model names.

    Attributes:
        location: Path relative to the model's folder, as the model has it.
        file_bytes: Size of the file; None if it cannot be opened.
        problem: Why a session refuses the model for this file; "" if the file has all weights.
    """

    location: str
    file_bytes: int | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model file.

    Attributes:
        nodes: Operators, those in bodies included, and how often each is there.
        weight_bytes: Of all initializers, external ones included.
        constants: Constant nodes that hold a tensor, those in bodies included.
        constant_bytes: Of these tensors.
        weight_files: Files of external data, by location; empty if the model has none.
    """

    path: str
    file_bytes: int
    ir_version: int
    producer: str
    opset_imports: Mapping[str, int]
    inputs: Sequence[NodeArg]
    outputs: Sequence[NodeArg]
    nodes: Mapping[str, int]
    weights: int
    weight_bytes: int
    constants: int
    constant_bytes: int
    weight_files: Sequence[WeightFile]
    metadata: Mapping[str, str]
    contexts: Sequence[ContextFacts]


def read_facts(path: Path) -> ModelFacts:
    """The facts of a model file; weights in other files are not read.

    Raises:
        OrtLiteError: The model itself cannot be read; a bad payload and a bad or absent file of
            weights are only reported.
    """
    loaded = load(path, SessionOptions(), with_weights=False)
    try:
        return _facts(loaded, path)
    finally:
        loaded.close()


def _facts(loaded: LoadedModel, path: Path) -> ModelFacts:
    model, graph = loaded.model, loaded.model.graph
    nodes = Counter(_operator(node) for node in walk_nodes(graph))
    contexts = [node for node in walk_nodes(graph) if is_context_node(node)]
    constants = _constant_tensors(graph)
    return ModelFacts(
        path=str(path),
        file_bytes=len(loaded.data),
        ir_version=model.ir_version,
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        opset_imports={domain or "ai.onnx": v for domain, v in model.opset_imports.items()},
        inputs=[NodeArg.of(i) for i in graph.inputs if i.name not in graph.initializers],
        outputs=[NodeArg.of(info) for info in graph.outputs],
        nodes=dict(nodes.most_common()),
        weights=len(graph.initializers),
        weight_bytes=sum(map(_tensor_size, graph.initializers.values())),
        constants=len(constants),
        constant_bytes=sum(map(_tensor_size, constants)),
        weight_files=_weight_files(loaded),
        metadata=dict(model.metadata_props),
        contexts=[_context(node, path) for node in contexts],
    )


def _operator(node: Node) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def _weight_files(loaded: LoadedModel) -> list[WeightFile]:
    problems = loaded.external.find_problems(loaded.model.graph)
    sizes = {location: len(file) for location, file in loaded.external.files()}
    return [
        WeightFile(location=location, file_bytes=sizes.get(location), problem=problems[location])
        for location in sorted(problems)
    ]


def _constant_tensors(graph: GraphDef) -> list[Tensor]:
    """Some exporters, such as Paddle's, write all weights as Constant nodes."""
    constants = (node for node in walk_nodes(graph) if node.op_type == "Constant")
    values = (one.value for node in constants for one in node.attributes.values())
    return [value for value in values if isinstance(value, Tensor)]


def _tensor_size(tensor: Tensor) -> int:
    """Bytes of the elements; of texts, those of their UTF-8."""
    if isinstance(tensor.data, tuple):
        return sum(map(len, tensor.data))
    return tensor_bytes(tensor.data_type, tensor.dims)


def _context(raw: Node, path: Path) -> ContextFacts:
    try:
        node = EpContextNode.from_node(raw)
    except FormatError as exc:
        return ContextFacts(node=raw.name, problem=str(exc))
    facts: dict[str, Any] = {
        "node": node.name,
        "source": node.source,
        "partition_name": node.partition_name,
        "main_context": node.main_context,
        "embed_mode": node.embed_mode,
        "ep_sdk_version": node.ep_sdk_version,
        "hardware_architecture": node.hardware_architecture,
        "onnx_model_filename": node.onnx_model_filename,
        "identity": recorded_identity(node, None).to_mapping(),
    }
    try:
        notes = read_notes(node)
        if notes is not None:
            facts["identity"] = recorded_identity(node, notes).to_mapping()
            facts["options"] = dict(notes.options)
            facts["producer"] = notes.producer
            facts["digest"] = notes.payload_blake3
            facts["payload_bytes"] = notes.payload_size
        if node.main_context:
            facts.update(_container_facts(node, path))
    except FormatError as exc:
        facts["problem"] = str(exc)
    return ContextFacts(**facts)


def _container_facts(node: EpContextNode, path: Path) -> dict[str, Any]:
    """Size, producer and this partition's entry of the container that `node` names."""
    if node.embed_mode:
        return _entry_facts(node, memoryview(node.ep_cache_context))
    name = node.payload_path
    file = open_file(resolve_payload(path.parent, name, model_path=path))
    try:
        return {"payload": name, **_entry_facts(node, file.view)}
    finally:
        file.close()


def _entry_facts(node: EpContextNode, data: memoryview) -> dict[str, Any]:
    container = read_container(data)
    entry = container.entries.get(node.partition_name or node.name)
    return {
        "container_bytes": len(data),
        "producer": container.producer,
        "payload_bytes": entry.size if entry else None,
        "digest": entry.blake3 if entry else "",
    }
