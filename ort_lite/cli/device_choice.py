"""`--device npu`: an execution provider and its option for a kind of device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ort_lite.ep.factory import DeviceInfo, Probe
    from ort_lite.status import EPFail

    Providers = tuple[tuple[str, Mapping[str, str]], ...]

OPENVINO, OPENCL, CPU = (
    "OpenVINOExecutionProvider",
    "OpenCLExecutionProvider",
    "CPUExecutionProvider",
)
DOCTOR_HINT = "run ort-lite doctor to see what is missing"
"""The EPs' own errors about absent devices end with it."""
KINDS = ("CPU", "GPU", "NPU")
_OPTIONS = {OPENVINO: "device_type", OPENCL: "device"}
"""Execution provider to its option that names a device."""


def complete_device(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Kinds of devices that begin with `typed`."""
    return [kind.lower() for kind in KINDS if kind.lower().startswith(typed.lower())]


def device_option(summary: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option --device, passed as `device`: "" if it is not given."""
    return click.option(
        "--device", default="", metavar="cpu|gpu|npu[.N]", shell_complete=complete_device,
        help=summary,
    )  # fmt: skip


def with_device(providers: Providers | None, text: str) -> Providers | None:
    """`providers` on the device that `text` names.

    Args:
        providers: As the user named them; None for all that are installed.
        text: cpu, gpu or npu, with or without a number: `gpu.1`; "" changes nothing.

    Raises:
        UsageError: `text` is none of these, or the named providers have no such device.
        CommandError: NO_HARDWARE; no installed execution provider has such a device.
    """
    if not text:
        return providers
    kind, number = parse_device(text)
    if providers is None:
        return _find_provider(kind, number)
    name, options = providers[0]
    chosen = _on(name, kind, number)
    if chosen is None or (chosen[1] and _OPTIONS[name] in options):
        raise click.UsageError(
            f"--device {text} does not apply to {name}, or conflicts with its options"
        )
    return ((name, {**options, **chosen[1]}), *providers[1:])


def probe_installed() -> tuple[dict[str, Probe], dict[str, str]]:
    """Probe of each installed execution provider, and import errors of broken ones."""
    from ort_lite.providers.catalog import entries
    from ort_lite.status import EPFail

    probes: dict[str, Probe] = {}
    broken: dict[str, str] = {}
    for name, entry in entries().items():
        try:
            probes[name] = entry.load().probe()
        except EPFail as exc:
            broken[name] = exc.message
    return probes, broken


def parse_device(text: str) -> tuple[str, str]:
    """Kind and number of a device: ("GPU", "1") of `gpu.1`, ("GPU", "") of `gpu`.

    Raises:
        UsageError: `text` is not the name of a device.
    """
    kind, dot, number = text.upper().partition(".")
    if kind not in KINDS or (dot and not number.isdecimal()):
        raise click.UsageError(f"--device {text}: expected cpu, gpu or npu, or gpu.1 for a second")
    return kind, number


def kind_in_options(name: str, options: Mapping[str, str]) -> str:
    """Kind of device that provider options open: "NPU"; "" if they leave it to the provider."""
    if name == CPU:
        return "CPU"
    kind = options.get(_OPTIONS.get(name, ""), "").upper().partition(".")[0]
    return kind if kind in KINDS else ""


def select_devices(probes: Mapping[str, Probe], text: str) -> dict[str, Probe]:
    """`probes` of the execution providers with a device that `text` names, with no other device.

    Args:
        probes: By execution provider.
        text: As for `with_device`; "" selects all.

    Raises:
        UsageError: `text` is not the name of a device.
        CommandError: NO_HARDWARE; this machine has no such device.
    """
    if not text:
        return dict(probes)
    kind, number = parse_device(text)
    selected = {}
    for name, probe in probes.items():
        devices = [device for device in probe.devices if device.kind == kind]
        if number:
            devices = [d for d in devices if d.name in _names_of(kind, number)]
        if devices:
            selected[name] = replace(probe, devices=tuple(devices), reason="")
    if not selected:
        raise _missing_device(f"{kind}.{number}" if number else kind, probes)
    return selected


def _names_of(kind: str, number: str) -> tuple[str, ...]:
    """OpenVINO's names of a device; a single one has no number."""
    return (f"{kind}.{number}", kind) if number == "0" else (f"{kind}.{number}",)


def _on(name: str, kind: str, number: str) -> tuple[str, Mapping[str, str]] | None:
    """An execution provider on a kind of device; None if it has none of the kind."""
    if name == OPENVINO:
        return name, {"device_type": f"{kind}.{number}" if number else kind}
    if name == OPENCL and kind != "NPU" and not number:
        return name, {"device": kind}
    if name == CPU and kind == "CPU":
        return name, {}
    return None


def for_npu_platform(providers: Providers | None, platform: str) -> Providers:
    """OpenVINO's provider, compiling for an NPU that need not be here.

    Args:
        providers: As the user named them; None for none.
        platform: Four digits, as the NPU's DEVICE_ARCHITECTURE.

    Raises:
        UsageError: The user named other providers first, or another device.
    """
    (name, options), *others = providers or ((OPENVINO, {}),)
    if name != OPENVINO:
        raise click.UsageError(f"--npu-platform is for {OPENVINO}, not for {name}")
    device = options.get("device_type", "NPU")
    if not device.upper().startswith("NPU"):
        raise click.UsageError(
            f"--npu-platform {platform} compiles for an NPU, not for {device}; leave the other "
            "device out"
        )
    chosen = {**options, "device_type": "NPU", "npu_platform": platform}
    return ((name, chosen), *others)


def _find_provider(kind: str, number: str) -> Providers:
    """The first installed execution provider that lists a device of the kind.

    Only OpenVINO has NPUs: its own error says what is missing, and it can compile for an
    absent one.
    """
    if kind == "NPU":
        return ((OPENVINO, {"device_type": f"{kind}.{number}" if number else kind}),)
    probes, _ = probe_installed()
    for name in (OPENVINO, OPENCL, CPU):
        probe = probes.get(name)
        chosen = _on(name, kind, number)
        if probe is None or chosen is None:
            continue
        if any(device.kind == kind for device in probe.devices):
            return (chosen,)
    raise _missing_device(f"{kind}.{number}" if number else kind, probes)


def no_device_error(exc: EPFail) -> CommandError:
    """The command's error for a device, SDK or driver that an execution provider lacks."""
    advice = f" {DOCTOR_HINT.capitalize()}."
    return CommandError(ExitCode.NO_HARDWARE, exc.message.removesuffix(advice), hint=DOCTOR_HINT)


def _name_by_kind(device: DeviceInfo) -> str:
    """As --device names it: `GPU.1`; the kind alone for OpenCL's devices, named 0.0."""
    return device.name if device.name.startswith(device.kind) else device.kind


def _missing_device(name: str, probes: Mapping[str, Probe]) -> CommandError:
    devices = [device for probe in probes.values() for device in probe.devices]
    present = ", ".join(sorted({_name_by_kind(device) for device in devices})) or "none"
    return CommandError(
        ExitCode.NO_HARDWARE,
        f"no execution provider has a device '{name}' on this machine; found: {present}",
        hint=DOCTOR_HINT,
    )
