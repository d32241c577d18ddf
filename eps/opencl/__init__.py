"""Any OpenCL device, with kernels of our own; importing this loads no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from eps.opencl.options import OPTIONS, parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.execution_provider import ExecutionProvider, Probe

NAME = "OpenCLExecutionProvider"


@dataclass(frozen=True, slots=True)
class _Factory:
    name: str = NAME
    options: Mapping[str, str] = field(default_factory=lambda: dict(OPTIONS))

    def probe(self) -> Probe:
        """Devices of every OpenCL platform that the loader finds."""
        from eps.opencl.probe import probe_devices

        return probe_devices()

    def begin(self, options: Mapping[str, str]) -> None:
        """Load drivers, and wake the device's, while Python goes on; see `EpFactory`."""
        from eps.opencl.early_start import libraries, wake_device
        from ort_lite.providers.early_loading import load_early

        load_early(libraries(), lambda: wake_device(options))

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Open the device that `platform` and `device` name, the best one without them."""
        parsed = parse_options(options)
        from eps.opencl.provider import OpenCLExecutionProvider

        return OpenCLExecutionProvider(parsed)


FACTORY = _Factory()
"""The OpenCL execution provider."""
