"""Whether a compiled model may run here, without a session and mostly without an SDK."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ctx_formats.errors import Reason
from ort_lite.context.hints import recompile_hint
from ort_lite.context.keys import PROBE_KEY
from ort_lite.context.nodes import interface, is_context_node
from ort_lite.context.payload_checks import PayloadChecks
from ort_lite.context.signature_report import describe_signatures, signatures_of_loaded
from ort_lite.context.verdict import require_fit, require_identity
from ort_lite.ep.factory import SupportsRequirementText
from ort_lite.ep.interface import (
    CompiledModelCompatibility,
    SupportsEpContext,
    SupportsPayloadIdentity,
)
from ort_lite.model import loader
from ort_lite.model.info import ModelMetadata
from ort_lite.options import SessionOptions
from ort_lite.providers import catalog
from ort_lite.providers.provider_list import choose_requests, open_all, read_requests
from ort_lite.shortages import shortage_as_status
from ort_lite.status import EPFail, Fail, InvalidGraph

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.identity import HardwareIdentity
    from ctx_formats.onnx_model import Node
    from ort_lite.context.payload_checks import CheckedNode
    from ort_lite.ep.interface import ExecutionProvider, PartitionIo
    from ort_lite.model.graph import Graph
    from ort_lite.model.loader import LoadedModel
    from ort_lite.providers.provider_list import ProviderRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """The verdict on one EPContext node.

    Attributes:
        node: Its name.
        source: The EP that it is for.
        reason: Of the closed list, where a session refuses the payload; else None.
        message: For a person; "" when optimal.
        hint: What mends it, or "".
        integrity: "verified", or "not recorded" for a producer that writes no digests.
        recorded: What the payload was built for.
        signed_by: The model's signers, and whether their signatures are valid; "" if unsigned.
        present: What is here; None if no SDK had to be asked.
        needs: What the payload needs of a machine, in the words of its EP; "" if unknown.
    """

    node: str
    source: str
    verdict: CompiledModelCompatibility
    reason: Reason | None = None
    message: str = ""
    hint: str = ""
    integrity: str = ""
    signed_by: str = ""
    recorded: HardwareIdentity | None = None
    present: HardwareIdentity | None = None
    needs: str = ""

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON values."""
        return {
            **asdict(self),
            "verdict": self.verdict.name,
            "recorded": self.recorded.to_mapping() if self.recorded else None,
            "present": self.present.to_mapping() if self.present else None,
        }


def refusal(exc: InvalidGraph, *, node: str, source: str, integrity: str = "") -> NodeVerdict:
    """The verdict for what a session raises."""
    return NodeVerdict(
        node=node,
        source=source,
        verdict=CompiledModelCompatibility.EP_UNSUPPORTED,
        reason=exc.reason,
        message=exc.message,
        hint=exc.hint,
        integrity=integrity,
        recorded=exc.recorded,
        present=exc.present,
    )


@shortage_as_status("the model cannot be checked")
def check_compatibility(
    path_or_bytes: str | os.PathLike[str] | bytes,
    sess_options: SessionOptions | None = None,
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
) -> tuple[NodeVerdict, ...]:
    """The verdict that a session would reach, for each EPContext node of a model.

    What the files alone decide (a damaged, missing or misplaced payload, an unknown source)
    is decided before any SDK is imported. No payload is given to an SDK in this process; with
    `session.ep_context_probe` one is tried in a child process where a session would try it.

    Args:
        path_or_bytes: A context model; a model without EPContext nodes gives no verdicts.
        sess_options: For `ep.context_file_path` and the like.
        providers: The EPs that the session would have; None for those of `sess_options`, or
            else those the nodes name.

    Raises:
        OrtLiteError: The model itself cannot be read, or a payload that is to be tried in a
            child process cannot be.
    """
    options = (sess_options or SessionOptions()).snapshot()
    try:
        loaded = loader.load(path_or_bytes, options)
    except InvalidGraph as exc:
        if exc.reason is not Reason.UNTRUSTED:
            raise
        return (refusal(exc, node="", source=""),)
    try:
        with PayloadChecks(loaded, options) as checks:
            try:
                nodes = checks.nodes
            except InvalidGraph as exc:
                return (refusal(exc, node="", source=""),)
            signed_by = describe_signatures(signatures_of_loaded(loaded))
            results = [(node, *_check_files(checks, *node, signed_by)) for node in nodes]
            sources = tuple(dict.fromkeys(v.source for _, v, checked in results if checked))
            judge = _Judge(loaded, options, _provider_requests(loaded, options, providers, sources))
            try:
                return tuple(
                    _with_needs(
                        verdict if checked is None else judge.verdict(*node, verdict, checked)
                    )
                    for node, verdict, checked in results
                )
            finally:
                judge.release()
    finally:
        loaded.close()


def _with_needs(verdict: NodeVerdict) -> NodeVerdict:
    entry = catalog.entries().get(verdict.source)
    if verdict.recorded is None or entry is None:
        return verdict
    try:
        factory = entry.load()
    except EPFail:
        return verdict  # the verdict names the problem
    if not isinstance(factory, SupportsRequirementText):
        return verdict
    return replace(verdict, needs=factory.describe_requirements(verdict.recorded))


def _provider_requests(
    loaded: LoadedModel,
    options: SessionOptions,
    providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
    sources: Sequence[str],
) -> tuple[ProviderRequest, ...]:
    """The EPs that a session would have, with the options that it would give them."""
    free = providers is None and not options.has_providers() and not options.selects_devices
    named = sources if free else providers
    return choose_requests(
        options, read_requests(named, None), lambda: ModelMetadata.of(loaded.model)
    )


def _check_files(
    checks: PayloadChecks, raw: Node, node: EpContextNode, signed_by: str
) -> tuple[NodeVerdict, CheckedNode | None]:
    """The verdict by the files alone, with the node if they leave it to its EP."""
    try:
        checked = checks.check(raw, node)
    except InvalidGraph as exc:
        verdict = refusal(exc, node=node.name, source=node.source)
        return replace(verdict, signed_by=signed_by), None
    if node.source not in catalog.entries():
        known = ", ".join(catalog.entries())
        unknown = NodeVerdict(
            node=node.name,
            source=node.source,
            verdict=CompiledModelCompatibility.EP_UNSUPPORTED,
            reason=Reason.SOURCE_UNKNOWN,
            message=f"source '{node.source}' is not an installed execution provider ({known})",
            hint=f"install the execution provider '{node.source}'",
            signed_by=signed_by,
            recorded=checked.recorded,
        )
        return unknown, None
    good = NodeVerdict(
        node=node.name,
        source=node.source,
        verdict=CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL,
        integrity="verified" if checked.notes is not None else "not recorded",
        signed_by=signed_by,
        recorded=checked.recorded,
    )
    return good, checked


class _Judge:
    """Verdicts that compare a node with this machine; an EP is opened on its first use."""

    def __init__(
        self, loaded: LoadedModel, options: SessionOptions, requests: Sequence[ProviderRequest]
    ) -> None:
        self._loaded = loaded
        self._options = options
        self._requests = {request.name: request for request in requests}
        self._eps: dict[str, ExecutionProvider | EPFail] = {}
        self._interfaces: dict[int, PartitionIo] | None = None

    def release(self) -> None:
        """Let go of the EPs."""
        for ep in self._eps.values():
            if not isinstance(ep, EPFail):
                ep.release()

    def verdict(
        self, raw: Node, node: EpContextNode, verdict: NodeVerdict, checked: CheckedNode
    ) -> NodeVerdict:
        """The verdict on a node of which the files say nothing bad."""
        ep = self._open(node.source)
        if isinstance(ep, EPFail) or not isinstance(ep, SupportsEpContext):
            message = ep.message if isinstance(ep, EPFail) else f"{ep.name} keeps no contexts"
            return replace(
                verdict,
                verdict=CompiledModelCompatibility.EP_UNSUPPORTED,
                reason=Reason.DEVICE_MISSING,
                message=message,
                hint="run ort-lite doctor to see what is missing",
            )
        better = CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION
        verdict = replace(verdict, present=ep.identity)
        loaded = self._loaded
        again = recompile_hint(
            loaded, node.onnx_model_filename, source=node.source, present=ep.identity
        )
        try:
            file = loaded.description
            warning = require_fit(node, checked, ep, self._options, file=file)
            if isinstance(ep, SupportsPayloadIdentity):
                says = ep.identity_of_payload(checked.payload.data)
                require_identity(node, says, ep, self._options, loaded)
            self._probe(raw, node, checked, ep)
        except Fail as exc:
            return replace(verdict, verdict=better, message=exc.message, hint=again)
        except InvalidGraph as exc:
            refused = refusal(exc, node=node.name, source=node.source, integrity=verdict.integrity)
            refused = replace(refused, signed_by=verdict.signed_by)
            judged = ep.check_compatibility(checked.recorded)
            if judged.verdict is better and judged.reason is exc.reason:
                refused = replace(refused, verdict=better)  # it runs once an option says so
            return replace(refused, hint=refused.hint or again)
        if not warning:
            return verdict
        return replace(verdict, verdict=better, message=warning, hint=again)

    def _open(self, name: str) -> ExecutionProvider | EPFail:
        if name not in self._eps:
            request = self._requests.get(name)
            try:
                self._eps[name] = (
                    open_all([request])[0]
                    if request is not None
                    else EPFail(f"{name} is not among the requested providers")
                )
            except EPFail as exc:
                self._eps[name] = exc
        return self._eps[name]

    def _probe(
        self, raw: Node, node: EpContextNode, checked: CheckedNode, ep: ExecutionProvider
    ) -> None:
        """Try the payload in a child process, or remember how that went, as a session would."""
        if PROBE_KEY not in self._options.config:
            return
        from ort_lite.probing.probe import probe_of  # noqa: PLC0415 - lazy: rare

        probe = probe_of(
            self._options,
            [ep],
            {ep.name: self._requests[ep.name].options},
            believed=self._loaded.proof is not None,
        )
        if probe is None:
            return
        if self._interfaces is None:
            self._interfaces = dict(_interfaces(loader.as_graph(self._loaded.model)))
        probe(node, checked, self._interfaces[id(raw)])


def _interfaces(graph: Graph) -> Iterator[tuple[int, PartitionIo]]:
    """Inputs and outputs of each EPContext node, by the node's id."""
    for index, node in enumerate(graph.nodes):
        if is_context_node(node):
            yield id(node), interface(graph, node)
        for body in graph.bodies(index).values():
            yield from _interfaces(body)
