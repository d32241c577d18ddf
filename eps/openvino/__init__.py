"""Intel CPU, GPU and NPU through the openvino package; importing this imports no SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from eps.openvino.options import DEVICE_OPTION, OPTIONS, PACKAGE, device_kind, parse_options
from eps.openvino.shared_tbb import load_newest_tbb
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.execution_provider import ExecutionProvider, Probe

NAME = "OpenVINOExecutionProvider"


@dataclass(frozen=True, slots=True)
class _Factory:
    name: str = NAME
    options: Mapping[str, str] = field(default_factory=lambda: dict(OPTIONS))
    threads_option: str = "num_of_threads"

    def probe(self) -> Probe:
        """Devices that OpenVINO sees, and why an NPU or GPU is not among them."""
        from ort_lite.execution_provider import Probe
        from ort_lite.providers.early_loading import package_folders

        if not package_folders(PACKAGE):
            return Probe(
                reason="the openvino package is not installed: pip install 'ort-lite[openvino]'"
            )
        load_newest_tbb()
        try:
            from eps.openvino.probe import probe_devices
        except ImportError as exc:
            return Probe(reason=f"the openvino package cannot be loaded: {exc}")

        return probe_devices()

    def begin(self, options: Mapping[str, str]) -> bool:
        """Load the SDK's libraries while Python goes on; see `EpFactory`."""
        from eps.openvino.early_loading import first_use, libraries
        from ort_lite.providers.early_loading import load_early

        kind = device_kind(options.get(DEVICE_OPTION, "CPU"))
        return load_early(libraries(kind), first_use(options)) and kind == "CPU"

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Open the device that `device_type` names (CPU if it is not given)."""
        from ort_lite.providers.early_loading import package_folders

        parsed = parse_options(options)
        if not package_folders(PACKAGE):
            raise EPFail(
                f"{NAME}: the openvino package is not installed. pip install 'ort-lite[openvino]'"
            )
        load_newest_tbb()
        from eps.openvino.provider import OpenVINOExecutionProvider

        return OpenVINOExecutionProvider(parsed)


FACTORY = _Factory()
