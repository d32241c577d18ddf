"""Any OpenCL device, with kernels of our own; importing this loads no driver."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from eps.opencl.options import OPTIONS, parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy as np

    from ort_lite.ep import (
        DeviceMemory,
        DeviceStream,
        DeviceTensor,
        ExecutionProvider,
        PlacementCosts,
        Probe,
    )

NAME = "OpenCLExecutionProvider"
DLPACK_OPENCL = 4
"""kDLOpenCL of dlpack.h: memory that LentMemory describes, or nothing of pyopencl's."""
HANDLE_CLASSES = {"context": "pyopencl.Context", "command_queue": "pyopencl.CommandQueue"}


@dataclass(frozen=True, slots=True)
class _Factory:
    name: str = NAME
    options: Mapping[str, str] = field(default_factory=lambda: dict(OPTIONS))
    handle_options: Mapping[str, str] = field(default_factory=lambda: dict(HANDLE_CLASSES))

    def missing(self) -> str:
        """Why there is no OpenCL here; see `EpFactory`."""
        from eps.opencl.cl.library import package_folder
        from eps.opencl.runtime.installed import missing_part

        return missing_part(os.environ, package=package_folder())

    def probe(self) -> Probe:
        """Devices of every OpenCL platform that the loader finds."""
        from eps.opencl.runtime.probe import probe_devices

        return probe_devices()

    def installation_fields(self, options: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002 - whichever device
        """Loader, drivers, code generator and variables that choose drivers; see `EpFactory`."""
        from eps.opencl.runtime.installed import installation_fields

        return installation_fields(os.environ)

    def least_costs(self) -> PlacementCosts:
        """Those of the best device in everything; see `SupportsLeastCosts`."""
        from eps.opencl.placement_costs import least_costs

        return least_costs()

    def step_costs(self) -> PlacementCosts:
        """See SupportsStepCosts: those of CPUs."""
        from eps.opencl.placement_costs import costs_of

        return costs_of("CPU")

    def begin(self, options: Mapping[str, str]) -> bool:  # noqa: ARG002 - every driver is shown to the loader
        """Load Intel's runtime while Python goes on; see `EpFactory`."""
        import _json  # noqa: F401 - payloads' headers need it; see ort_lite/ep/sdk_libraries.py

        from eps.opencl.runtime.icd import intel_runtime
        from ort_lite.ep import load_early

        library = intel_runtime(os.environ) if sys.platform == "linux" else None
        if library is not None:
            load_early([library])
        return False

    def find_memory(self, device_name: str, device_id: int, vendor_id: int) -> DeviceMemory | None:
        """The memory of an OpenCL device; see `SupportsMemoryLookup`."""
        if self.missing():
            return None
        from eps.opencl.runtime.tensors import find_memory

        return find_memory(device_name, device_id, vendor_id)

    def find_memory_of(self, options: Mapping[str, str]) -> DeviceMemory | None:
        """The memory of the device that provider options open; see `SupportsStreams`."""
        from eps.opencl.runtime.tensors import find_memory_of

        return find_memory_of(parse_options(options))

    def open_stream(self, options: Mapping[str, str]) -> DeviceStream:
        """A command queue in the context that values share; see `SupportsStreams`."""
        from eps.opencl.runtime.stream import OpenCLStream
        from eps.opencl.runtime.tensors import find_memory_of

        return OpenCLStream(find_memory_of(parse_options(options)))

    def adopt(
        self, data: object, shape: Sequence[int] | None, dtype: np.dtype[Any] | None
    ) -> DeviceTensor | None:
        """A tensor in the memory of a pyopencl object; see `SupportsForeignTensors`."""
        is_lent = getattr(data, "device_type", None) == DLPACK_OPENCL
        if not is_lent and not type(data).__module__.startswith("pyopencl"):
            return None
        from eps.opencl.runtime.pyopencl_tensors import adopt

        return adopt(data, shape, dtype)

    def lend(self, tensor: DeviceTensor, queue: object) -> object | None:
        """A `pyopencl.array.Array` over a tensor's memory; see `SupportsForeignTensors`."""
        if tensor.memory.place.name != "opencl":
            return None
        from eps.opencl.runtime.pyopencl_tensors import lend

        return lend(tensor, queue)

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Open the device that `platform` and `device` name, the best one without them."""
        parsed = parse_options(options)
        from eps.opencl.provider import OpenCLExecutionProvider

        return OpenCLExecutionProvider(parsed)


FACTORY = _Factory()
"""The OpenCL execution provider."""
