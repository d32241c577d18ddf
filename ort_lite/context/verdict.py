"""Whether a checked payload fits an execution provider: the verdict before the import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ort_lite.context.keys import SUBOPTIMAL_KEY
from ort_lite.ep.interface import CompiledModelCompatibility, SupportsOptionPromises
from ort_lite.status import Fail, InvalidGraph

if TYPE_CHECKING:
    from ctx_formats.ep_context import EpContextNode
    from ctx_formats.identity import HardwareIdentity
    from ort_lite.context.payload_checks import CheckedNode
    from ort_lite.ep.interface import SupportsEpContext
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions


def require_fit(
    node: EpContextNode,
    checked: CheckedNode,
    ep: SupportsEpContext,
    options: SessionOptions,
    *,
    file: str,
) -> str:
    """Compare what a payload was compiled for with what is present; a warning text, or "".

    Args:
        node: Whose payload.
        checked: The node with its payload.
        ep: That would import it.
        options: What is required of payloads.
        file: The model in a message.

    Raises:
        InvalidGraph: It does not run here, or its node was edited.
        Fail: It runs, but not at its best, and `session.fail_on_suboptimal_compiled_model`.
    """
    loaded, name = checked.loaded, node.onnx_model_filename
    warning = require_identity(node, checked.recorded, ep, options, loaded)
    if checked.seal is not None:
        from ort_lite.context.hints import refusal_of  # noqa: PLC0415 - lazy: rare

        seal = checked.seal.in_file(file)
        raise refusal_of(seal, name, loaded, recorded=checked.recorded)
    missing = _missing_option(ep, checked)
    if missing:
        from ort_lite.context.hints import recompile_hint  # noqa: PLC0415 - lazy: rare

        hint = recompile_hint(loaded, name, source=node.source, option=missing)
        raise InvalidGraph(
            f"EPContext node '{node.name}': the session has provider option {missing}, and the "
            f"payload was made without it (reason: {Reason.OPTIONS}). To fix this: {hint}",
            reason=Reason.OPTIONS,
            recorded=checked.recorded,
            present=getattr(ep, "identity", None),
            hint=hint,
        )
    if checked.payload.weights is not None and not _shares_weights(ep):
        from ort_lite.context.hints import recompile_hint  # noqa: PLC0415 - lazy: rare

        hint = recompile_hint(loaded, name)
        raise InvalidGraph(
            f"EPContext node '{node.name}': the payload refers to shared weights, and this "
            f"{node.source} does not support them (reason: {Reason.FORMAT}). To fix this: {hint}",
            reason=Reason.FORMAT,
            recorded=checked.recorded,
            hint=hint,
        )
    return warning


def _missing_option(ep: SupportsEpContext, checked: CheckedNode) -> str:
    if not isinstance(ep, SupportsOptionPromises):
        return ""
    return ep.missing_option(checked.notes.options if checked.notes is not None else {})


def _shares_weights(ep: SupportsEpContext) -> bool:
    from ort_lite.ep.interface import SupportsWeightSharing  # noqa: PLC0415 - lazy: rare

    return isinstance(ep, SupportsWeightSharing)


def require_identity(
    node: EpContextNode,
    recorded: HardwareIdentity,
    ep: SupportsEpContext,
    options: SessionOptions,
    loaded: LoadedModel,
) -> str:
    """As `require_fit`, for one identity; `loaded` is the context model, for a hint's command.

    Raises:
        InvalidGraph: It does not run here.
        Fail: See `require_fit`.
    """
    verdict = ep.check_compatibility(recorded)
    if verdict.reason is not None or verdict.verdict == CompiledModelCompatibility.EP_UNSUPPORTED:
        from ort_lite.context.hints import recompile_hint  # noqa: PLC0415 - lazy: rare

        present = getattr(ep, "identity", None)
        again = recompile_hint(
            loaded, node.onnx_model_filename, source=node.source, present=present
        )
        hint = f"{verdict.hint}, or {again}" if verdict.hint else again
        raise InvalidGraph(
            f"EPContext node '{node.name}' was compiled for something else: {verdict.message} "
            f"(reason: {verdict.reason}). To fix this: {hint}",
            reason=verdict.reason or Reason.VENDOR_REJECTED,
            recorded=recorded,
            present=getattr(ep, "identity", None),
            hint=hint,
        )
    if verdict.verdict == CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION:
        if options.flag(SUBOPTIMAL_KEY):
            raise Fail(
                f"Compiled model is suboptimal for execution provider: {node.source}. "
                f"Recompilation recommended for better performance. {verdict.message}"
            )
        return verdict.message
    return ""
