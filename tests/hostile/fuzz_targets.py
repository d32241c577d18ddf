"""What is damaged, and what a session may then do: refuse with a typed error, or compute right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from context_models import OPENVINO, ContextModel, compile_context, foreign_container
from google.protobuf.message import DecodeError
from hostile import container_mutations, model_mutations
from hostile.fuzz_target import Finding, Outcome, Target
from hostile.ort_target import OrtModelTarget
from hostile.plain_target import PlainTarget
from hostile.reader_targets import READERS
from small_models import feed, mlp, sandwich, tied

import ort_lite as ort
from ctx_formats.container_reader import read_container

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from ctx_formats.container import Container


DEFAULTS: dict[str, object] = {
    "max_size": 0, "ep_sdk_version": 0, "hardware_architecture": 0, "onnx_model_filename": 0,
    "partition_name": 0, "source": 0,
}  # fmt: skip


class ContainerTarget(Target):
    """Payload containers: one payload, two, and one of a producer without digests."""

    name = "container"

    def __init__(self, folder: Path) -> None:
        self.bases: list[tuple[ContextModel, bytes, Container]] = []
        self.make(folder)

    def make(self, folder: Path) -> None:
        """Fill `bases`."""
        for name, proto in (("one", mlp()), ("two", sandwich()), ("foreign", mlp())):
            (folder / name).mkdir()
            made = compile_context(folder / name, proto, feed(proto), embed=False)
            if name == "foreign":
                foreign_container(made, bytes)
            self.add(made)

    def add(self, made: ContextModel) -> None:
        """Another context model whose payload file is to be damaged."""
        assert made.payload is not None
        data = made.payload.read_bytes()
        self.bases.append((made, data, read_container(memoryview(data))))

    def run(self, random: Random) -> Outcome:
        made, data, parsed = random.choice(self.bases)
        loaded = _loaded_by(made)
        changed, forged = container_mutations.damaged(data, parsed, loaded, random)
        self.last = changed
        if changed == data:
            return Outcome("unchanged")
        assert made.payload is not None
        made.payload.write_bytes(changed)
        try:
            with made.load() as session:
                (found,) = session.run(None, made.feed)
        except ort.InvalidGraph as exc:
            if exc.reason is None:
                raise Finding(f"INVALID_GRAPH without a reason: {exc}") from exc
            return Outcome("refused", str(exc.reason))
        elsewhere = not container_mutations.touches(data, changed, parsed, loaded)
        if parsed.has_digests and not forged and not elsewhere:
            raise Finding("a damaged container was accepted")
        if not np.array_equal(found, made.expected[0]):
            raise Finding("a damaged container gave other numbers")
        return Outcome("right", "elsewhere" if elsewhere else "forged" if forged else "foreign")


class SharedTarget(ContainerTarget):
    """Containers that several models share, with runs of weights of one and of both."""

    name = "shared"

    def make(self, folder: Path) -> None:
        """Two models with a weight in common, one that brings another weight."""
        protos = (tied(), tied(-1.0), tied(2.0, width=96))
        with ort.SharedContexts() as group:
            results = [_compiled(folder, i, proto, group) for i, proto in enumerate(protos)]
        for i, (proto, expected) in enumerate(zip(protos, results, strict=True)):
            path, payload = folder / f"m{i}_ctx.onnx", folder / f"m0_{OPENVINO}.bin"
            self.add(ContextModel(path, payload, feed(proto), expected))


def _compiled(
    folder: Path, index: int, proto: onnx.ModelProto, group: ort.SharedContexts
) -> list[np.ndarray]:
    """What a model of a group computes when it is compiled."""
    source = folder / f"m{index}.onnx"
    source.write_bytes(proto.SerializeToString())
    options = group.join(ort.SessionOptions())
    options.add_session_config_entry("ep.context_enable", "1")
    with ort.InferenceSession(source, options, providers=[OPENVINO]) as session:
        return session.run(None, feed(proto))


def _loaded_by(made: ContextModel) -> set[str]:
    """Names of the payloads that a model points to."""
    nodes = [n for n in onnx.load(made.path).graph.node if n.op_type == "EPContext"]
    return {a.s.decode() for n in nodes for a in n.attribute if a.name == "partition_name"}


class ModelTarget(Target):
    """Context models: wholly compiled and in part, payloads outside and inside."""

    name = "model"

    def __init__(self, folder: Path) -> None:
        self.bases = []
        for name, proto, embed in (
            ("mlp", mlp(), False),
            ("mlp_embedded", mlp(), True),
            ("part", sandwich(), False),
            ("part_embedded", sandwich(), True),
        ):
            (folder / name).mkdir()
            made = compile_context(folder / name, proto, feed(proto), embed=embed)
            self.bases.append((made, made.path.read_bytes()))

    def run(self, random: Random) -> Outcome:
        made, data = random.choice(self.bases)
        changed = model_mutations.damaged(data, random)
        self.last = changed
        if changed == data:
            return Outcome("unchanged")
        made.path.write_bytes(changed)
        try:
            with made.load() as session:
                found = session.run(None, made.feed)
        except ort.OrtLiteError as exc:
            reason = getattr(exc, "reason", None)
            return Outcome("refused", f"{exc.code.name}{f'/{reason}' if reason else ''}")
        except ValueError as exc:  # onnxruntime's class for a feed that does not fit the model
            if "missing from input feed" not in str(exc):
                raise
            return Outcome("another model", "inputs")
        return _judged(made, data, changed, found)


def _judged(made: ContextModel, data: bytes, changed: bytes, found: list[np.ndarray]) -> Outcome:
    """Numbers of a model that says the same must be the same; sealed attributes, too."""
    before = onnx.load_model_from_string(data)
    try:
        after = onnx.load_model_from_string(changed)
    except DecodeError:
        after = None  # wrong in a part that we do not look into
    same = len(found) == 1 and np.array_equal(found[0], made.expected[0])
    if after is None:
        if not same:
            raise Finding("a model that protobuf refuses gave other numbers")
        return Outcome("right", "not protobuf")
    if _payloads(after) != _payloads(before) and not _unsealed(after):
        pairs = zip(_payloads(before), _payloads(after), strict=False)
        told = [(k, str(b[k])[:99], str(a[k])[:99]) for b, a in pairs for k in b if a[k] != b[k]]
        raise Finding(f"a changed EPContext node was accepted: {told}")
    if same:
        return Outcome("right")
    if _meaning(after) == _meaning(before):
        raise Finding("a model that says the same gave other numbers")
    return Outcome("another model")


def _payloads(proto: onnx.ModelProto) -> list[dict[str, object]]:
    """The schema's sealed attributes of the EPContext nodes, with defaults, in no order.

    A payload may move into the model or out of it (embed_mode, main_context), a node before
    or behind another. Of a name that is there twice the last counts, and the field in use
    counts, not the type that is given beside it.
    """
    nodes = [node for node in proto.graph.node if node.op_type == "EPContext"]
    found = [
        DEFAULTS | {a.name: a.s or a.i for a in node.attribute if a.name in DEFAULTS}
        for node in nodes
    ]
    return sorted(found, key=lambda values: str(values["partition_name"]))


def _unsealed(proto: onnx.ModelProto) -> bool:
    """Whether a node lost its notes, and with them the seal: as from another producer."""
    nodes = [node for node in proto.graph.node if node.op_type == "EPContext"]
    return any(all(a.name != "notes" or b"seal" not in a.s for a in n.attribute) for n in nodes)


def _meaning(proto: onnx.ModelProto) -> onnx.GraphProto:
    """The graph without what changes no number."""
    graph = onnx.GraphProto.FromString(proto.graph.SerializeToString())
    graph.name = graph.doc_string = ""
    del graph.value_info[:]
    for node in graph.node:
        node.name = node.doc_string = ""
    return graph


SESSIONS: tuple[type[Target], ...] = (ContainerTarget, ModelTarget, SharedTarget)
TARGETS: dict[str, type[Target]] = {
    target.name: target
    for targets in (SESSIONS, (OrtModelTarget, PlainTarget), READERS)
    for target in targets
}
