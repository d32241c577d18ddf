"""Costs of nodes on the CPU EP (docs/adr/measurements/0037.md)."""

from __future__ import annotations

from ort_lite.ep import PlacementCosts

CPU = PlacementCosts(
    launch=1,
    crossing=0.3,
    crossing_rate=1e9,  # values are handed over by reference
    call=1,
    step=5,
    product_rate=200_000,
    stream_rate=30_000,
    math_rate=800,
    compile=0,
    composes=True,
    iteration=5.5,
)
