"""Names of partitions: the same model gives the same names on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.onnx_model import GraphDef, SparseTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from ort_lite.model.graph import Graph

METADEF_DIGITS = 16


def metadef_id(graph: Graph) -> str:
    """A content-derived id of a partition: operators, attributes, edges, constants' specs.

    Constants enter with name, type and shape, not with their bytes: digesting 100 MB for a
    name would cost as much as reading them. The payload's own digest distinguishes contents.
    """
    digest = blake3()

    def add(part: bytes) -> None:
        digest.update(f"{len(part)}:".encode())
        digest.update(part)

    _spell(graph.definition, add)
    for domain, version in sorted(graph.opset_imports.items()):
        digest.update(f"{domain}={version};".encode())
    return digest.hexdigest()[:METADEF_DIGITS]


def _spell(graph: GraphDef, add: Callable[[bytes], None]) -> None:
    for infos in (graph.inputs, graph.outputs):
        for info in infos:
            add(repr(info).encode())
    for tensor in graph.initializers.values():
        add(_tensor(tensor))
    for node in graph.nodes:
        add(f"{node.domain}:{node.op_type}:{node.name}".encode())
        add("\0".join(node.inputs).encode() + b"\1" + "\0".join(node.outputs).encode())
        for name in sorted(node.attributes):
            attribute = node.attributes[name]
            add(f"{name}:{attribute.type}:{attribute.ref_attr_name}".encode())
            _spell_value(attribute.value, add)


def _spell_value(value: object, add: Callable[[bytes], None]) -> None:
    if isinstance(value, GraphDef):
        _spell(value, add)
    elif isinstance(value, Tensor):
        add(_tensor(value))
    elif isinstance(value, SparseTensor):
        add(_tensor(value.values))
        add(_tensor(value.indices))
    elif isinstance(value, tuple):
        for item in value:
            _spell_value(item, add)
    else:
        add(repr(value).encode())


def _tensor(tensor: Tensor) -> bytes:
    return f"{tensor.name}:{tensor.data_type}:{tensor.dims}".encode()
