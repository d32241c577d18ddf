"""Whether a compiled model may run here, without a session and mostly without an SDK."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ctx_formats.errors import Reason
from ort_lite import catalog, model_loader
from ort_lite.context_loader import (
    RECOMPILE,
    base_folder,
    check_identity,
    examine,
    parse_node,
    refused,
)
from ort_lite.context_nodes import all_nodes, is_context_node
from ort_lite.execution_provider import (
    CompiledModelCompatibility,
    ReadsRecords,
    SupportsEpContext,
)
from ort_lite.options import SessionOptions
from ort_lite.payload_store import PayloadStore
from ort_lite.provider_list import open_all, requested
from ort_lite.status import EPFail, Fail, InvalidGraph

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.identity import HardwareIdentity
    from ort_lite.context_loader import Examined
    from ort_lite.execution_provider import ExecutionProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """The verdict on one EPContext node.

    Attributes:
        node: Its name.
        source: The EP that it is for.
        reason: Of the closed list; None unless the verdict is EP_UNSUPPORTED.
        message: For a person; "" when optimal.
        hint: What mends it, or "".
        integrity: "verified", or "not recorded" for a producer that writes no digests.
        recorded: What the payload was built for.
        present: What is here; None where no SDK had to be asked.
    """

    node: str
    source: str
    verdict: CompiledModelCompatibility
    reason: Reason | None = None
    message: str = ""
    hint: str = ""
    integrity: str = ""
    recorded: HardwareIdentity | None = None
    present: HardwareIdentity | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **asdict(self),
            "verdict": self.verdict.name,
            "recorded": self.recorded.to_mapping() if self.recorded else None,
            "present": self.present.to_mapping() if self.present else None,
        }


def check_compatibility(
    path_or_bytes: str | os.PathLike[str] | bytes,
    sess_options: SessionOptions | None = None,
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
) -> tuple[NodeVerdict, ...]:
    """The verdict that a session would reach, for each EPContext node of a model.

    What the files alone decide (a damaged, missing or misplaced payload, an unknown source)
    is decided before any SDK is imported. No payload is given to an SDK.

    Args:
        path_or_bytes: A context model; a model without EPContext nodes gives no verdicts.
        sess_options: For `ep.context_file_path` and the like.
        providers: The EPs that the session would have; None for those the nodes name.

    Raises:
        OrtLiteError: The model itself cannot be read.
    """
    options = sess_options or SessionOptions()
    loaded = model_loader.load(path_or_bytes, options)
    try:
        nodes = _context_nodes(loaded)
        if isinstance(nodes, InvalidGraph):
            return (_refusal("", "", nodes),)
        store = PayloadStore(base_folder(loaded.path, options), loaded.path, options)
        try:
            return _verdicts(nodes, store, options, providers)
        finally:
            store.close()
    finally:
        loaded.close()


def _context_nodes(
    loaded: model_loader.LoadedModel,
) -> tuple[EpContextNode, ...] | InvalidGraph:
    try:
        return tuple(
            parse_node(node, loaded.described)
            for node in all_nodes(loaded.model.graph)
            if is_context_node(node)
        )
    except InvalidGraph as exc:
        return exc


def _verdicts(
    nodes: Sequence[EpContextNode],
    store: PayloadStore,
    options: SessionOptions,
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
) -> tuple[NodeVerdict, ...]:
    primaries = [node for node in nodes if node.main_context]
    by_file = [_from_file(node, store, primaries, options) for node in nodes]
    names = list(dict.fromkeys(v.source for v, _ in by_file if v.reason is None))
    asked = requested(options, providers if providers is not None else names, None)
    eps: dict[str, ExecutionProvider | EPFail] = {}
    verdicts = []
    for node, (verdict, found) in zip(nodes, by_file, strict=True):
        if found is None:
            verdicts.append(verdict)
            continue
        if node.source not in eps:
            eps[node.source] = _opened(node.source, asked)
        verdicts.append(_with_ep(node, verdict, found, eps[node.source], options))
    for ep in eps.values():
        if not isinstance(ep, EPFail):
            ep.release()
    return tuple(verdicts)


def _opened(name: str, asked: Sequence[Any]) -> ExecutionProvider | EPFail:
    wanted = [request for request in asked if request.name == name]
    if not wanted:
        return EPFail(f"{name} is not among the providers asked for")
    try:
        return open_all(wanted, fallback=False)[0]
    except EPFail as exc:
        return exc


def _from_file(
    node: EpContextNode,
    store: PayloadStore,
    primaries: Sequence[EpContextNode],
    options: SessionOptions,
) -> tuple[NodeVerdict, Examined | None]:
    """What the files alone say; None besides where they decide against the payload."""
    try:
        found = examine(node, store, primaries, options)
    except InvalidGraph as exc:
        return _refusal(node.name, node.source, exc), None
    if node.source not in catalog.entries():
        known = ", ".join(catalog.entries())
        unknown = NodeVerdict(
            node=node.name,
            source=node.source,
            verdict=CompiledModelCompatibility.EP_UNSUPPORTED,
            reason=Reason.SOURCE_UNKNOWN,
            message=f"source '{node.source}' is no installed execution provider ({known})",
            hint=f"install the execution provider '{node.source}'",
            recorded=found.recorded,
        )
        return unknown, None
    good = NodeVerdict(
        node=node.name,
        source=node.source,
        verdict=CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL,
        integrity="verified" if found.notes is not None else "not recorded",
        recorded=found.recorded,
    )
    return good, found


def _with_ep(
    node: EpContextNode,
    verdict: NodeVerdict,
    found: Examined,
    ep: ExecutionProvider | EPFail,
    options: SessionOptions,
) -> NodeVerdict:
    """What the EP adds: the identity of this machine."""
    if isinstance(ep, EPFail) or not isinstance(ep, SupportsEpContext):
        message = ep.message if isinstance(ep, EPFail) else f"{ep.name} keeps no contexts"
        return replace(
            verdict,
            verdict=CompiledModelCompatibility.EP_UNSUPPORTED,
            reason=Reason.DEVICE_MISSING,
            message=message,
            hint="ort-lite doctor says what is missing",
        )
    better = CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION
    try:
        warning = check_identity(node, found.recorded, ep, options)
        if found.seal is not None:
            raise refused(found.seal, recorded=found.recorded)
        if isinstance(ep, ReadsRecords):
            check_identity(node, ep.identity_of_payload(found.payload.data), ep, options)
    except Fail as exc:
        return replace(
            verdict, verdict=better, message=exc.message, hint=RECOMPILE, present=ep.identity
        )
    except InvalidGraph as exc:
        return replace(_refusal(node.name, node.source, exc), integrity=verdict.integrity)
    return replace(
        verdict,
        verdict=better if warning else verdict.verdict,
        message=warning,
        hint=RECOMPILE if warning else "",
        present=ep.identity,
    )


def _refusal(name: str, source: str, exc: InvalidGraph) -> NodeVerdict:
    return NodeVerdict(
        node=name,
        source=source,
        verdict=CompiledModelCompatibility.EP_UNSUPPORTED,
        reason=exc.reason,
        message=exc.message,
        hint=exc.hint,
        recorded=exc.recorded,
        present=exc.present,
    )
