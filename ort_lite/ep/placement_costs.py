"""Costs of running nodes on an execution provider, for deciding which nodes pay there."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementCosts:
    """What a device class charges, as measured on one machine of that class.

    The constants need to be right within a factor of two: they decide between nodes of shape
    arithmetic and nodes that compute something. They are the same on every machine, so that a
    model is partitioned in the same way everywhere.

    Attributes:
        launch: Microseconds of one run of a partition.
        crossing: Microseconds for each input and output of a partition.
        crossing_rate: Bytes of inputs and outputs that are handed over in a microsecond.
        call: Microseconds of one kernel call on small tensors.
        step: Microseconds of one sequential step of a recurrence.
        product_rate: Operations of matrix products and convolutions in a microsecond.
        stream_rate: Bytes that elementwise nodes read and write in a microsecond.
        math_rate: Exponentials, logarithms and the like in a microsecond.
        compile: Microseconds that the compile of one more partition takes.
        free_factor: Of launch, crossing, call and compile, where shapes are not known beforehand.
        composes: Whether an operator is several calls, and a convolution a copy and a product.
    """

    launch: float
    crossing: float
    crossing_rate: float
    call: float
    step: float
    product_rate: float
    stream_rate: float
    math_rate: float
    compile: float
    free_factor: float = 1
    composes: bool = False


ASSUMED_GPU_COSTS = PlacementCosts(
    launch=50,
    crossing=10,
    crossing_rate=8_000,
    call=4,
    step=8,
    product_rate=1_000_000,
    stream_rate=100_000,
    math_rate=50_000,
    compile=100_000,
)
"""Costs of a GPU that was not measured: low, so that it gets nodes in doubt."""
