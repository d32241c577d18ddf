"""Memory that programs need on a device, against what is free there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.ep import EPFail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.opencl.cl.objects import Context
    from eps.opencl.program_spec import ProgramSpec
    from eps.opencl.runtime.arena import SharedArena
    from eps.opencl.runtime.device_memory import DeviceWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Bytes that a program is going to allocate.

    Attributes:
        weights: Of weights that are not there yet.
        arena: Of its own arena.
        shared: Added to the arena that programs share, if only this one were to come.
        piece: Largest buffer for values inside the program.
    """

    weights: int
    arena: int
    shared: int
    piece: int


def own_bytes(spec: ProgramSpec, shared: SharedArena | None) -> int:
    """Bytes at the start of a program's arena that no other program may use."""
    return spec.arena if shared is None or spec.kept is None else spec.kept


def needed_memory(
    specs: Sequence[ProgramSpec], weights: DeviceWeights, shared: SharedArena | None
) -> MemoryNeed:
    """The memory for programs of one partition, whose weights may be there already."""
    own = [own_bytes(spec, shared) for spec in specs]
    rest = [spec.arena - size for spec, size in zip(specs, own, strict=True)]
    return MemoryNeed(
        weights=weights.missing_bytes(
            [weight for spec in specs for weight in spec.weights],
            frozenset(digest for spec in specs for digest in spec.stream_digests),
        ),
        arena=sum(own),
        shared=0 if shared is None else shared.growth(max(rest)),
        piece=max(*own, *rest),
    )


def require_room(context: Context, needs: Sequence[MemoryNeed]) -> None:
    """Refuse programs that the device has no room for, before anything of them is allocated.

    Args:
        context: Of the device; it knows what this process has allocated there.
        needs: Of programs that are going to be there together.

    Raises:
        EPFail: They do not fit.
    """
    device = context.device
    piece = max(need.piece for need in needs)
    if piece > device.max_mem_alloc_size:
        raise EPFail(
            f"the model needs {piece} bytes in one piece for the values inside it, and "
            f"{device.name} allows {device.max_mem_alloc_size}: use smaller shapes, or another "
            "device"
        )
    total, live = device.global_mem_size, context.allocated.live
    weights = sum(need.weights for need in needs)
    arena = sum(need.arena for need in needs) + max(need.shared for need in needs)
    if weights + arena + live > total:
        parts = f" in {len(needs)} partitions" if len(needs) > 1 else ""
        raise EPFail(
            f"the model needs {weights + arena} bytes on {device.name} ({weights} for weights, "
            f"{arena} for the values inside it{parts}), which has {total}, of which this process "
            f"uses {live}: close other sessions, use smaller shapes, or another device"
        )
