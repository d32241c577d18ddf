"""The CPU EP keeps every promise of an execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from eps.cpu import FACTORY
from ort_lite.testing import EpConformance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.execution_provider import EpFactory


class TestCpuConformance(EpConformance):
    known_failures: ClassVar[Mapping[str, str]] = {
        "test_a_released_partition_is_refused_cleanly": (
            "Plan.run after Plan.release is an IndexError of a list"
        ),
    }

    @property
    def factory(self) -> EpFactory:
        return FACTORY
