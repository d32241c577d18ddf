"""Steps all directions of RNN, GRU or LSTM at once, in memory that is made once for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from eps.cpu.arrays import checked_empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from eps.cpu.recurrent import Recurrence


class StackedCell(Protocol):
    """The weights of all D directions of a node: half the calls for two."""

    def project(self, x: Array) -> Array:
        """What inputs [D, T, B, I] give to the gates of every step: [T, ..., D, B, n]."""
        ...

    def stepper(self, memory: Sequence[Array]) -> Stepper:
        """A walk that begins with those states [D, B, H] that are no outputs; they are copied."""
        ...


class Stepper(Protocol):
    """One walk, which one thread makes.

    Attributes:
        memory: The states that are no outputs, [D, B, H] each; `step` changes them in place.
    """

    memory: tuple[Array, ...]

    def step(self, projected: Array, h: Array, out: Array) -> None:
        """The output [D, B, H] that follows `h`, into `out`; `projected` is one step of it all."""
        ...


def walk(
    recurrence: Recurrence,
    cell: StackedCell,
    x: Array,
    lengths: Array | None,
    initial: Sequence[Array | None],
    hidden: int,
) -> tuple[Array, ...]:
    """All outputs, then the last states; arguments as those of `Recurrence.run`."""
    x, initial = recurrence.time_first(x, initial)
    steps, batch = x.shape[:2]
    shape = (len(recurrence.backwards), batch, hidden)
    h, *memory = (np.zeros(shape, x.dtype) if s is None else s for s in initial)
    projected = cell.project(_in_order(x, recurrence.backwards))
    stepper = cell.stepper(memory)
    y = checked_empty((steps, *shape), x.dtype)
    if lengths is None or bool((lengths == steps).all()):
        for now, out in zip(projected, y, strict=True):
            stepper.step(now, h, out)
            h = out
        h = h.copy()
    else:
        times = np.arange(steps)[:, None, None]
        walked = np.where(np.array(recurrence.backwards)[:, None], times[::-1], times)
        h = _mask_ended(stepper, projected, h, y, (lengths > walked)[..., None])
    for d, back in enumerate(recurrence.backwards):
        if back:
            y[:, d] = y[::-1, d].copy()
    return recurrence.laid_out(y, [h, *stepper.memory])


def _in_order(x: Array, backwards: Sequence[bool]) -> Array:
    """[T, B, I] once for each direction, in the order in which that walks: [D, T, B, I]."""
    ways = [x[::-1] if back else x for back in backwards]
    return ways[0][None] if len(ways) == 1 else np.stack(ways)


def _mask_ended(stepper: Stepper, projected: Array, h: Array, y: Array, going: Array) -> Array:
    """Steps of sequences that differ in length; one that is over keeps its states and gives 0.

    Args:
        stepper: At its beginning.
        projected: Of all steps.
        h: The first state.
        y: To be filled: [T, D, B, H].
        going: Where a sequence is not over: [T, D, B, 1].

    Returns:
        The last h.
    """
    new = np.empty(h.shape, y.dtype)
    for now, out, goes in zip(projected, y, going, strict=True):
        before = [state.copy() for state in stepper.memory]
        stepper.step(now, h, new)
        for state, old in zip(stepper.memory, before, strict=True):
            np.copyto(state, old, where=~goes)
        h = np.where(goes, new, h)
        np.multiply(new, goes, out=out)
    return h
