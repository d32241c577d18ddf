"""Every recorded case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parity.realistic import (
    control,
    dense,
    elementwise,
    models_of_ml,
    quantised,
    sequences,
    shapes,
)

if TYPE_CHECKING:
    from parity.realistic.case import RecordedCase


def all_cases() -> tuple[RecordedCase, ...]:
    """In a fixed order, each with a name of its own."""
    modules = (elementwise, dense, shapes, quantised, sequences, control, models_of_ml)
    return tuple(case for module in modules for case in module.CASES)
