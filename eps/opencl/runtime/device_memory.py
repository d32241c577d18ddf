"""Memory of an open device: buffers, in large pages if it is a CPU, and weights in them."""

from __future__ import annotations

import mmap
import sys
import threading
from ctypes import addressof, c_char
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field
from eps.opencl.cl.constants import CL_DEVICE_TYPE_CPU, CL_MEM_READ_ONLY
from eps.opencl.cl.objects import Buffer, Queue
from eps.opencl.sdk_errors import opencl_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from eps.opencl.cl.objects import Context, Event
    from eps.opencl.program_spec import Weight

    Array = np.ndarray[Any, np.dtype[Any]]

LARGE_PAGE = 2 << 20
"""In bytes, on x86, and on ARM with small pages of 4 KiB."""
ZEROS_FROM = 128 << 10
"""Bytes from which zeros are pages of their own. Less than that is cleared faster than mapped."""


def allocate(context: Context, flags: int, size: int) -> Buffer:
    """Memory of one device; of a CPU on Linux in large pages where the system has some left.

    Drivers of CPUs take pages of 4 KiB, and each is a fault of its own when it is first written:
    that took four times as long as copying weights there (Intel 2026.22, PoCL 3.0).
    A GPU's driver knows best how to place its memory, also where it shares the host's.

    Args:
        context: Of one device.
        flags: CL_MEM_READ_ONLY or CL_MEM_READ_WRITE.
        size: In bytes.

    Raises:
        OpenCLError: The device has not enough.
    """
    buffer, _ = _allocate(context, flags, size, LARGE_PAGE)
    return buffer.count_in(context, size)


def allocate_zeros(context: Context, flags: int, size: int, queue: Queue) -> Buffer:
    """As `allocate`, of zeros once the queue's commands have ended.

    New pages of the system are zeros, and take no memory before they are used: what users bind
    tensors of their own to has room in a program's arena, too.

    Raises:
        OpenCLError: The device has not enough.
    """
    buffer, is_zero = _allocate(context, flags, size, ZEROS_FROM)
    buffer.count_in(context, size)
    if not is_zero:
        queue.clear(buffer, size)
    return buffer


def _allocate(context: Context, flags: int, size: int, own_from: int) -> tuple[Buffer, bool]:
    """The memory, and whether it is known to be zeros.

    From `own_from` bytes on, memory of a CPU is pages of its own. Else the driver's malloc may find
    some that were used before, which are there without a fault for each page.
    """
    device = context.device
    shared = device.type & CL_DEVICE_TYPE_CPU and device.host_unified_memory
    pages = _map_pages(size) if shared and size >= own_from else None
    if pages is None:
        return Buffer.of(context, flags, size), False
    return Buffer.from_host(context, flags, pages), True


def _map_pages(size: int) -> Array | None:
    """New pages of the system, large ones for many bytes; None if there are none to be had."""
    if sys.platform != "linux":
        return None
    is_large = size >= LARGE_PAGE
    room = size + LARGE_PAGE if is_large else size
    try:
        memory = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if is_large:
            memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a limit on address space, or a kernel without large pages
        return None
    content = np.frombuffer(memory, np.uint8)
    start = -content.ctypes.data % LARGE_PAGE if is_large else 0
    return content[start : start + size]


def address_of(data: memoryview) -> int:
    """Address of the first byte of a contiguous view that has one."""
    if data.readonly:
        return int(np.frombuffer(data, np.uint8).ctypes.data)
    return addressof(c_char.from_buffer(data))  # a fraction of the time, and a decoder has hundreds


@dataclass(slots=True)
class _Block:
    """Memory that is released as a whole.

    Attributes:
        size: In bytes.
        parts: Digest to the part of `whole` that has this content.
        users: Programs that hold one of the parts.
    """

    whole: Buffer
    size: int
    parts: dict[str, Buffer] = field(default_factory=dict)
    users: int = 0


class DeviceWeights:
    """Uploads what is not there yet, and gives memory back when no program holds it.

    Copying overlaps the caller's other work, such as loading a program, until `wait_for_uploads`.

    Mapped weights are not uploaded: the device reads the bytes in place. Kernels see the
    host's memory through CL_MEM_USE_HOST_PTR, which Intel's CPU runtime takes without a copy at
    multiples of 128 bytes and PoCL 3.0 anywhere (resident memory measured); on a device with
    memory of its own, and for bytes that are not aligned, weights are copied all the same.

    Kernels run slower from a file's pages of 4 KiB than from large pages, except those that read
    their weights in order: weights of few bits are mapped, so that they are in memory once.
    """

    def __init__(
        self, context: Context, alignment: int, *, mapped: bool, maps_streams: bool = False
    ) -> None:
        """Nothing is in memory yet.

        Args:
            context: Of one device.
            alignment: In bytes, of a part of a buffer.
            mapped: Whether the device reads weights in place, as far as it can.
            maps_streams: Whether it reads those in place that kernels read in order.
        """
        self._context = context
        self._alignment = alignment
        shares = context.device.host_unified_memory
        self._mapped, self._maps_streams = mapped and shares, maps_streams and shares
        self._lock = threading.Lock()
        self._blocks: dict[str, _Block] = {}
        self._uploads: list[Event] = []

    def hold(
        self, weights: Sequence[Weight], stream_digests: Collection[str] = frozenset()
    ) -> list[Buffer]:
        """A buffer for each of the weights, theirs until `drop`; filled after `wait_for_uploads`.

        Args:
            weights: Of one program.
            stream_digests: Digests of those that kernels read in order.

        Raises:
            EPFail: The device has not enough memory.
        """
        with self._lock:
            missing = {w.digest: w for w in weights if w.digest not in self._blocks}
            for block in self._place(missing.values(), stream_digests):
                self._blocks.update(dict.fromkeys(block.parts, block))
            for block in self._of(weights):
                block.users += 1
            return [self._blocks[w.digest].parts[w.digest] for w in weights]

    def size(self) -> int:
        """Bytes of all weights that programs hold."""
        with self._lock:
            return sum({id(block): block.size for block in self._blocks.values()}.values())

    def missing_bytes(
        self, weights: Sequence[Weight], stream_digests: Collection[str] = frozenset()
    ) -> int:
        """Bytes that `hold` would allocate for these weights."""
        with self._lock:
            missing = {w.digest: w for w in weights if w.digest not in self._blocks}
        copied = [w for w in missing.values() if not self._reads_in_place(w, stream_digests)]
        return sum(map(self._aligned_size, copied))

    def wait_for_uploads(self) -> None:
        """Wait until every weight that is held is where kernels read it.

        Raises:
            EPFail: The driver could not copy them.
        """
        with self._lock:
            self._await_uploads()

    def drop(self, weights: Sequence[Weight]) -> None:
        """End a `hold` of the same weights; nothing on the device uses them any more."""
        with self._lock:
            for block in self._of(weights):
                block.users -= 1
                if block.users:
                    continue
                for digest, part in block.parts.items():
                    del self._blocks[digest]
                    if part is not block.whole:
                        part.release()
                block.whole.release()

    def _await_uploads(self) -> None:
        uploads, self._uploads = self._uploads, []
        with opencl_errors("uploading weights"):
            for upload in uploads:
                upload.wait()

    def _of(self, weights: Sequence[Weight]) -> list[_Block]:
        """The blocks that hold the weights, each once."""
        return list({id(b): b for b in (self._blocks[w.digest] for w in weights)}.values())

    def _place(self, weights: Collection[Weight], stream_digests: Collection[str]) -> list[_Block]:
        lent: list[Weight] = []
        copied: list[Weight] = []
        for weight in weights:
            in_place = self._reads_in_place(weight, stream_digests)
            (lent if in_place else copied).append(weight)
        with opencl_errors(f"placing {sum(w.data.nbytes for w in weights)} bytes of weights"):
            made = [self._map(weight) for weight in lent]
            return [*made, *(self._upload(part) for part in self._split_by_size(copied))]

    def _split_by_size(self, weights: Sequence[Weight]) -> Iterator[list[Weight]]:
        """For as few buffers as can be: a GPU's largest may be a quarter of its memory."""
        most = self._context.device.max_mem_alloc_size
        part: list[Weight] = []
        size = 0
        for weight in weights:
            taken = self._aligned_size(weight)
            if part and size + taken > most:
                yield part
                part, size = [], 0
            part.append(weight)
            size += taken
        if part:
            yield part

    def _aligned_size(self, weight: Weight) -> int:
        """Bytes from the start of a weight to where the next may start."""
        return -(-max(weight.data.nbytes, 1) // self._alignment) * self._alignment

    def _reads_in_place(self, weight: Weight, stream_digests: Collection[str]) -> bool:
        mapped = self._mapped or (self._maps_streams and weight.digest in stream_digests)
        return mapped and self._can_map(weight)

    def _can_map(self, weight: Weight) -> bool:
        return weight.data.nbytes > 0 and address_of(weight.data) % self._alignment == 0

    def _map(self, weight: Weight) -> _Block:
        """A block over the host's own bytes."""
        size = weight.data.nbytes
        place = address_of(weight.data), size
        whole = Buffer.over(self._context, CL_MEM_READ_ONLY, place, weight.data)
        return _Block(whole, size, {weight.digest: whole})

    def _upload(self, weights: Sequence[Weight]) -> _Block:
        """One buffer with every weight in its part, which are on their way."""
        places, end = [], 0
        for weight in weights:
            places.append(end)
            end += self._aligned_size(weight)
        block = _Block(allocate(self._context, CL_MEM_READ_ONLY, end), end)
        queue = Queue(self._context)
        for weight, at in zip(weights, places, strict=True):
            if weight.data.nbytes:
                content = np.frombuffer(weight.data, np.uint8)
                self._uploads.append(queue.begin_write(block.whole, content, at))
            block.parts[weight.digest] = block.whole.part(at, max(weight.data.nbytes, 1))
        queue.flush()
        return block
