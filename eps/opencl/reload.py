"""Whether a payload may be given to this driver, and its program in the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from eps.opencl.payload import Payload, Variant, read_payload
from eps.opencl.ports import HINT
from eps.opencl.program import build, load
from ort_lite.compatibility import compare_identities
from ort_lite.execution_provider import Compatibility, CompiledModelCompatibility
from ort_lite.status import EPFail, InvalidGraph

if TYPE_CHECKING:
    import pyopencl as cl

    from ctx_formats.identity import HardwareIdentity
    from eps.opencl.program import Program

UNSUPPORTED = CompiledModelCompatibility.EP_UNSUPPORTED
OPTIMAL = CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL


def verdict(
    recorded: HardwareIdentity, present: HardwareIdentity, *, rebuild: bool
) -> Compatibility:
    """Every field must agree; of another driver only with `rebuild`, which builds the source."""
    tolerated = ("driver_version",) if rebuild else ()
    found = compare_identities(recorded, present, tolerated=tolerated)
    if found.reason is Reason.DRIVER_VERSION:
        advice = "provider option rebuild=true builds the payload's own source for this driver"
        return Compatibility(found.verdict, found.reason, f"{found.message}. {advice}")
    return found


def open_payload(
    data: memoryview, present: HardwareIdentity, alignment: int, *, rebuild: bool
) -> tuple[Payload, bool]:
    """The payload, and whether its binaries are of this driver.

    Raises:
        InvalidGraph: It is damaged, or made for another device or driver.
    """
    try:
        payload = read_payload(data, alignment)
    except FormatError as exc:
        raise InvalidGraph(
            f"the payload is no OpenCL payload of ort_lite: {exc} (reason: {exc.reason})",
            reason=exc.reason,
            hint=HINT,
        ) from exc
    found = verdict(payload.identity, present, rebuild=rebuild)
    if found.verdict == UNSUPPORTED:
        raise InvalidGraph(
            f"{found.message} (reason: {found.reason}). To mend it: {HINT}.",
            reason=found.reason,
            recorded=payload.identity,
            present=present,
            hint=HINT,
        )
    return payload, found.verdict == OPTIMAL


def program_of(context: cl.Context, device: cl.Device, variant: Variant, *, own: bool) -> Program:
    """The program, from the binary where this driver made it, else from the source.

    Raises:
        InvalidGraph: The driver refuses it.
    """
    try:
        if own:
            return load(context, device, bytes(variant.binary), variant.blueprint)
        return build(context, variant.blueprint)
    except EPFail as exc:
        raise rejected(exc) from exc


def rejected(exc: EPFail) -> InvalidGraph:
    """The driver's refusal as the error of a payload."""
    return InvalidGraph(
        f"the driver refuses the payload: {exc.message} (reason: {Reason.VENDOR_REJECTED})",
        reason=Reason.VENDOR_REJECTED,
        hint=HINT,
    )
