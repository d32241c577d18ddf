"""Whether a payload may be given to this driver, and its program in the device."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ctx_formats.errors import FormatError, Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import replace
from eps.opencl.payload.format import identity_of, read_header, read_payload
from eps.opencl.runtime.program import build, load
from ort_lite.ep import CompiledModelCompatibility, EPFail, InvalidGraph, compare_identities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eps.opencl.cl.objects import Context
    from eps.opencl.cl.program import Program
    from eps.opencl.payload.format import ProgramPayload, ProgramVariant
    from ort_lite.ep import Compatibility

OPTIMAL = CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
_INFO_KEY, _INFO_FORMAT = "ort_lite_opencl", "1"
MAX_INFO = 1 << 16
REBUILD = "build the payload's own source for this driver with provider option rebuild=true"


def judge_identity(
    recorded: HardwareIdentity, present: HardwareIdentity, *, rebuild: bool
) -> Compatibility:
    """Every field must agree but the driver's, for which the payload's source can be built.

    That is refused without `rebuild`: a compile must not come as a surprise.
    """
    judgement = compare_identities(recorded, present, tolerated=("driver_version",))
    if judgement.verdict == OPTIMAL or judgement.reason is not None or rebuild:
        return judgement
    return replace(judgement, reason=Reason.DRIVER_VERSION, hint=REBUILD)


def open_payload(data: memoryview, shared: memoryview | None, alignment: int) -> ProgramPayload:
    """The payload with its weights, some of which may be in a shared file.

    Raises:
        InvalidGraph: It is damaged.
    """
    with _refuse_damage():
        return read_payload(data, alignment, shared)


def require_fit(recorded: HardwareIdentity, present: HardwareIdentity, *, rebuild: bool) -> bool:
    """Whether binaries are of this driver.

    Raises:
        InvalidGraph: They are made for another device, or another driver without `rebuild`.
    """
    judgement = judge_identity(recorded, present, rebuild=rebuild)
    if judgement.reason is not None:
        hint = f". To fix this: {judgement.hint}" if judgement.hint else ""
        raise InvalidGraph(
            f"{judgement.message} (reason: {judgement.reason}){hint}",
            reason=judgement.reason,
            recorded=recorded,
            present=present,
            hint=judgement.hint,
        )
    return judgement.verdict == OPTIMAL


def payload_identity(data: memoryview) -> HardwareIdentity:
    """The target of a payload, according to its header.

    Raises:
        InvalidGraph: It is damaged.
    """
    with _refuse_damage():
        return identity_of(read_header(data)[0])


@contextmanager
def _refuse_damage() -> Iterator[None]:
    try:
        yield
    except FormatError as exc:
        raise InvalidGraph(
            f"the payload is not an OpenCL payload of ort_lite: {exc} (reason: {exc.reason})",
            reason=exc.reason,
        ) from exc


def info_identity(info: str) -> HardwareIdentity | None:
    """Decode `info_text`; None for another format or version."""
    try:
        fields = json.loads(info) if len(info) <= MAX_INFO else None
        if not isinstance(fields, dict) or fields.get(_INFO_KEY) != _INFO_FORMAT:
            return None
        return HardwareIdentity.from_mapping(fields)
    except (ValueError, RecursionError):
        return None


def info_text(identity: HardwareIdentity) -> str:
    """The identity as JSON on one line, with the version of this form."""
    fields = {_INFO_KEY: _INFO_FORMAT, **identity.to_mapping()}
    return json.dumps(fields, separators=(",", ":"))


def programs_of(context: Context, variant: ProgramVariant, *, own: bool) -> list[Program]:
    """The programs, from the binaries where this driver made them, else one from the source.

    Raises:
        InvalidGraph: The driver refuses it.
    """
    try:
        if own:
            options = variant.spec.options
            return [load(context, bytes(binary), options) for binary in variant.binaries]
        return [build(context, variant.spec.source, variant.spec.options)]
    except EPFail as exc:
        raise driver_refusal(exc) from exc


def driver_refusal(exc: EPFail) -> InvalidGraph:
    """The driver's refusal as the error of a payload."""
    return InvalidGraph(
        f"the driver refuses the payload: {exc.message} (reason: {Reason.VENDOR_REJECTED})",
        reason=Reason.VENDOR_REJECTED,
    )
