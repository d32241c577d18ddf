"""Names of partitions: the same model gives the same names on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.onnx_model import GraphDef, SparseTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ort_lite.model.graph import Graph

METADEF_DIGITS = 16


def metadef_id(graph: Graph) -> str:
    """A content-derived id of a partition: operators, attributes, edges, constants' specs.

    Constants enter with name, type and shape, not with their bytes: digesting 100 MB for a
    name would cost as much as reading them. The payload's own digest tells contents apart.
    """
    digest = blake3()
    for part in _spell(graph.definition):
        digest.update(f"{len(part)}:".encode())
        digest.update(part)
    for domain, version in sorted(graph.opset_imports.items()):
        digest.update(f"{domain}={version};".encode())
    return digest.hexdigest()[:METADEF_DIGITS]


def _spell(graph: GraphDef) -> Iterable[bytes]:
    for infos in (graph.inputs, graph.outputs):
        for info in infos:
            yield repr(info).encode()
    for tensor in graph.initializers.values():
        yield _tensor(tensor)
    for node in graph.nodes:
        yield f"{node.domain}:{node.op_type}:{node.name}".encode()
        yield "\0".join(node.inputs).encode() + b"\1" + "\0".join(node.outputs).encode()
        for name in sorted(node.attributes):
            attribute = node.attributes[name]
            yield f"{name}:{attribute.type}:{attribute.ref_attr_name}".encode()
            yield from _value(attribute.value)


def _value(value: object) -> Iterable[bytes]:
    if isinstance(value, GraphDef):
        yield from _spell(value)
    elif isinstance(value, Tensor):
        yield _tensor(value)
    elif isinstance(value, SparseTensor):
        yield _tensor(value.values)
        yield _tensor(value.indices)
    elif isinstance(value, tuple):
        for item in value:
            yield from _value(item)
    else:
        yield repr(value).encode()


def _tensor(tensor: Tensor) -> bytes:
    return f"{tensor.name}:{tensor.data_type}:{tensor.dims}".encode()
