"""Kernels under oclgrind, the short form of `make oclgrind`."""

from __future__ import annotations

import pytest
from check_oclgrind import MISSING, QUICK, QUICK_FAMILIES, check, library

driver = library()


@pytest.mark.skipif(driver is None, reason=MISSING)
def test_kernels_stay_in_bounds_and_do_not_race() -> None:
    assert driver is not None
    assert check(driver, QUICK_FAMILIES, QUICK) == []
