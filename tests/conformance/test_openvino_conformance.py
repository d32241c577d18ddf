"""The OpenVINO EP keeps every promise of an execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from eps.openvino import FACTORY
from ort_lite.testing import EpConformance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep.factory import EpFactory

WRONG = {
    "int64_wide": "refused at run time: OpenVINO's CPU plug-in holds int64 in 32 bits",
}
NUMBERS = (
    "test_a_partition_gives_the_numbers_of_the_reference",
    "test_every_node_it_claims_runs_alone",
)


class TestOpenVINOConformance(EpConformance):
    sdk_modules = ("openvino",)
    known_failures: ClassVar[Mapping[str, str]] = {
        f"{test}[{case}]": reason for case, reason in WRONG.items() for test in NUMBERS
    }

    @property
    def factory(self) -> EpFactory:
        return FACTORY
