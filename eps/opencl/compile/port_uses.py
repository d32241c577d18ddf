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
    return PortUses(
        inputs=read,
        outputs=made,
        in_place=frozenset(
            (i, o)
            for i, uses in enumerate(read)
            for o, others in enumerate(made)
            if uses is not None
            and others is not None
            and inputs[i].buffer.dtype == outputs[o].buffer.dtype
            and inputs[i].buffer.size == outputs[o].buffer.size
            and _may_share(kernels, uses, others)
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


def _may_share(kernels: Sequence[Kernel], read: Uses, made: Uses) -> bool:
    """Whether every call that touches the output comes after those that read the input.

    One call may do both, where its kernel says so.
    """
    if not read or not made:
        return False
    last, first = read[-1][0], made[0][0]
    if last != first:
        return last < first
    allowed = kernels[last].in_place
    return all(
        (i, o) in allowed for call, i in read if call == last for at, o in made if at == call
    )
