"""Probes the devices that OpenVINO has, and why a GPU or NPU is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from eps.openvino.options import device_kind
from eps.openvino.payload.identity import read_identity
from eps.openvino.sdk.binding import VERSION, BindingRuntime, ov
from eps.openvino.sdk_errors import PROPERTY_ERRORS, SDK_ERRORS, sdk_text
from ort_lite.ep import DeviceInfo, EPFail, Probe

if TYPE_CHECKING:
    import openvino

_ACCEL = Path("/dev/accel")
_RENDER = Path("/dev/dri")


def probe_devices() -> Probe:
    """Every device, with its identity; why a GPU or NPU is missing."""
    try:
        core = ov.Core()
        runtime = BindingRuntime(core)
        names = list(runtime.available_devices())
    except SDK_ERRORS as exc:
        return Probe(reason=f"OpenVINO does not start: {sdk_text(exc)}")
    devices = []
    attempts = [f"OpenVINO {VERSION}: available_devices {names}"]
    for name in names:
        try:
            identity = read_identity(runtime, name)
        except EPFail as exc:
            attempts.append(f"{name}: {exc.message}")
            continue
        devices.append(
            DeviceInfo(
                name=name,
                kind=device_kind(name),
                description=identity.device.partition(": ")[2],
                identity=identity,
                options={"device_type": name},
                memory=_read_memory(runtime, name),
                features=_read_capabilities(core, name),
            )
        )
    kinds = {device.kind for device in devices}
    missing = [kind for kind in ("GPU", "NPU") if kind not in kinds]
    for kind in missing:
        attempts += _explain_absence(core, kind)
    reason = f"no {' and no '.join(missing)}" if missing else ""
    return Probe(tuple(devices), reason, tuple(attempts))


def _read_memory(runtime: BindingRuntime, name: str) -> int:
    """Size of a GPU's or NPU's memory in bytes; 0 for the CPU, which has no such property."""
    text = runtime.property(name, f"{device_kind(name)}_DEVICE_TOTAL_MEM_SIZE") or ""
    return int(text) if text.isdecimal() else 0


def _read_capabilities(core: openvino.Core, name: str) -> tuple[str, ...]:
    """What the plug-in lists as OPTIMIZATION_CAPABILITIES: FP16, INT8, EXPORT_IMPORT, ..."""
    try:
        return tuple(core.get_property(name, "OPTIMIZATION_CAPABILITIES"))
    except PROPERTY_ERRORS:
        return ()


def _explain_absence(core: openvino.Core, kind: str) -> list[str]:
    """State of the plug-in and the device files of an absent kind of device."""
    try:
        core.get_property(kind, "FULL_DEVICE_NAME")
        answer = "answers"
    except PROPERTY_ERRORS as exc:
        answer = sdk_text(exc)[:200]
    return [
        f"{kind}: plug-in: {answer}",
        f"{kind}: {_device_files(_ACCEL if kind == 'NPU' else _RENDER)}",
    ]


def _device_files(folder: Path) -> str:
    if not folder.is_dir():
        return f"{folder} does not exist (no driver, or none for this device)"
    lines = []
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            continue
        usable = os.access(path, os.R_OK | os.W_OK)
        lines.append(f"{path}{'' if usable else ' (no permission: join its group, often render)'}")
    return ", ".join(lines) or f"{folder} is empty"
