"""One stretch of memory for all temporaries: places by lifetime, borders left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.views import Storage, View


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Places of buffers, in bytes.

    Attributes:
        arena: Size of the memory for temporaries.
        kept: Bytes at its start that keep their content from run to run: borders are there.
        places: `id` of each temporary buffer to its offset in the arena.
        constants: Constant buffers, in the order in which kernels take them.
        fills: What stretches of it start as: (offset, size, byte); the rest starts as zeros.
    """

    arena: int
    kept: int
    places: Mapping[int, int]
    constants: tuple[Storage, ...]
    fills: tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class _Life:
    buffer: Storage
    first: int
    last: int


def plan_memory(
    kernels: Sequence[Kernel],
    inputs: Sequence[View],
    outputs: Sequence[View],
    alignment: int,
) -> MemoryPlan:
    """Give every buffer of the kernels a place.

    Inputs live from the start, outputs to the end. A buffer with a border shares its place
    only with buffers of the same geometry: kernels write inside the border, so it stays as
    it was.
    """
    lives, constants = _lives(kernels, inputs, outputs)
    places: dict[int, int] = {}
    end = _place_bordered([x for x in lives if x.buffer.geometry], places, alignment)
    top = _place_plain([x for x in lives if not x.buffer.geometry], places, end, alignment)
    fills = {
        (places[id(x.buffer)], nbytes(x.buffer), x.buffer.border & 0xFF)
        for x in lives
        if x.buffer.border
    }
    return MemoryPlan(max(top, alignment), end, places, tuple(constants), tuple(sorted(fills)))


def nbytes(buffer: Storage) -> int:
    """Size of a buffer in bytes."""
    return buffer.size * int(np.dtype(buffer.dtype).itemsize)


def _align(size: int, alignment: int) -> int:
    return max(1, -(-size // alignment)) * alignment


def _lives(
    kernels: Sequence[Kernel], inputs: Sequence[View], outputs: Sequence[View]
) -> tuple[list[_Life], list[Storage]]:
    lives: dict[int, _Life] = {id(v.buffer): _Life(v.buffer, -1, -1) for v in inputs}
    constants: dict[int, Storage] = {}
    for at, kernel in enumerate(kernels):
        for buffer in kernel.operands:
            if buffer.constant is not None:
                constants[id(buffer)] = buffer
                continue
            life = lives.setdefault(id(buffer), _Life(buffer, at, at))
            life.last = at
    for view in outputs:
        lives.setdefault(id(view.buffer), _Life(view.buffer, 0, 0)).last = len(kernels)
    return list(lives.values()), list(constants.values())


def _place_bordered(lives: Sequence[_Life], places: dict[int, int], alignment: int) -> int:
    """Slots for each geometry, each taken by one buffer after another."""
    slots: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    end = 0
    for life in sorted(lives, key=lambda x: x.first):
        key = (life.buffer.geometry, life.buffer.dtype, life.buffer.border)
        mine = slots.setdefault(key, [])
        free = next((i for i, (busy, _) in enumerate(mine) if busy < life.first), None)
        if free is None:
            mine.append((life.last, end))
            places[id(life.buffer)] = end
            end += _align(nbytes(life.buffer), alignment)
        else:
            places[id(life.buffer)] = mine[free][1]
            mine[free] = (life.last, mine[free][1])
    return end


def _place_plain(lives: Sequence[_Life], places: dict[int, int], base: int, alignment: int) -> int:
    """Largest first, each at the lowest offset that no value alive at the same time uses."""
    placed: list[tuple[int, int, _Life]] = []
    top = base
    for life in sorted(lives, key=lambda x: (-nbytes(x.buffer), x.first)):
        size = _align(nbytes(life.buffer), alignment)
        at = base
        for start, end, other in sorted(placed, key=lambda x: x[0]):
            if other.first > life.last or other.last < life.first:
                continue
            if at + size <= start:
                break
            at = max(at, end)
        places[id(life.buffer)] = at
        placed.append((at, at + size, life))
        top = max(top, at + size)
    return top
