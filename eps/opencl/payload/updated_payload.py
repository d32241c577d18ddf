"""A payload of a partition with free dimensions, with programs for more shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.errors import Reason
from ctx_formats.lean_dataclass import replace
from ort_lite.ep import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.payload.format import Payload, Variant


def updated_payload(payload: Payload, new: Sequence[Variant], most: int) -> Payload:
    """`payload` with the programs `new`, which replace those for the same shapes.

    Args:
        payload: With the whole partition in it, or it could meet no new shapes.
        new: The oldest first.
        most: Programs that stay; the oldest go.

    Raises:
        InvalidGraph: Its shapes are fixed, or the partition is not in it.
    """
    if payload.model is None or not payload.model.whole:
        raise InvalidGraph(
            f"the payload takes no programs for other shapes (reason: {Reason.SHAPE})",
            reason=Reason.SHAPE,
        )
    variants = {_input_shapes(variant): variant for variant in payload.variants}
    for variant in new:
        variants.pop(_input_shapes(variant), None)
        variants[_input_shapes(variant)] = variant
    return replace(payload, variants=tuple(variants.values())[-most:])


def _input_shapes(variant: Variant) -> frozenset[tuple[str, tuple[int, ...]]]:
    return frozenset((port.name, port.shape) for port in variant.spec.inputs)
