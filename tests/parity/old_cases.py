"""The node cases that older releases of onnx shipped: read out of their wheels, never installed."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.defs
from google.protobuf.message import DecodeError
from ml_dtypes import bfloat16
from model_set.wheels import Tags, download_wheel
from onnx import numpy_helper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WHEELS: dict[str, Tags] = {
    **dict.fromkeys(("1.2.2", "1.3.0", "1.4.1", "1.5.0"), Tags("36", "manylinux1_x86_64")),
    **dict.fromkeys(("1.6.0", "1.7.0"), Tags("36", "manylinux1_x86_64")),
    **dict.fromkeys(("1.8.1", "1.9.0"), Tags("38", "manylinux2010_x86_64")),
    **dict.fromkeys(("1.10.2", "1.11.0"), Tags("38", "manylinux_2_12_x86_64")),
    **dict.fromkeys(("1.12.0", "1.13.1", "1.14.1"), Tags("38", "manylinux_2_17_x86_64")),
    **dict.fromkeys(("1.15.0", "1.16.2"), Tags("38", "manylinux_2_17_x86_64")),
    **dict.fromkeys(("1.17.0", "1.18.0"), Tags("312", "manylinux_2_17_x86_64")),
}
"""Releases whose wheels hold node cases; later ones generate them."""

_FOLDER = "onnx/backend/test/data/node/"


@dataclass(frozen=True, slots=True)
class OldCase:
    """One case of one release.

    Attributes:
        release: Of onnx that shipped it first in this form.
        model: Serialised.
        inputs: Values in the order of the graph's inputs.
        outputs: What the release says comes out.
        unreadable: Why its values cannot be read; then there are none.
    """

    release: str
    name: str
    model: bytes
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    unreadable: str = ""


def wheel_of(release: str, folder: Path) -> Path:
    """The release's wheel in `folder`, downloaded if it is not there.

    Raises:
        FetchError: It cannot be had.
    """
    home = folder / release
    home.mkdir(parents=True, exist_ok=True)
    found = sorted(home.glob("*.whl"))
    return found[0] if found else download_wheel("onnx", release, home, WHEELS[release])


def cases_of(wheels: Sequence[tuple[str, Path]]) -> Iterator[OldCase]:
    """Every case once: a later release that says the same of the same operators is skipped."""
    seen: set[bytes] = set()
    for release, path in wheels:
        with zipfile.ZipFile(path) as archive:
            members: dict[str, list[str]] = {}
            for member in archive.namelist():
                if member.startswith(_FOLDER) and member.endswith((".onnx", ".pb")):
                    members.setdefault(member.split("/")[5], []).append(member)
            for name, files in sorted(members.items()):
                yield from _cases(release, name, {f: archive.read(f) for f in files}, seen)


def _cases(release: str, name: str, files: dict[str, bytes], seen: set[bytes]) -> Iterator[OldCase]:
    model_file = next(f for f in files if f.endswith(".onnx"))
    model = onnx.load_model_from_string(files[model_file])
    for folder in sorted({f.rsplit("/", 1)[0] for f in files if f.endswith(".pb")}):
        own = {f: data for f, data in files.items() if f.startswith(f"{folder}/")}
        digest = _digest(name, model, own)
        if digest in seen:
            continue
        seen.add(digest)
        kinds = {"input": model.graph.input, "output": model.graph.output}
        try:
            values = {
                kind: tuple(
                    _value(own[f"{folder}/{kind}_{i}.pb"], info.type)
                    for i, info in enumerate(infos)
                    if f"{folder}/{kind}_{i}.pb" in own
                )
                for kind, infos in kinds.items()
            }
        except (ValueError, TypeError, DecodeError) as exc:
            yield OldCase(release, name, files[model_file], (), (), f"unreadable data: {exc}")
            continue
        yield OldCase(release, name, files[model_file], values["input"], values["output"])


def _digest(name: str, model: onnx.ModelProto, data: dict[str, bytes]) -> bytes:
    """Of what a case says: its nodes, the versions of their operators, its numbers."""
    opsets = {item.domain: item.version for item in model.opset_import}
    parts = [name.encode()]
    for node in model.graph.node:
        parts += [node.SerializeToString(), str(_since(node, opsets)).encode()]
    parts += [data[file] for file in sorted(data)]
    return hashlib.blake2b(b"\0".join(parts)).digest()


def _since(node: onnx.NodeProto, opsets: dict[str, int]) -> int:
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        return int(onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain).since_version)
    except onnx.defs.SchemaError:  # an operator that was given up
        return opsets.get(domain, 1)


def _value(data: bytes, kind: onnx.TypeProto) -> Any:
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    tensor = onnx.TensorProto.FromString(data)
    if tensor.data_type == onnx.TensorProto.STRING:  # some are no UTF-8: the file is wrong
        texts = [text.decode("utf-8", "replace") for text in tensor.string_data]
        return np.array(texts, object).reshape(tuple(tensor.dims))
    array = numpy_helper.to_array(tensor)
    if kind.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 and array.dtype == np.uint16:
        return array.view(bfloat16)  # as releases up to 1.15 stored it
    return array


def difference(found: Any, wanted: Any) -> str:
    """How `found` is not `wanted`, by the rules of onnx's own runner; "" if it is."""
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return "another number of elements"
        return next(filter(None, map(difference, found, wanted)), "")
    if wanted is None:
        return "" if found is None else "something where there should be nothing"
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return f"shape {list(found.shape)}, expected {list(wanted.shape)}"
    if wanted.dtype.kind in "OUS":
        texts = [t.decode() if isinstance(t, bytes) else t for t in wanted.reshape(-1).tolist()]
        return "" if found.reshape(-1).tolist() == texts else "other strings"
    if found.dtype != wanted.dtype:
        return f"type {found.dtype}, expected {wanted.dtype}"
    exact = wanted.dtype.kind in "iub"
    wide = [x if exact or x.dtype.kind == "c" else x.astype(np.float64) for x in (found, wanted)]
    if exact and np.array_equal(*wide):
        return ""
    if not exact and np.allclose(*wide, rtol=1e-3, atol=1e-7, equal_nan=True):
        return ""
    return f"{int((wide[0] != wide[1]).sum())} of {wanted.size} values differ"
