"""Compiling for an Intel NPU that is not in this machine, where Intel's compiler library is.

The NPU plug-in compiles without a device if it finds its compiler library and is told the
platform: properties NPU_PLATFORM and NPU_COMPILER_TYPE=PLUGIN. The package for Linux on PyPI does
not hold that library (seen with 2025.4.1 and 2026.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ctx_formats.identity import HardwareIdentity
from eps.openvino.payload.identity import sdk_version
from eps.openvino.sdk_errors import PROPERTY_ERRORS, sdk_text
from ort_lite.execution_provider import CompiledPartition
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openvino

    from eps.openvino.sdk.runtime import Model
    from ort_lite.execution_provider import Value

PLATFORMS = ("3720", "4000", "5010")
"""Meteor Lake and Arrow Lake, Lunar Lake, Panther Lake; newer numbers are passed on."""


def offline_identity(core: openvino.Core, platform: str, build: str) -> HardwareIdentity:
    """What a blob for `platform` is made for: no device and no driver, since none is here.

    Args:
        core: OpenVINO.
        platform: Four digits, as the NPU's own DEVICE_ARCHITECTURE.
        build: OpenVINO's full version text.

    Raises:
        EPFail: Intel's compiler library is not installed; says where OpenVINO looked.
    """
    try:
        core.get_property("NPU", "NPU_COMPILER_VERSION")
    except PROPERTY_ERRORS as exc:
        raise EPFail(
            f"compiling for NPU platform {platform} without the NPU needs Intel's NPU compiler "
            f"library, which this OpenVINO {sdk_version(build)} does not find: {sdk_text(exc)}. "
            "OpenVINO's package on PyPI for Linux comes without it: put the library beside its "
            "plug-ins, or compile on a machine that has the NPU and its driver"
        ) from exc
    return HardwareIdentity(
        vendor="Intel",
        architecture=platform,
        sdk_version=sdk_version(build),
        sdk_build=build,
    )


class OfflinePartition(CompiledPartition):
    """Compiled for a device that is not here: it can be exported, and not run."""

    def __init__(self, model: Model, name: str, platform: str) -> None:
        """Keep what OpenVINO compiled."""
        self.model: Model | None = model
        self.name = name
        self._platform = platform

    def run(self, inputs: Sequence[Value]) -> NoReturn:  # noqa: ARG002 - the interface's
        """Nothing can run it here.

        Raises:
            EPFail: Always.
        """
        raise EPFail(
            f"{self.name} is compiled for NPU platform {self._platform}, which is not in this "
            "machine: load its context on one that has it"
        )

    def release(self) -> None:
        """Let go of OpenVINO's model."""
        self.model = None
