"""Text on the devices that a session's nodes ran on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.planning.explain import SessionReport


def devices_of(report: SessionReport) -> dict[str, str]:
    """Execution provider to its device, for those that run nodes.

    An absent device that was compiled for has only an architecture.
    """
    return {part.ep: _device(part.identity) for part in report.partitions if part.nodes}


def _device(identity: Mapping[str, str]) -> str:
    architecture = identity.get("architecture", "")
    return identity.get("device") or (f"architecture {architecture}" if architecture else "")


def ran_on(report: SessionReport) -> str:
    """Line with each execution provider, its device and its number of nodes."""
    return f"ran on: {_places(report)}"


def summarize_compiled(report: SessionReport) -> str:
    """Line with each execution provider, its device and its number of compiled nodes."""
    return f"compiled for: {_places(report)}"


def _places(report: SessionReport) -> str:
    devices = devices_of(report)
    counts = report.node_counts()
    return ", ".join(_place(ep, devices.get(ep, ""), n) for ep, n in counts.items()) or "nothing"


def _place(ep: str, device: str, nodes: int) -> str:
    where = f" on {device}" if device else ""
    return f"{ep}{where} ({nodes} node{'s' * (nodes != 1)})"
