"""Everything about a compiled partition but the driver's program: plain values, no device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.tilings import Problem, Tiling
    from eps.opencl.weights import Weight


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of the arena, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Constant:
    """One of a blueprint's weights."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One kernel launch.

    Attributes:
        kernel: Name in the source.
        tasks: Global size; the local size is 1.
        arguments: Buffers in the order of the parameters.
        checks: Whether the flag for bad indices is a last argument.
        work: Floating-point operations, for reports.
    """

    kernel: str
    tasks: int
    arguments: tuple[Place | Constant, ...]
    checks: bool = False
    work: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """An input or output: row-major at `offset` bytes of the arena."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * int(np.dtype(self.dtype).itemsize)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A program's source, its calls, and the memory that they touch.

    Attributes:
        arena: Bytes of device memory for inputs, outputs and temporaries, zero at the start.
        weights: Constants, each content once.
        tuned: Tilings that were measured, not chosen by the rule.
    """

    source: str
    options: str
    calls: tuple[Call, ...]
    arena: int
    weights: tuple[Weight, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    tuned: Mapping[Problem, Tiling] = field(default_factory=dict)

    @property
    def checks(self) -> bool:
        """Whether a call may report a bad index."""
        return any(call.checks for call in self.calls)
