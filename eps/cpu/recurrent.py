"""The common part of RNN, GRU and LSTM: directions, lengths, layouts, activations, the walk.

`walk` steps all directions at once, in memory that is allocated once for a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from eps.cpu.arrays import allocate_checked, check_allocation
from eps.cpu.kernels.activation import scaled_exponential
from eps.cpu.kernels.unary import relu, sigmoid, softplus, softsign
from eps.cpu.recurrent_cells import HardSigmoid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelInfo

    Activation = Callable[[Array], Array]
    Shaped = Callable[[Array, float, float], Array]

_DIRECTIONS: Mapping[str, tuple[bool, ...]] = MappingProxyType(
    {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
)

_PLAIN: Mapping[str, Activation] = MappingProxyType(
    {
        "relu": relu,
        "tanh": np.tanh,
        "sigmoid": sigmoid,
        "softsign": softsign,
        "softplus": softplus,
    }
)
_WITH_PARAMETERS: Mapping[str, tuple[Shaped, float | None, float | None]] = MappingProxyType(
    {
        "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
        "leakyrelu": (lambda x, a, _: np.where(x < 0, a * x, x), 0.01, None),
        "thresholdedrelu": (lambda x, a, _: np.where(x > a, x, 0), 1.0, None),
        "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
        "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
        "elu": (lambda x, a, _: scaled_exponential(x, a, 1.0), 1.0, None),
    }
)
"""Activations with alpha and beta; the default, or None if there is no such parameter."""


def activations_of(info: KernelInfo, defaults: Sequence[str], count: int) -> list[Activation]:
    """The node's activation functions, for all directions one after the other.

    `activation_alpha` and `activation_beta` are consumed by those functions that have such a
    parameter, in order.

    Raises:
        ValueError: There are too few, or one is not known.
    """
    names = info.attr("activations") or [*defaults] * count
    if len(names) < len(defaults) * count:
        raise ValueError(f"{info.op_type}: {len(names)} activations for {count} directions")
    alphas = iter(info.attr("activation_alpha") or ())
    betas = iter(info.attr("activation_beta") or ())
    activations: list[Activation] = []
    for name in names:
        plain = _PLAIN.get(name.lower())
        if plain is not None:
            activations.append(plain)
            continue
        if name.lower() not in _WITH_PARAMETERS:
            raise ValueError(f"{info.op_type}: activation '{name}' is not known")
        shape, alpha, beta = _WITH_PARAMETERS[name.lower()]
        a = 0.0 if alpha is None else float(next(alphas, alpha))
        b = 0.0 if beta is None else float(next(betas, beta))
        activations.append(_bind_activation(shape, a, b))
    return activations


def _bind_activation(shape: Shaped, alpha: float, beta: float) -> Activation:
    return lambda x: np.asarray(shape(x, alpha, beta), x.dtype)


def default_activations(info: KernelInfo, defaults: Sequence[str]) -> bool:
    """Whether the node's activations are the operator's own, in every direction."""
    names = [name.lower() for name in info.attr("activations") or ()]
    expected = [name.lower() for name in defaults]
    return all(name == expected[i % len(expected)] for i, name in enumerate(names))


def hard_gates(info: KernelInfo, defaults: Sequence[str], ways: int) -> HardSigmoid | None:
    """The HardSigmoid of all gates, where the other activations are the operator's own.

    None for other activations, and where directions differ.
    """
    names = [name.lower() for name in info.attr("activations") or ()]
    if names != ["hardsigmoid", *(name.lower() for name in defaults[1:])] * ways:
        return None
    usual = HardSigmoid()
    alphas, betas = (
        iter(info.attr("activation_alpha") or ()),
        iter(info.attr("activation_beta") or ()),
    )
    gates = {
        HardSigmoid(float(next(alphas, usual.alpha)), float(next(betas, usual.beta)))
        for _ in range(ways)
    }
    return gates.pop() if len(gates) == 1 else None


class RecurrentCell(Protocol):
    """One direction of one operator, its weights bound."""

    def project(self, x: Array) -> Array:
        """Contributions of the inputs [T, B, I] to the gates of every step: [T, B, gates * H]."""
        ...

    def step(self, projected: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        """New states from those of a step [B, gates * H]; the first state is the output."""
        ...


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Attributes of a node.

    Attributes:
        backwards: For each direction, whether it starts at the end.
        batch_first: Layout 1: batches come before time.
    """

    backwards: tuple[bool, ...]
    batch_first: bool

    @classmethod
    def of(cls, info: KernelInfo) -> Recurrence:
        """Those of a node.

        Raises:
            ValueError: The direction is not one of ONNX's.
        """
        direction = info.attr("direction", "forward").lower()
        if direction not in _DIRECTIONS:
            raise ValueError(f"{info.op_type}: direction is '{direction}'")
        return cls(_DIRECTIONS[direction], bool(info.attr("layout", 0)))

    def run(
        self,
        cells: Sequence[RecurrentCell],
        x: Array,
        lengths: Array | None,
        initial: Sequence[Array | None],
        hidden: int,
    ) -> tuple[Array, ...]:
        """All outputs [T, D, B, H], then the last states [D, B, H]; or batches first.

        Args:
            cells: One for each direction.
            x: As the node gets it.
            lengths: Of each sequence of the batch, or None if all are full.
            initial: For each state its first value as the node gets it, or None for zeros.
            hidden: H.
        """
        x, initial = self.time_first(x, initial)
        if lengths is not None and bool((lengths == x.shape[0]).all()):
            lengths = None
        outputs, lasts = [], []
        for d, (cell, back) in enumerate(zip(cells, self.backwards, strict=True)):
            zero = np.zeros((x.shape[1], hidden), x.dtype)
            first = tuple(zero if s is None else s[d] for s in initial)
            output, last = _one_direction(cell, cell.project(x), first, lengths, back)
            outputs.append(output)
            lasts.append(last)
        y = np.stack(outputs, 1)
        states = [np.stack([last[i] for last in lasts]) for i in range(len(initial))]
        return self.arrange_outputs(y, states)

    def time_first(
        self, x: Array, initial: Sequence[Array | None]
    ) -> tuple[Array, Sequence[Array | None]]:
        """Inputs [T, B, I] and states [D, B, H] from those that the node gets.

        Raises:
            ValueError: `x` does not have three dimensions.
        """
        if x.ndim != 3:
            raise ValueError(f"X has {x.ndim} dimensions, expected 3")
        if not self.batch_first:
            return x, initial
        return x.swapaxes(0, 1), [None if s is None else s.swapaxes(0, 1) for s in initial]

    def arrange_outputs(self, y: Array, states: Sequence[Array]) -> tuple[Array, ...]:
        """Outputs and states as the node gives them."""
        if self.batch_first:
            return y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in states)
        return y, *states


def _one_direction(
    cell: RecurrentCell,
    projected: Array,
    states: tuple[Array, ...],
    lengths: Array | None,
    backwards: bool,  # noqa: FBT001 - one of two equal ways
) -> tuple[Array, tuple[Array, ...]]:
    """Outputs in the order of time, and the states after the last step.

    A sequence that is over keeps its states and gives zeros; walked backwards it starts at
    its own end.
    """
    steps = projected.shape[0]
    shape = check_allocation((steps, *states[0].shape), projected.dtype)
    result = np.zeros(shape, projected.dtype)
    for t in range(steps - 1, -1, -1) if backwards else range(steps):
        new = cell.step(projected[t], states)
        if lengths is None:
            states = new
            result[t] = new[0]
            continue
        going = (lengths > t)[:, None]
        states = tuple(np.where(going, n, s) for n, s in zip(new, states, strict=True))
        result[t] = np.where(going, new[0], 0)
    return result, states


def part(values: Any, direction: int) -> Any:  # noqa: ANN401 - an array or None
    """The entry of one direction, None if the node has no such input."""
    return None if values is None else values[direction]


class StackedCell(Protocol):
    """The weights of all D directions of a node: half the calls for two."""

    def project(self, x: Array) -> Array:
        """Contributions of inputs [D, T, B, I] to the gates of every step: [T, ..., D, B, n]."""
        ...

    def stepper(self, memory: Sequence[Array]) -> CellStepper:
        """A walk that begins with those states [D, B, H] that are not outputs; they are copied."""
        ...


class CellStepper(Protocol):
    """One walk, which one thread makes.

    Attributes:
        memory: The states that are not outputs, [D, B, H] each; `step` changes them in place.
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
    y = allocate_checked((steps, *shape), x.dtype)
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
    return recurrence.arrange_outputs(y, [h, *stepper.memory])


def _in_order(x: Array, backwards: Sequence[bool]) -> Array:
    """[T, B, I] once for each direction, in the order in which that walks: [D, T, B, I]."""
    ways = [x[::-1] if back else x for back in backwards]
    return ways[0][None] if len(ways) == 1 else np.stack(ways)


def _mask_ended(stepper: CellStepper, projected: Array, h: Array, y: Array, going: Array) -> Array:
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
