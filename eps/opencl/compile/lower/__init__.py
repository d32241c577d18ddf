"""One file for each family of operators; each has a table from operator to lowering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.lower import (
    activation,
    attention,
    contrib,
    decoder,
    dense,
    einsum,
    elementwise,
    experts,
    index,
    integer,
    normalise,
    pooling,
    qdq,
    quantised,
    quantised_recurrent,
    recurrent,
    resize,
    shape,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.ir import IrTensor
    from eps.opencl.compile.lower.node import NodeView

    Lowering = Callable[[NodeView], IrTensor | Sequence[IrTensor]]

CONTRIB_DOMAIN = "com.microsoft"

STANDARD = (
    activation, attention, contrib, dense, einsum, elementwise, index, integer, normalise, pooling,
    qdq, quantised, recurrent, resize, shape,
)  # fmt: skip

LOWERINGS: Mapping[tuple[str, str], Lowering] = {
    **{("", name): lowering for family in STANDARD for name, lowering in family.LOWERINGS.items()},
    **{
        (CONTRIB_DOMAIN, name): lowering
        for family in (
            *(activation, attention, contrib, decoder, dense, experts, integer),
            quantised_recurrent,
        )
        for name, lowering in family.CONTRIB.items()
    },
}
"""(domain, operator) to the function that emits its kernels."""
