"""The CPU EP keeps every promise of an execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.cpu import FACTORY
from ort_lite.testing import EpConformance

if TYPE_CHECKING:
    from ort_lite.ep.factory import EpFactory


class TestCpuConformance(EpConformance):
    @property
    def factory(self) -> EpFactory:
        return FACTORY
