"""Costs of nodes on OpenCL devices (docs/adr/measurements/0037.md); CPU is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ort_lite.ep import (
    ASSUMED_GPU_COSTS,
    RESET_BEFORE,
    PlacementCosts,
    StepCosts,
    find_least_costs,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEPS = StepCosts(step=1.3, rate=25_000, tasks=2)
_SHARED = replace(_STEPS, shared=65_536)
_CPU = PlacementCosts(
    launch=12,
    crossing=6,
    crossing_rate=20_000,
    call=0.8,
    step=1,
    product_rate=250_000,
    stream_rate=60_000,
    math_rate=2_500,
    compile=150_000,
    free_factor=1.5,  # a program for each set of shapes
    opening=900_000,
    step_costs={**dict.fromkeys(("GRU", "LSTM", "RNN"), _SHARED), RESET_BEFORE: _STEPS},
)
_GPU = replace(
    ASSUMED_GPU_COSTS, compile=_CPU.compile, free_factor=_CPU.free_factor, opening=200_000
)
_BY_KIND: Mapping[str, PlacementCosts] = {"CPU": _CPU, "GPU": _GPU, "ACCELERATOR": _GPU}


def costs_of(kind: str) -> PlacementCosts:
    """Costs by kind of device: CPU, GPU or ACCELERATOR; the last two are assumed, and low."""
    return _BY_KIND[kind]


def least_costs() -> PlacementCosts:
    """The least of all kinds of devices."""
    return find_least_costs(tuple(_BY_KIND.values()))
