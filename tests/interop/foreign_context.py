"""Context models as ONNX Runtime's OpenVINO EP plug-in 1.8 writes them, made by hand.

No digests and no notes. Written from the format's description alone, with none of our writers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import onnx
import openvino as ov
from onnx import TensorProto, helper

from benchmarks.harness.engine_programs import FLOAT32

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

OPENVINO = "OpenVINOExecutionProvider"
PRODUCER = "onnxruntime-openvino-ep-plugin-1.8.1+95d534b.ci.79"
ALIGNMENT = 65536
INT64_MAX = (1 << 63) - 1

Index = "Mapping[str, str | int | Index]"


def raw_blob(proto: onnx.ModelProto) -> bytes:
    """What OpenVINO itself exports for a model on the CPU, in float32."""
    core = ov.Core()
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", FLOAT32)
    return bytes(compiled.export_model().getbuffer())


@dataclass(frozen=True)
class ForeignStyle:
    """Ways in which a producer may write a container.

    Attributes:
        version: Of the index.
        wide: Whether small numbers take eight bytes (BSON int64) all the same.
        leftover: Whether the first index, longer for its numbers were not known yet, shows
            behind the final one, as the plug-in leaves it.
        extra: Further entries of the index.
    """

    version: str = "1.1.0"
    wide: bool = False
    leftover: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)


def container(blobs: Mapping[str, bytes], style: ForeignStyle | None = None) -> bytes:
    """An OVEP_BIN container, version 1."""
    style = style or ForeignStyle()
    unknown = dict.fromkeys(blobs, (INT64_MAX, INT64_MAX))
    first = _index(unknown, style, wide=True)
    at = _aligned(40 + len(first))
    places = {}
    for name, blob in blobs.items():
        places[name] = (at, len(blob))
        at = _aligned(at + len(blob))
    index = _index(places, style, wide=style.wide)
    data = bytearray(at)
    if style.leftover:
        data[40 : 40 + len(first)] = first
    data[: 40 + len(index)] = struct.pack("<8sQQQQ", b"OVEP_BIN", 1, 40, 40, len(index)) + index
    for name, (offset, size) in places.items():
        data[offset : offset + size] = blobs[name]
    return bytes(data)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _index(places: Mapping[str, tuple[int, int]], style: ForeignStyle, *, wide: bool) -> bytes:
    content = {
        "blob_metadata_map": {
            name: {"data_offset": offset, "size": size} for name, (offset, size) in places.items()
        },
        "producer": PRODUCER,
        "version": style.version,
        **style.extra,
    }
    return bson(content, wide=wide)


def bson(content: Mapping[str, Any], *, wide: bool) -> bytes:
    """A document of texts, numbers and documents (bsonspec.org)."""
    body = b""
    for key, value in content.items():
        name = key.encode() + b"\0"
        if isinstance(value, str):
            text = value.encode() + b"\0"
            body += b"\x02" + name + struct.pack("<i", len(text)) + text
        elif isinstance(value, int):
            small = not wide and value < 1 << 31
            body += (b"\x10" if small else b"\x12") + name
            body += struct.pack("<i" if small else "<q", value)
        else:
            body += b"\x03" + name + bson(value, wide=wide)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


@dataclass(frozen=True)
class Stage:
    """One EPContext node: a partition with one input and one output, both float32."""

    name: str
    reads: str
    makes: str
    attributes: Mapping[str, str | int | bytes]

    def node(self) -> onnx.NodeProto:
        given = {
            "source": OPENVINO,
            "main_context": 1,
            "ep_sdk_version": ".".join(ov.__version__.split(".")[:2]),
            "partition_name": self.name,
            "onnx_model_filename": "m.onnx",
            "max_size": 0,
            **self.attributes,
        }
        node = helper.make_node(
            "EPContext",
            [self.reads],
            [self.makes],
            name=f"node_{self.name}",
            domain="com.microsoft",
        )
        node.doc_string = f"EPContext node for {OPENVINO}"
        node.attribute.extend(
            helper.make_attribute(key, value) for key, value in given.items() if value is not None
        )
        return node


def context_model(stages: Sequence[Stage], shapes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """A chain of stages; `shapes` has every value, the graph's input first, its output last."""
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in shapes.items()
    ]
    graph = helper.make_graph([s.node() for s in stages], "m", infos[:1], infos[-1:])
    graph.value_info.extend(infos[1:-1])
    domains = {"": 17, "com.microsoft": 1, "ai.onnx.ml": 5, "com.ms.internal.nhwc": 23}
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    made = helper.make_model(graph, opset_imports=imports, ir_version=13)
    made.producer_name = ""
    text = '{"ovep_compat_ver":"1.0","ovep_ver":"1.8.1","ovep_bin_ver":"1.1"}'
    made.metadata_props.add(key=f"ep_compatibility_info.{OPENVINO}", value=text)
    return made


def write(folder: Path, made: onnx.ModelProto, payload: bytes | None) -> Path:
    """The model, and its payload file where it has one."""
    path = folder / "m_ctx.onnx"
    path.write_bytes(made.SerializeToString())
    if payload is not None:
        (folder / f"m_ctx_{OPENVINO}.bin").write_bytes(payload)
    return path
