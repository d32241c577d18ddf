"""Whether a package's variant runs here: by the same checks as a session, with a typed reason."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass
from ort_lite.check import NodeVerdict, check_compatibility
from ort_lite.context.compatibility_info import judge_compatibility_info
from ort_lite.context.keys import SUBOPTIMAL_KEY
from ort_lite.ep.interface import Compatibility, CompiledModelCompatibility
from ort_lite.packages.package_files import PackageUnreachable
from ort_lite.packages.variant_notes import SOURCE, VariantNotes, read_notes_of
from ort_lite.providers import catalog
from ort_lite.status import EPFail, InvalidGraph, OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.package_manifest import PackageVariant
    from ort_lite.options import SessionOptions
    from ort_lite.providers.provider_list import ProviderRequest

OPTIMAL = CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
SUBOPTIMAL = CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION
PLAIN = CompiledModelCompatibility.EP_NOT_APPLICABLE
UNSUPPORTED = CompiledModelCompatibility.EP_UNSUPPORTED
SCORES = {OPTIMAL: 100, SUBOPTIMAL: 50, PLAIN: 0}
"""ONNX Runtime's scores; UNSUPPORTED has none."""
FALLBACK_KEY = "session.package_fallback"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantVerdict:
    """The verdict on one variant.

    Attributes:
        variant: Its name.
        ep: Its execution provider; "" if it names none.
        device: "cpu", "gpu", "npu" or "".
        role: "source", "compiled", or "" for a package of another producer.
        verdict: EP_NOT_APPLICABLE for a model that is not compiled and runs here.
        is_valid: Whether it may be chosen: not the source model, which only a fallback uses, and
            not a suboptimal one with session.fail_on_suboptimal_compiled_model.
        reason: Of the closed list; None if it runs here.
        message: For a person; "" when optimal.
        hint: What fixes it, or "".
        model_path: Absolute path of its model; "" if absent.
        provider_options: Options that its execution provider is opened with.
        session_options: Entries of the variant, paths made absolute.
        nodes: Verdicts on its EPContext nodes.
    """

    variant: str
    ep: str
    device: str = ""
    role: str = ""
    verdict: CompiledModelCompatibility
    is_valid: bool = False
    reason: Reason | None = None
    message: str = ""
    hint: str = ""
    model_path: str = ""
    provider_options: Mapping[str, str]
    session_options: Mapping[str, str]
    nodes: tuple[NodeVerdict, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The verdict as JSON values."""
        return {
            "variant": self.variant,
            "ep": self.ep,
            "device": self.device,
            "role": self.role,
            "verdict": self.verdict.name,
            "valid": self.is_valid,
            "reason": str(self.reason) if self.reason else None,
            "message": self.message,
            "hint": self.hint,
            "model": self.model_path,
            "provider_options": dict(self.provider_options),
            "nodes": [node.to_json() for node in self.nodes],
        }

    def __str__(self) -> str:
        """One line for a person."""
        words = {OPTIMAL: "fits", SUBOPTIMAL: "suboptimal", PLAIN: "not compiled"}
        refused = self.verdict is UNSUPPORTED or self.reason is not None
        word = f"refused ({self.reason})" if refused else words[self.verdict]
        return f"{self.variant}: {word}" + (f": {self.message}" if self.message else "")


class VariantJudge:
    """Judges variants for the execution providers that a session would have."""

    def __init__(
        self,
        options: SessionOptions,
        requests: Sequence[ProviderRequest],
        fetch: Callable[[PackageVariant], None] | None = None,
    ) -> None:
        """Judge nothing yet.

        Args:
            options: Of the session.
            requests: Its providers with their options, in order.
            fetch: Brings the files of a variant here that may run here; None if all are here.
        """
        self._options = options
        self._fetch = fetch
        self._requests = {request.name: request for request in requests}
        explicit = {request.name for request in requests if request.explicit}
        self._cpu_only = explicit == {catalog.DEFAULT_PROVIDER}
        self._kinds: dict[str, dict[str, Mapping[str, str]]] = {}

    def judge(self, variant: PackageVariant) -> VariantVerdict:
        """The verdict on a variant; what is wrong with it is never raised."""
        notes: VariantNotes | None = None
        try:
            notes = read_notes_of(variant)
            refusal = self._find_refusal(variant)
            if refusal is not None:
                return _verdict(variant, notes, refusal=refusal)
            return self._judge_model(variant, notes)
        except FormatError as exc:
            return _verdict(variant, notes, refusal=(exc.reason, str(exc), ""))
        except PackageUnreachable:
            raise  # says nothing of the variant
        except OrtLiteError as exc:
            reason = exc.reason if isinstance(exc, InvalidGraph) else None
            hint = exc.hint if isinstance(exc, InvalidGraph) else ""
            missing = Reason.DEVICE_MISSING if isinstance(exc, EPFail) else Reason.FORMAT
            return _verdict(variant, notes, refusal=(reason or missing, exc.message, hint))

    def _find_refusal(self, variant: PackageVariant) -> tuple[Reason, str, str] | None:
        """Reason, message and hint of what the manifest alone decides."""
        installed = ", ".join(catalog.entries())
        if not variant.ep:
            return Reason.SOURCE_UNKNOWN, "it names no execution provider", ""
        if variant.ep not in catalog.entries():
            hint = f"install the execution provider '{variant.ep}'"
            return Reason.SOURCE_UNKNOWN, f"{variant.ep} is not installed ({installed} are)", hint
        if variant.ep not in self._requests:
            hint = f"add {variant.ep} to the session's providers"
            return Reason.DEVICE_MISSING, f"the session does not use {variant.ep}", hint
        if not variant.model_path:
            return Reason.FORMAT, "executor_info['ort'] names no model_file", ""
        if self._fetch is None and not os.path.isfile(variant.model_path):  # noqa: PTH113 - a path of the reader
            return Reason.MISSING_PAYLOAD, f"{variant.model_path} does not exist", ""
        catalog.require_present(variant.ep)
        return None

    def _judge_model(self, variant: PackageVariant, notes: VariantNotes | None) -> VariantVerdict:
        role = notes.role if notes is not None else ""
        if role == SOURCE and not self._cpu_only:
            message = f"the source model, which {FALLBACK_KEY} allows to use"
            return _verdict(variant, notes, verdict=PLAIN, message=message)
        own = self._own_options(variant, notes)
        if own is None:
            kind = variant.device.upper()
            hint = "run ort-lite doctor to see what is missing"
            message = f"{variant.ep} finds no {kind} on this machine"
            return _verdict(variant, notes, refusal=(Reason.DEVICE_MISSING, message, hint))
        options = {**own, **self._requests[variant.ep].options}
        if self._fetch is not None:
            by_info = self._judge_info(variant, options)
            if by_info.verdict is UNSUPPORTED:
                refusal = (by_info.reason or Reason.VENDOR_REJECTED, by_info.message, by_info.hint)
                return _verdict(variant, notes, refusal=refusal, provider_options=options)
            self._fetch(variant)
        others = [(r.name, r.options) for r in self._requests.values() if r.name != variant.ep]
        nodes = check_compatibility(
            variant.model_path,
            with_entries(self._options, variant.session_options),
            [(variant.ep, options), *others],
        )
        return self._summarize(variant, notes, nodes, options)

    def _judge_info(self, variant: PackageVariant, options: Mapping[str, str]) -> Compatibility:
        """The verdict on the manifest's compatibility text, before any file is fetched."""
        if not variant.compatibility_string:
            return Compatibility(PLAIN)
        ep = catalog.open_provider(catalog.entries()[variant.ep], options)
        try:
            return judge_compatibility_info(ep, variant.compatibility_string)
        finally:
            ep.release()

    def _summarize(
        self,
        variant: PackageVariant,
        notes: VariantNotes | None,
        nodes: tuple[NodeVerdict, ...],
        options: Mapping[str, str],
    ) -> VariantVerdict:
        if not nodes:
            return _verdict(variant, notes, verdict=PLAIN, is_valid=True, provider_options=options)
        worst = next((n for n in nodes if n.verdict is UNSUPPORTED), None)
        worst = worst or next((n for n in nodes if n.verdict is SUBOPTIMAL), nodes[0])
        if worst.verdict is UNSUPPORTED:
            refusal = (worst.reason or Reason.VENDOR_REJECTED, worst.message, worst.hint)
            return _verdict(variant, notes, refusal=refusal, nodes=nodes, provider_options=options)
        strict = self._options.flag(SUBOPTIMAL_KEY) or worst.reason is not None
        return _verdict(
            variant,
            notes,
            refusal=(worst.reason, worst.message, worst.hint),
            verdict=worst.verdict,
            is_valid=worst.verdict is OPTIMAL or not strict,
            nodes=nodes,
            provider_options=options,
        )

    def _own_options(
        self, variant: PackageVariant, notes: VariantNotes | None
    ) -> Mapping[str, str] | None:
        """Provider options of the variant's device; None if there is no device of its kind."""
        factory = catalog.entries()[variant.ep].load()
        own = notes.provider_options if notes is not None else {}
        own = {key: value for key, value in own.items() if key in factory.options}
        if not variant.device or variant.ep == catalog.DEFAULT_PROVIDER:
            return own if variant.device in ("", "cpu") else None
        if variant.ep not in self._kinds:
            probe = factory.probe()
            self._kinds[variant.ep] = {d.kind: d.options for d in reversed(probe.devices)}
        of_kind = self._kinds[variant.ep].get(variant.device.upper())
        return (own or of_kind) if of_kind is not None else None


def with_entries(options: SessionOptions, entries: Mapping[str, str]) -> SessionOptions:
    """A copy of `options` with those of `entries` that the user has not set."""
    changed = options.snapshot()
    for key, value in entries.items():
        if key not in options.config:
            changed.add_session_config_entry(key, value)
    return changed


def _verdict(
    variant: PackageVariant,
    notes: VariantNotes | None,
    *,
    refusal: tuple[Reason | None, str, str] = (None, "", ""),
    **fields: Any,  # noqa: ANN401 - of VariantVerdict
) -> VariantVerdict:
    """The verdict on a variant; `refusal` is reason, message and hint where it cannot run."""
    reason, message, hint = refusal
    values: dict[str, Any] = {
        "verdict": UNSUPPORTED,
        "reason": reason,
        "message": message,
        "hint": hint,
        "provider_options": {},
    }
    return VariantVerdict(
        variant=variant.name,
        ep=variant.ep,
        device=variant.device,
        role=notes.role if notes is not None else "",
        model_path=variant.model_path,
        session_options=variant.session_options,
        **(values | fields),
    )
