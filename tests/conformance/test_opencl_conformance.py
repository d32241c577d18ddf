"""The OpenCL EP keeps every promise of an execution provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opencl_builds import reused_builds

from eps.opencl import FACTORY
from ort_lite.testing import EpConformance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ort_lite.ep.factory import EpFactory


@pytest.fixture(autouse=True, scope="module")
def _each_program_is_built_once() -> Iterator[None]:
    """Half of the promises are about one model: its kernels are built for the first."""
    with reused_builds():
        yield


class TestOpenCLConformance(EpConformance):
    sdk_modules = ("pyopencl",)

    @property
    def factory(self) -> EpFactory:
        return FACTORY
