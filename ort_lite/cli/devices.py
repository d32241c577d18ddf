"""`ort-lite devices`: lists execution providers and devices, and why others are missing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from ort_lite.cli.device_choice import device_option, parse_device, probe_installed, select_devices
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import (
    json_option,
    print_json,
    print_line,
    progress,
    size_text,
    wrapped_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ort_lite.ep.factory import DeviceInfo, Probe

log = logging.getLogger(__name__)


@click.command(short_help="List execution providers and devices.")
@device_option("List devices of this kind only; exit code 3 if none is found.")
@json_option
def devices(*, device: str, as_json: bool) -> ExitCode:
    """List execution providers and their devices, and why others are missing.

    -v and --json also list the features of each device, such as OpenCL extensions.
    """
    if device:
        parse_device(device)
    with progress("looking for devices"):
        probes, broken = probe_installed()
    if device:
        probes, broken = select_devices(probes, device), {}
    if as_json:
        print_json(
            {
                "execution_providers": [
                    *map(_json, probes.items()),
                    *map(_broken_json, broken.items()),
                ]
            }
        )
        return ExitCode.OK
    for ep, probe in probes.items():
        print_line(ep)
        for listed in probe.devices:
            for line in _lines(listed):
                print_line(line)
        if probe.reason:
            _print_wrapped(probe.reason)
    for ep, problem in broken.items():
        print_line(ep)
        _print_wrapped(problem)
    return ExitCode.OK


def _print_wrapped(text: str) -> None:
    for line in wrapped_lines("  ", text):
        print_line(line)


def _lines(device: DeviceInfo) -> Iterator[str]:
    """Lines for a device: its name, then facts on it; -v adds what it can do."""
    yield from wrapped_lines(f"  {device.name:<5} ", device.description)
    identity = device.identity
    facts = {
        "vendor": identity.vendor,
        "memory": size_text(device.memory) if device.memory else "",
        "architecture": identity.architecture.replace("|", ", "),
        "driver": identity.driver_version.replace("|", ", "),
        "SDK": identity.sdk_build or identity.sdk_version,
        "features": " ".join(device.features) if log.isEnabledFor(logging.INFO) else "",
    }
    for label, text in facts.items():
        if text:
            yield from wrapped_lines(f"        {label:<12}  ", text)


def _json(probed: tuple[str, Probe]) -> Mapping[str, Any]:
    ep, probe = probed
    return {
        "name": ep,
        "devices": [
            {
                "name": device.name,
                "kind": device.kind,
                "description": device.description,
                "identity": device.identity.to_mapping(),
                "memory": device.memory,
                "features": list(device.features),
            }
            for device in probe.devices
        ],
        "reason": probe.reason,
        "tried": list(probe.tried),
    }


def _broken_json(broken: tuple[str, str]) -> Mapping[str, Any]:
    return {"name": broken[0], "devices": [], "reason": broken[1], "tried": []}
