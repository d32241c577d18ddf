"""Costs of running nodes on an execution provider, for deciding which nodes pay there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESET_BEFORE = "GRU, linear_before_reset=0"
"""A GRU whose reset gate comes before the product with the state: a kind of recurrence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCosts:
    """Costs of the sequential steps of one kind of recurrence, as measured.

    Attributes:
        step: Microseconds of a step, its product not included.
        rate: Operations of a step's product in a microsecond, with one sequence.
        sequences: How many sequences one product takes, each in the time of one.
        tasks: Sequences and directions that threads compute at the same time, each for itself; 0
            where a step takes all sequences of a direction.
        shared: Operations of one sequence's product in a step, from which on fewer sequences than
            `tasks` occupy all threads, each with a part of the product; 0 where they do not.
    """

    step: float
    rate: float
    sequences: int = 1
    tasks: int = 0
    shared: float = 0


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
        opening: Microseconds of processor time until the device can be used, once in a process.
        composes: Whether an operator is several calls, and a convolution a copy and a product.
        step_costs: By kind of recurrence ("GRU", "LSTM", "RNN" or RESET_BEFORE), of known shapes.
        iteration: Microseconds of an iteration of a Loop without its nodes; `free_factor` applies.
        state_rate: Bytes of states, and of values from around the body, that an iteration hands on
            in a microsecond; 0 where it does so by reference.
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
    opening: float = 0
    composes: bool = False
    step_costs: Mapping[str, StepCosts] = field(default_factory=dict)
    iteration: float = 0
    state_rate: float = 0


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


def find_least_costs(devices: Sequence[PlacementCosts]) -> PlacementCosts:
    """Of several devices the lowest cost, and the highest rate, of each kind; no costs of steps."""
    return PlacementCosts(
        launch=min(one.launch for one in devices),
        crossing=min(one.crossing for one in devices),
        crossing_rate=max(one.crossing_rate for one in devices),
        call=min(one.call for one in devices),
        step=min(one.step for one in devices),
        product_rate=max(one.product_rate for one in devices),
        stream_rate=max(one.stream_rate for one in devices),
        math_rate=max(one.math_rate for one in devices),
        compile=min(one.compile for one in devices),
        free_factor=min(one.free_factor for one in devices),
        opening=min(one.opening for one in devices),
    )
