"""Costs of nodes on OpenVINO's devices (docs/adr/measurements/0037.md); CPU is measured."""

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

_STEPS = StepCosts(step=0.9, rate=12_500, sequences=4)
_CPU = PlacementCosts(
    launch=6,
    crossing=1.5,
    crossing_rate=30_000,
    call=0.7,
    step=1.2,
    product_rate=280_000,
    stream_rate=60_000,
    math_rate=2_500,
    compile=40_000,
    free_factor=2.3,
    iteration=3,
    state_rate=10_000,
    step_costs={
        **dict.fromkeys(("GRU", "LSTM", "RNN"), _STEPS),
        RESET_BEFORE: StepCosts(step=12, rate=9_000, sequences=4),
    },
)
_GPU = replace(ASSUMED_GPU_COSTS, product_rate=2_000_000, free_factor=_CPU.free_factor)
_NPU = replace(_GPU, launch=200, call=2, step=4, compile=200_000)
_BY_KIND: Mapping[str, PlacementCosts] = {"CPU": _CPU, "GPU": _GPU, "NPU": _NPU}


def costs_of(kind: str) -> PlacementCosts:
    """Costs by kind of device: CPU, GPU or NPU; the last two are assumed, and low."""
    return _BY_KIND[kind]


def least_costs() -> PlacementCosts:
    """The least of all kinds of devices."""
    return find_least_costs(tuple(_BY_KIND.values()))
