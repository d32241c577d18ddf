"""Compiling for an Intel NPU that this machine does not have; needs Intel's compiler library.

The NPU plug-in compiles without a device if it finds its compiler library and knows the platform:
properties NPU_PLATFORM and NPU_COMPILER_TYPE=PLUGIN. The package for Linux on PyPI does not contain
that library (seen with 2025.4.1 and 2026.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ctx_formats.identity import HardwareIdentity
from eps.openvino.partition import UNPROVEN_ON_NPU
from eps.openvino.payload.identity import sdk_version
from eps.openvino.sdk_errors import PROPERTY_ERRORS, sdk_text
from ort_lite.ep import CompiledPartition, EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openvino

    from eps.openvino.sdk.runtime import RuntimeModel
    from ort_lite.ep import Value


def offline_identity(core: openvino.Core, platform: str, build: str) -> HardwareIdentity:
    """Identity of a blob for `platform`, without device and driver, which are absent here.

    Args:
        core: OpenVINO's core.
        platform: Four digits, as the NPU's own DEVICE_ARCHITECTURE.
        build: OpenVINO's full version text.

    Raises:
        EPFail: Intel's compiler library is not installed; the text says where OpenVINO looked.
    """
    try:
        core.get_property("NPU", "NPU_COMPILER_VERSION")
    except PROPERTY_ERRORS as exc:
        raise EPFail(
            f"compiling for NPU platform {platform} without the NPU needs Intel's NPU compiler "
            "library, which OpenVINO's package for Windows contains and that for Linux on PyPI "
            "does not: compile on Windows, or on a machine that has the NPU and its driver, or put "
            f"the library next to OpenVINO's plug-ins. OpenVINO {sdk_version(build)} reports: "
            f"{sdk_text(exc)}"
        ) from exc
    return HardwareIdentity(
        vendor="Intel",
        architecture=platform,
        sdk_version=sdk_version(build),
        sdk_build=build,
    )


class OfflinePartition(CompiledPartition):
    """A partition compiled for an absent device: it can be exported, not run."""

    def __init__(
        self, model: RuntimeModel, name: str, platform: str, notes: tuple[str, ...] = ()
    ) -> None:
        """Wrap a model that OpenVINO compiled; `notes` name what was rewritten for it."""
        self.model: RuntimeModel | None = model
        self.name = name
        self._platform = platform
        self._rewritings = notes

    @property
    def notes(self) -> tuple[str, ...]:
        """For which NPU, that it has computed nothing yet, and what was rewritten for it."""
        absent = f"compiled for NPU {self._platform}, which is absent; {UNPROVEN_ON_NPU}"
        return (absent, *self._rewritings)

    def run(self, inputs: Sequence[Value]) -> NoReturn:  # noqa: ARG002 - the interface's
        """Refuse: the device is absent.

        Raises:
            EPFail: Always.
        """
        raise EPFail(
            f"{self.name} is compiled for NPU platform {self._platform}, which this machine "
            "does not have: load its context on one that has it"
        )

    def release(self) -> None:
        """Release OpenVINO's model and its weights."""
        self.model = None
