"""Decides whether a blob fits this OpenVINO and this device."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ctx_formats.identity import HardwareIdentity
from ctx_formats.lean_dataclass import replace
from eps.openvino.options import device_kind
from eps.openvino.payload.blob_header import parse_requirements
from ort_lite.ep import InvalidGraph, compare_identities, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.openvino.options import OpenVINOOptions
    from ort_lite.ep import Compatibility


class Verdicts:
    """Compares the identity a payload was built for with the present one."""

    def __init__(
        self,
        read_requirements: Callable[[], str],
        options: OpenVINOOptions,
        basic: HardwareIdentity,
    ) -> None:
        """Compare with `basic`.

        Args:
            read_requirements: Returns the device's present requirement text, or "".
            options: The execution provider's.
            basic: The identity without that text, which costs a compile.
        """
        self._read_requirements = read_requirements
        self._options = options
        self._basic = basic
        self._known = ""

    @cached_property
    def identity(self) -> HardwareIdentity:
        """The whole identity; the first use compiles a one-operator model (about 25 ms)."""
        return replace(self._basic, requirements=self._known or self._read_requirements())

    def compare(self, recorded: HardwareIdentity) -> Compatibility:
        """The verdict on a recorded identity, without looking at the payload.

        ONNX Runtime's OpenVINO EP records `2026.4` alone: then major and minor must agree.
        An SDK of the same version and another build is not the same: blobs are not portable
        between builds by any promise of the vendor's.
        """
        if _is_prefix(recorded.sdk_version, self._basic.sdk_version):
            recorded = replace(recorded, sdk_version="")
        other = recorded.device.partition(":")[0]
        if other and other != self._options.device and device_kind(other) != self._options.kind:
            return unsupported(
                Reason.HARDWARE_ARCHITECTURE,
                f"built for {recorded.device}, this session runs on {self._basic.device}",
            )
        other_npu = self._other_npu(recorded.requirements)
        if other_npu is not None:
            return other_npu
        same_device = recorded.device == self._basic.device
        if self._options.kind == "NPU":
            # Names compiler and platform; a driver may accept others than its own.
            recorded = replace(recorded, requirements="")
        if self._options.kind == "CPU":
            recorded = replace(recorded, device="", vendor="")  # the requirement text decides
        same_build = recorded.sdk_build == self._basic.sdk_build
        if (same_device and same_build) or not recorded.requirements:
            return compare_identities(replace(recorded, requirements=""), self._basic)
        problem = self._requirement_problem(recorded.requirements)
        if problem is not None and recorded.sdk_version in ("", self._basic.sdk_version):
            return problem
        return compare_identities(replace(recorded, requirements=""), self._basic)

    def _other_npu(self, requirements: str) -> Compatibility | None:
        """The verdict on a payload for an NPU that this session does not run on; else None."""
        if "desc=[" not in requirements:
            return None
        from eps.openvino.payload.npu_requirements import read_npu_requirements  # noqa: PLC0415 - lazy: rare

        needs = read_npu_requirements(requirements)
        here = self._basic.architecture if self._options.kind == "NPU" else ""
        if needs is None or needs.platform == here:
            return None
        present = f"NPU {here}" if here else self._basic.device
        return unsupported(
            Reason.HARDWARE_ARCHITECTURE,
            f"built for NPU {needs.platform}, this session runs on {present}",
        )

    def require_version(self, recorded: str) -> None:
        """Compare the OpenVINO version in a payload's requirement text with this one.

        Raises:
            InvalidGraph: They differ.
        """
        built = parse_requirements(recorded).get("ov", "")
        if built and built != self._basic.sdk_version:
            raise self._refusal(
                unsupported(
                    Reason.SDK_VERSION,
                    f"the payload requires '{recorded}', this is OpenVINO "
                    f"{self._basic.sdk_version}",
                )
            )

    def explain_rejection(self, recorded: str) -> InvalidGraph | None:
        """Why OpenVINO refused a payload, if its requirement text tells; else None.

        OpenVINO compares the whole text before anything else. So the present text, which costs a
        compile, is needed only for a payload that OpenVINO refuses.
        """
        problem = self._requirement_problem(recorded) if recorded else None
        if problem is None:
            return None
        refusal = self._refusal(problem)
        refusal.recorded = HardwareIdentity(requirements=recorded)
        refusal.present = self.identity
        return refusal

    def learn(self, present: str) -> None:
        """Remember the requirement text of a model that was compiled anyway."""
        self._known = present

    def _refusal(self, problem: Compatibility) -> InvalidGraph:
        return InvalidGraph(
            f"{problem.message} (reason: {problem.reason})",
            reason=problem.reason,
            present=self._basic,
        )

    def _requirement_problem(self, recorded: str) -> Compatibility | None:
        present = self.identity.requirements
        if recorded == present or not present:
            return None
        built, here = parse_requirements(recorded), parse_requirements(present)
        sdk = built.get("ov") != here.get("ov")
        reason = Reason.SDK_VERSION if sdk else Reason.HARDWARE_ARCHITECTURE
        return unsupported(
            reason, f"the payload requires '{recorded}', this OpenVINO and device are '{present}'"
        )


def _is_prefix(recorded: str, present: str) -> bool:
    """Whether `recorded` is `major.minor` of `present`."""
    return recorded.count(".") == 1 and present.startswith(f"{recorded}.")
