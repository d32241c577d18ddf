"""The OpenVINO EP keeps every promise of an execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino import FACTORY
from ort_lite.testing import EpConformance

if TYPE_CHECKING:
    from ort_lite.execution_provider import EpFactory


class TestOpenVINOConformance(EpConformance):
    sdk_modules = ("openvino",)
    known_failures = dict.fromkeys(
        (
            "test_a_partition_gives_the_numbers_of_the_reference[int64_wide]",
            "test_a_session_gives_the_numbers_of_the_reference[int64_wide]",
            "test_every_node_it_claims_runs_alone[int64_wide]",
        ),
        "OpenVINO's CPU plug-in computes int64 in int32, and the EP claims such nodes",
    )

    @property
    def factory(self) -> EpFactory:
        return FACTORY
