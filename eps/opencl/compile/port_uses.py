"""Arguments of kernels that are a partition's inputs and outputs, for tensors bound to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.program_spec import PortUses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.views import View

    Uses = tuple[tuple[int, int], ...]


def find_port_uses(
    kernels: Sequence[Kernel], inputs: Sequence[View], outputs: Sequence[View]
) -> PortUses:
    """The arguments that a run may replace by a tensor of the user's.

    Args:
        kernels: Calls in the order in which they run.
        inputs: Plain views, each of a buffer of its own.
        outputs: Plain views; one may be a part of a buffer.
    """
    read = tuple(_find_uses(kernels, view, written=False) for view in inputs)
    made = tuple(_find_uses(kernels, view, written=True) for view in outputs)
    last_reads: dict[int, list[int]] = {}  # inputs by the last call that reads them
    for i, uses in enumerate(read):
        if uses:
            last_reads.setdefault(uses[-1][0], []).append(i)
    return PortUses(
        inputs=read,
        outputs=made,
        in_place=frozenset(
            (i, o)
            for o, others in enumerate(made)
            for i in last_reads.get(others[0][0] if others else -1, ())
            if inputs[i].buffer.dtype == outputs[o].buffer.dtype
            and inputs[i].buffer.size == outputs[o].buffer.size
            and _works_in_place(kernels, read[i] or (), others or ())
        ),
    )


def _find_uses(kernels: Sequence[Kernel], view: View, *, written: bool) -> Uses | None:
    """Arguments that are the view's buffer; None where it has another purpose, too."""
    buffer = view.buffer
    if buffer.geometry or view.offset or buffer.constant is not None or _size(view) != buffer.size:
        return None
    uses = []
    for call, kernel in enumerate(kernels):
        for index, operand in enumerate(kernel.operands):
            if operand is buffer:
                if not written and index >= len(kernel.operands) - kernel.written:
                    return None
                uses.append((call, index))
    return tuple(uses)


def _size(view: View) -> int:
    size = 1
    for dim in view.shape:
        size *= dim
    return size


def _works_in_place(kernels: Sequence[Kernel], read: Uses, made: Uses) -> bool:
    """Whether the call that reads an input last and writes an output first may do both at once."""
    (call, _), (at, _) = read[-1], made[0]
    pairs = kernels[call].in_place
    return call == at and all(
        (i, o) in pairs for last, i in read if last == call for first, o in made if first == call
    )
