"""Recorded identity against the present one: the verdict before a payload is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ort_lite.execution_provider import Compatibility, CompiledModelCompatibility

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.identity import FieldDifference, HardwareIdentity

_REASONS = {
    "sdk_version": Reason.SDK_VERSION,
    "sdk_build": Reason.SDK_VERSION,
    "driver_version": Reason.DRIVER_VERSION,
    "vendor": Reason.HARDWARE_ARCHITECTURE,
    "architecture": Reason.HARDWARE_ARCHITECTURE,
    "device": Reason.HARDWARE_ARCHITECTURE,
    "requirements": Reason.HARDWARE_ARCHITECTURE,
}

OPTIMAL = Compatibility(CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL)


def unsupported(reason: Reason, message: str) -> Compatibility:
    """A refusal."""
    return Compatibility(CompiledModelCompatibility.EP_UNSUPPORTED, reason, message)


def compare_identities(
    recorded: HardwareIdentity,
    present: HardwareIdentity,
    *,
    tolerated: Sequence[str] = (),
) -> Compatibility:
    """The default verdict: every field that both sides report must be equal.

    Args:
        recorded: From the EPContext node.
        present: Of the EP that would load the payload.
        tolerated: Fields whose difference costs speed but not correctness on this SDK; a
            difference in them alone gives EP_SUPPORTED_PREFER_RECOMPILATION.
    """
    differences = recorded.differences(present)
    fatal = [d for d in differences if d.field not in tolerated]
    if fatal:
        return unsupported(_REASONS[fatal[0].field], _told(fatal))
    if differences:
        return Compatibility(
            CompiledModelCompatibility.EP_SUPPORTED_PREFER_RECOMPILATION,
            message=_told(differences),
        )
    return OPTIMAL


def _told(differences: Sequence[FieldDifference]) -> str:
    return "; ".join(
        f"{d.field}: built with '{d.recorded}', here '{d.present}'" for d in differences
    )
