"""The example EP keeps every promise of an execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from example_ep import FACTORY

from ort_lite.testing import EpConformance

if TYPE_CHECKING:
    from ort_lite.ep import EpFactory


class TestExampleConformance(EpConformance):
    """Every test of the suite, run with this EP."""

    @property
    def factory(self) -> EpFactory:
        """The factory that the entry point names."""
        return FACTORY
