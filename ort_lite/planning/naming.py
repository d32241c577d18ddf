"""Names of partitions: the same model gives the same names on every machine."""

from __future__ import annotations

from array import array
from types import MappingProxyType
from typing import TYPE_CHECKING

from blake3 import blake3

from ctx_formats.onnx_model import AttributeType, SparseTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from ctx_formats.onnx_model import GraphDef
    from ort_lite.model.graph import Graph

METADEF_DIGITS = 16
LONG = 64
_ARRAY_CODES: Mapping[type, str] = MappingProxyType({int: "q", float: "d"})
"""Long lists of these are digested as memory has them: 64-bit integers, and doubles."""


def metadef_id(graph: Graph, digests: MutableMapping[Graph, bytes]) -> str:
    """A content-derived id of a partition: operators, attributes, edges, constants' specs.

    Constants enter with name, type and shape, not with their bytes: digesting 100 MB for a
    name would cost as much as reading them. The payload's own digest distinguishes contents.

    Args:
        graph: The partition.
        digests: Of bodies, which enter with their digest; those that were not in it are added.
            A body is then digested once, not for each level of the bodies around it.
    """
    digest = _digest_content(graph, digests)
    for domain, version in sorted(graph.opset_imports.items()):
        digest.update(f"{domain}={version};".encode())
    return digest.hexdigest()[:METADEF_DIGITS]


def _digest_content(graph: Graph, digests: MutableMapping[Graph, bytes]) -> blake3:
    digest = blake3()

    def add(part: bytes) -> None:
        digest.update(f"{len(part)}:".encode())
        digest.update(part)

    _spell(graph.definition, add)
    for i in range(len(graph.nodes)):
        for key, body in graph.bodies(i).items():
            add(f"{i}:{key}".encode())
            if body not in digests:
                digests[body] = _digest_content(body, digests).digest()
            add(digests[body])
    return digest


def _spell(graph: GraphDef, add: Callable[[bytes], None]) -> None:
    """Spell a graph without the bodies of its nodes."""
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
            if attribute.type not in (AttributeType.GRAPH, AttributeType.GRAPHS):
                _spell_value(attribute.value, add)


def _spell_value(value: object, add: Callable[[bytes], None]) -> None:
    if isinstance(value, Tensor):
        add(_tensor(value))
    elif isinstance(value, SparseTensor):
        add(_tensor(value.values))
        add(_tensor(value.indices))
    elif isinstance(value, tuple):
        kinds = set(map(type, value)) if len(value) > LONG else set()
        code = _ARRAY_CODES.get(next(iter(kinds))) if len(kinds) == 1 else None
        if code is not None:  # of trees there are millions: all at once
            add(code.encode())
            add(array(code, value).tobytes())
        elif kinds == {bytes}:
            add(array("q", map(len, value)).tobytes())
            add(b"".join(value))
        else:
            for item in value:
                _spell_value(item, add)
    else:
        add(repr(value).encode())


def _tensor(tensor: Tensor) -> bytes:
    return f"{tensor.name}:{tensor.data_type}:{tensor.dims}".encode()
