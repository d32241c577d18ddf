"""Arenas and shared allocators, checked as in onnxruntime and without effect; copies of tensors.

Values are in numpy's memory or a device's, and what runs need in between comes from a workspace
that sessions keep; no allocator of a user's steers either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ort_lite.ep.device_tensors import DeviceTensor
from ort_lite.execution.fill_place import fill_place
from ort_lite.named_enum import NamedIntEnum
from ort_lite.providers.memory_info import OrtMemoryInfo, OrtMemoryInfoDeviceType
from ort_lite.providers.sync_stream import OrtSyncStream
from ort_lite.session_log import get_logger
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.ep.device_streams import DeviceStream
    from ort_lite.ep.interface import Value
    from ort_lite.execution.values import OrtValue

log = get_logger(__name__)


class ArenaExtendStrategy(NamedIntEnum):
    """How an arena grows: ArenaExtendStrategy of arena_extend_strategy.h."""

    kNextPowerOfTwo = 0  # noqa: N815 - onnxruntime's names
    kSameAsRequested = 1  # noqa: N815 - as above


kNextPowerOfTwo = ArenaExtendStrategy.kNextPowerOfTwo  # noqa: N816 - as above
kSameAsRequested = ArenaExtendStrategy.kSameAsRequested  # noqa: N816 - as above

_SIZES = (
    *("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk"),
    *("initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes"),
)


class OrtArenaCfg:
    """Sizes of an arena in bytes; -1 leaves one to onnxruntime. Nothing here has arenas."""

    def __init__(
        self,
        max_mem: int | Mapping[str, int],
        arena_extend_strategy: int | None = None,
        initial_chunk_size_bytes: int | None = None,
        max_dead_bytes_per_chunk: int | None = None,
    ) -> None:
        """One of four numbers, or of a mapping from names of attributes to numbers.

        Raises:
            BindingError: A name or a value of the mapping is none of an arena's; a RuntimeError.
            TypeError: Neither the one nor the other.
        """
        self.max_mem = 0
        self.arena_extend_strategy = self.initial_chunk_size_bytes = -1
        self.max_dead_bytes_per_chunk = self.initial_growth_chunk_size_bytes = -1
        self.max_power_of_two_extend_bytes = -1
        rest = (arena_extend_strategy, initial_chunk_size_bytes, max_dead_bytes_per_chunk)
        left_out = [number for number in rest if number is None]
        if len(left_out) != (0 if isinstance(max_mem, int) else len(rest)):
            raise TypeError(
                f"OrtArenaCfg expects a mapping or four integers, got {(max_mem, *rest)}"
            )
        settings: Mapping[str, object] = (
            dict(zip(_SIZES, (max_mem, *rest), strict=False))
            if isinstance(max_mem, int)
            else max_mem
        )
        for name, number in settings.items():
            if name not in _SIZES:
                raise BindingError(f"Invalid OrtArenaCfg option: {name}")
            if not isinstance(number, int) or number < (0 if name == "max_mem" else -1):
                raise BindingError(f"OrtArenaCfg option {name} is {number!r}, expected a size")
            setattr(self, name, number)


def create_and_register_allocator(
    mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None = None, /
) -> None:
    """Nothing but the checks: no session takes memory from an allocator.

    Raises:
        BindingError: Memory that is not the host's; a RuntimeError, too.
        TypeError: `mem_info` is not an OrtMemoryInfo.
    """
    _check(mem_info, arena_cfg)
    if mem_info.device_type() != OrtMemoryInfoDeviceType.CPU:
        raise BindingError(
            "Error when creating and registering allocator: Only CPU devices are supported. "
            "Please call CreateAndRegisterAllocatorV2() for other device."
        )
    log.debug("an allocator for %s has no effect", mem_info.name)


def create_and_register_allocator_v2(
    provider_type: str,
    mem_info: OrtMemoryInfo,
    options: Mapping[str, str],
    arena_cfg: OrtArenaCfg | None = None,
    /,
) -> None:
    """As `create_and_register_allocator`, for an execution provider.

    Raises:
        BindingError: Another execution provider than CPUExecutionProvider: those that are here
            keep no allocators; a RuntimeError, too.
        TypeError: `mem_info` is not an OrtMemoryInfo.
    """
    _check(mem_info, arena_cfg)
    if provider_type != "CPUExecutionProvider":
        raise BindingError(
            "Error when creating and registering allocator in create_and_register_allocator_v2: "
            f"{provider_type} is not implemented in CreateAndRegisterAllocatorV2()"
        )
    log.debug("an allocator for %s with %s has no effect", mem_info.name, dict(options))


def _check(mem_info: object, arena_cfg: object) -> None:
    if not isinstance(mem_info, OrtMemoryInfo):
        raise TypeError(f"an allocator is for an OrtMemoryInfo, got {mem_info!r}")
    if arena_cfg is not None and not isinstance(arena_cfg, OrtArenaCfg):
        raise TypeError(f"an arena is set up by an OrtArenaCfg, got {arena_cfg!r}")


def copy_tensors(
    src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: OrtSyncStream | None = None
) -> None:
    """Copy each tensor of `src` into the memory of the one at its place in `dst`.

    Between tensors of one device no copy passes through the host.

    Args:
        src: Tensors.
        dst: As many, of the same types and shapes.
        stream: A queue of the device that has tensors: the copies are enqueued there, in order.
            Runs and every use of a tensor on the device wait for them. A program that changes or
            reads an array in host memory that is copied must call `stream.synchronize()` before
            that.

    Raises:
        BindingError: The numbers, a type or a shape differ; a RuntimeError, too. Nothing was
            copied.
        EPFail: A device failed.
        TypeError: `stream` is something else, or one of the others is not an OrtValue.
    """
    any_stream: object = stream
    if any_stream is not None and not isinstance(any_stream, OrtSyncStream):
        raise TypeError(f"a stream is an OrtSyncStream, got {any_stream!r}")
    if len(src) != len(dst):
        raise BindingError(
            f"Invalid arguments provided to CopyTensors: {len(src)} sources, "
            f"{len(dst)} destinations"
        )
    for value in (*src, *dst):
        if not hasattr(value, "held_value"):
            raise TypeError(f"an OrtValue is expected, not {value!r:.80}")
    pairs = [
        (source.tensor(), destination.require_like(source.tensor()))
        for source, destination in zip(src, dst, strict=True)
    ]
    queue = None if stream is None else stream.device_stream
    for source, place in pairs:
        if queue is not None and _goes_through(queue, source, place):
            queue.copy(source, place)
            continue
        if queue is not None:
            queue.synchronize()  # an earlier copy may be of an array of this one
        fill_place(place, source, "the copy")


def _goes_through(queue: DeviceStream, *values: Value) -> bool:
    """Whether a queue copies between two values: tensors of its memory and contiguous arrays."""
    tensors = [value for value in values if isinstance(value, DeviceTensor)]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    return bool(tensors) and (
        all(queue.memory.reaches(tensor.memory) for tensor in tensors)
        and all(array.flags.c_contiguous for array in arrays)
    )
