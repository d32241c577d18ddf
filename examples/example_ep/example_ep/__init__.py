"""The factory of ExampleExecutionProvider: what there is, without importing what runs it."""

from __future__ import annotations

import platform
from types import MappingProxyType
from typing import TYPE_CHECKING

from ctx_formats.identity import HardwareIdentity
from ort_lite.ep import DeviceInfo, Probe, read_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep import ExecutionProvider

VERSION = "1.0.0"
SUMS = ("float32", "float64")


class _Factory:
    name: str = "ExampleExecutionProvider"
    options: Mapping[str, str] = MappingProxyType(
        {"sum_in": "float32 (default) or float64: what MatMul adds up in"}
    )

    def probe(self) -> Probe:
        """An EP with an SDK looks for it here with find_spec, and imports nothing."""
        device = DeviceInfo(
            name="CPU", kind="CPU", description="numpy, as an example", identity=identity()
        )
        return Probe(devices=(device,))

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Check the options' values; their names have been checked against `options`."""
        sum_in = read_choice(options, "sum_in", SUMS)
        from example_ep.provider import ExampleExecutionProvider  # noqa: PLC0415 - not for a probe

        return ExampleExecutionProvider(sum_in)


def identity() -> HardwareIdentity:
    """What a payload written here is recorded as compiled for."""
    return HardwareIdentity(
        vendor="Example", device="CPU: numpy", architecture=platform.machine(), sdk_version=VERSION
    )


FACTORY = _Factory()
