"""Identities of a device and of payloads, from whatever states one.

A device reports properties. A blob begins with a requirement text (blob_header.py), which OpenVINO
2026.4 and later also reports for a compiled model, as does the NPU's compiler without a device.
ONNX Runtime's OpenVINO EP keeps that text as JSON in a model's metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.identity import HardwareIdentity
from eps.openvino.options import device_kind
from eps.openvino.payload.blob_header import parse_requirements
from eps.openvino.sdk_errors import PROPERTY_ERRORS, SDK_ERRORS, sdk_text
from ort_lite.ep import EPFail, get_logger

if TYPE_CHECKING:
    import openvino

    from eps.openvino.options import OpenVINOOptions
    from eps.openvino.sdk.runtime import Runtime

log = get_logger(__name__)

INFO_VERSION = "1.0"
_MAX_INFO = 1 << 16
_REQUIREMENTS = "RUNTIME_REQUIREMENTS"
_WITH_REQUIREMENTS = ("CPU", "GPU", "NPU")

_DRIVER = {"NPU": ("NPU_DRIVER_VERSION", "NPU_COMPILER_VERSION")}


def sdk_version(build: str) -> str:
    """`2026.4.1` of `2026.4.1-22982-e213a147257-releases/2026/4`."""
    return build.split("-")[0]


def read_identity(runtime: Runtime, device: str) -> HardwareIdentity:
    """The identity of `device` (a kind, or one of several: "GPU.1").

    Raises:
        EPFail: OpenVINO does not have the device; the text lists those it has.
    """
    name, full_name = _identifying_device(runtime, device)
    kind = device_kind(name)
    drivers = [runtime.property(name, key) for key in _DRIVER.get(kind, ())]
    architecture = runtime.property(name, "DEVICE_ARCHITECTURE") or kind
    return HardwareIdentity(
        vendor="Intel" if "intel" in full_name.lower() else "",
        device=f"{device}: {full_name}",
        architecture=architecture.removeprefix("NPU") or kind,
        driver_version="/".join(driver for driver in drivers if driver is not None),
        sdk_version=sdk_version(runtime.version),
        sdk_build=runtime.version,
    )


def _identifying_device(runtime: Runtime, device: str) -> tuple[str, str]:
    """Name of the device whose properties identify `device`, and its full name.

    AUTO runs on its first present member; the other groups need all of theirs.

    Raises:
        EPFail: A required device is absent.
    """
    group, _, members = device.partition(":")
    names = members.split(",") if members else ["CPU" if device == "AUTO" else device]
    full_names = {name: runtime.property(name, "FULL_DEVICE_NAME") for name in names}
    present = [name for name in names if full_names[name] is not None]
    if not present or (group != "AUTO" and len(present) < len(names)):
        raise EPFail(missing_device(runtime, device))
    return present[0], str(full_names[present[0]])


def device_to_compile_for(runtime: Runtime, device: str) -> str:
    """`device`; AUTO without its absent members.

    OpenVINO skips absent members of AUTO itself, but not one whose plug-in cannot be loaded: the
    GPU's on a machine without an OpenCL loader.
    """
    group, _, members = device.partition(":")
    if group != "AUTO" or not members:
        return device
    names = members.split(",")
    present = [name for name in names if runtime.property(name, "FULL_DEVICE_NAME") is not None]
    if not present:
        return device
    if len(present) < len(names):
        log.info("%s: only %s is here", device, ", ".join(present))
    return f"{group}:{','.join(present)}"


def missing_device(runtime: Runtime, device: str) -> str:
    """Error text for an absent device, with the devices that OpenVINO has."""
    try:
        available = ", ".join(runtime.available_devices()) or "none"
    except SDK_ERRORS as exc:
        available = f"unknown ({sdk_text(exc)})"
    if available == "none":
        available += ", so its plug-ins do not load (no memory, threads or descriptors are left?)"
    return (
        f"OpenVINO has no device '{device}' on this machine; found: {available}. "
        "Run ort-lite doctor to see what is missing."
    )


def requirement_identity(text: str) -> HardwareIdentity:
    """Identity from a requirement text `meta=1.0;ov=2026.4.1;isa=...`; all fields "" for ""."""
    return HardwareIdentity(sdk_version=parse_requirements(text).get("ov", ""), requirements=text)


def compatibility_json(identity: HardwareIdentity) -> str:
    """`ep_compatibility_info` in the form of ONNX Runtime's OpenVINO EP 1.8."""
    import json  # noqa: PLC0415 - lazy: reload

    from ort_lite.ep import VERSION  # noqa: PLC0415 - lazy: rare

    return json.dumps(
        {
            "ovep_compat_ver": INFO_VERSION,
            "ovep_ver": f"ort_lite-{VERSION}",
            "ovep_bin_ver": "1.1",
            "ov_compat_string": identity.requirements,
        },
        separators=(",", ":"),
    )


def info_identity(info: str) -> HardwareIdentity | None:
    """Identity from such a JSON text; None if it has another form or version.

    The version of the EP that wrote it does not matter: the container and OpenVINO's own
    requirement text decide what loads.
    """
    import json  # noqa: PLC0415 - lazy: reload

    try:
        fields = json.loads(info) if len(info) <= _MAX_INFO else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("ovep_compat_ver") != INFO_VERSION:
        return None
    text = fields.get("ov_compat_string")
    return requirement_identity(text) if isinstance(text, str) else None


def requirements_of(compiled: openvino.CompiledModel, options: OpenVINOOptions) -> str:
    """Requirement text of a compiled model; "" if its plug-in reports none (before 2026.4)."""
    if options.kind not in _WITH_REQUIREMENTS:
        return ""
    try:
        return str(compiled.get_property(_REQUIREMENTS))
    except PROPERTY_ERRORS:
        return ""


def present_requirements(core: openvino.Core, options: OpenVINOOptions) -> str:
    """Requirement text of the device, from a one-operator model compiled for it (about 25 ms)."""
    if options.kind not in _WITH_REQUIREMENTS:
        return ""
    absent = {"NPU_PLATFORM": options.npu_platform} if options.npu_platform else {}
    try:
        compiled = core.compile_model(_smallest_model(), options.device, absent)
    except PROPERTY_ERRORS:
        return ""
    return requirements_of(compiled, options)


def _smallest_model() -> openvino.Model:
    """A model whose output is its input."""
    from eps.openvino.sdk.binding import ov  # noqa: PLC0415 - lazy: reload

    parameter = ov.op.Parameter(ov.Type.f32, ov.Shape([1]))
    return ov.Model([ov.op.Result(parameter.output(0))], [parameter], "smallest")
