"""Whether the numpy that is installed is as new as ort_lite needs."""

from __future__ import annotations

from ort_lite.status import Fail

LEAST_NUMPY = "2.1"
"""As in pyproject.toml; pip may install an older one later, for another package."""


def require_numpy() -> None:
    """Refuse a numpy that is too old; imports it.

    Raises:
        Fail: It is.
    """
    import numpy as np  # noqa: PLC0415 - lazy: reload

    problem = numpy_problem(np.__version__)
    if problem:
        raise Fail(problem)


def numpy_problem(version: str) -> str:
    """Why a release of numpy cannot be used, and how to get another; "" where it can be."""
    if _numbers(version) >= _numbers(LEAST_NUMPY):
        return ""
    return (
        f"numpy {version} is installed, and ort_lite needs {LEAST_NUMPY} or newer: "
        f'pip install "numpy>={LEAST_NUMPY}"'
    )


def _numbers(version: str) -> tuple[int, ...]:
    major, minor, *_ = (*version.split("."), "0")
    return int(major), int(minor)
