"""Any OpenCL device through pyopencl, with kernels of our own; importing this imports no SDK."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from eps.opencl.options import OPTIONS, parse_options
from ort_lite.execution_provider import Probe
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.execution_provider import ExecutionProvider

NAME = "OpenCLExecutionProvider"
_MISSING = "the pyopencl package is not installed: pip install 'ort-lite[opencl]'"


@dataclass(frozen=True, slots=True)
class _Factory:
    name: str = NAME
    options: Mapping[str, str] = field(default_factory=lambda: dict(OPTIONS))

    def probe(self) -> Probe:
        """Devices of every OpenCL platform that the loader finds."""
        if find_spec("pyopencl") is None:
            return Probe(reason=_MISSING)
        from eps.opencl.probe import probe_devices

        return probe_devices()

    def begin(self, options: Mapping[str, str]) -> None:  # noqa: ARG002 - every driver is shown to the loader
        """Load the driver's libraries while Python goes on; see `EpFactory`."""
        from eps.opencl.icd import intel_runtime
        from ort_lite.providers.early_loading import load_early

        library = intel_runtime(os.environ) if sys.platform == "linux" else None
        if library is not None and "pyopencl" not in sys.modules:
            load_early([library])

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Open the device that `platform` and `device` name, the best one without them."""
        parsed = parse_options(options)
        if find_spec("pyopencl") is None:
            raise EPFail(f"{NAME}: {_MISSING}")
        from eps.opencl.provider import OpenCLExecutionProvider

        return OpenCLExecutionProvider(parsed)


FACTORY = _Factory()
"""The OpenCL execution provider."""
