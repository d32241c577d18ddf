"""Intel CPU, GPU and NPU through the openvino package; importing this imports no SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from eps.openvino.options import DEVICE_OPTION, OPTIONS, PACKAGE, device_kind, parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.ep import DeviceMemory, ExecutionProvider, PlacementCosts, Probe

NAME = "OpenVINOExecutionProvider"
VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "ONEDNN_", "OPENVINO_", "OV_", "ZE_")
"""Beginnings of the names of environment variables that change what OpenVINO finds or computes."""


@dataclass(frozen=True, slots=True)
class _Factory:
    name: str = NAME
    options: Mapping[str, str] = field(default_factory=lambda: dict(OPTIONS))
    threads_option: str = "num_of_threads"

    def missing(self) -> str:
        """Why there is no OpenVINO here; see `EpFactory`."""
        from ort_lite.ep import package_folders

        if package_folders(PACKAGE):
            return ""
        return 'the openvino package is not installed: pip install "ort-lite[openvino]"'

    def probe(self) -> Probe:
        """Devices that OpenVINO sees, and why an NPU or GPU is not among them."""
        from ort_lite.ep import Probe

        missing = self.missing()
        if missing:
            return Probe(reason=missing)
        from eps.openvino.sdk.libraries import load_newest_tbb

        load_newest_tbb()
        try:
            from eps.openvino.probe import probe_devices
        except ImportError as exc:
            return Probe(reason=f"the openvino package cannot be loaded: {exc}")

        return probe_devices()

    def describe_requirements(self, recorded: HardwareIdentity) -> str:
        """What an NPU payload needs of a machine; "" for payloads of other devices."""
        from eps.openvino.payload.npu_requirements import read_npu_requirements

        needs = read_npu_requirements(recorded.requirements)
        return "" if needs is None else str(needs)

    def installation_fields(self, options: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002 - whichever device
        """The package's libraries and the variables that change what they do; see `EpFactory`."""
        import os

        from ort_lite.ep import package_folders, pick_variables, stamp_files

        folders = [os.path.join(folder, "libs") for folder in package_folders(PACKAGE)]
        return {
            "libraries": stamp_files(folders),
            "variables": pick_variables(os.environ, VARIABLES),
        }

    def least_costs(self) -> PlacementCosts:
        """Those of the best device in everything; see `SupportsLeastCosts`."""
        from eps.openvino.placement_costs import least_costs

        return least_costs()

    def begin(self, options: Mapping[str, str]) -> bool:
        """Load the SDK's libraries while Python goes on; see `EpFactory`."""
        from eps.openvino.sdk.libraries import first_use, libraries
        from ort_lite.ep import load_early

        kind = device_kind(options.get(DEVICE_OPTION, "CPU"))
        return load_early(libraries(kind), first_use(options)) and kind == "CPU"

    def find_memory(self, device_name: str, device_id: int, vendor_id: int) -> DeviceMemory | None:
        """The memory of a GPU or NPU; see `SupportsMemoryLookup`."""
        if device_name not in ("gpu", "npu") or self.missing():
            return None
        from eps.openvino.sdk.libraries import load_newest_tbb

        load_newest_tbb()
        from eps.openvino.memory import find_memory

        return find_memory(device_name, device_id, vendor_id)

    def find_memory_of(self, options: Mapping[str, str]) -> DeviceMemory | None:
        """The memory of the device that provider options open; see `SupportsStreams`."""
        device = options.get(DEVICE_OPTION, "CPU")
        if device_kind(device) not in ("GPU", "NPU") or self.missing():
            return None
        from eps.openvino.sdk.libraries import load_newest_tbb

        load_newest_tbb()
        from eps.openvino.memory import has_memory, memory_of, shared_core

        return memory_of(shared_core(), device) if has_memory(device) else None

    def open_stream(self, options: Mapping[str, str]) -> None:
        """None: copies have been made when they return; see `SupportsStreams`."""

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Open the device that `device_type` names (CPU if it is not given)."""
        parsed = parse_options(options)
        missing = self.missing()
        if missing:
            from ort_lite.ep import NotInstalled

            raise NotInstalled(missing)
        from eps.openvino.sdk.libraries import load_newest_tbb

        load_newest_tbb()
        from eps.openvino.provider import OpenVINOExecutionProvider

        return OpenVINOExecutionProvider(parsed)


FACTORY = _Factory()
