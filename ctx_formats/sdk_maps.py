"""Maps of a leased file that an SDK made itself, found in /proc/self/maps (Linux)."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.sealed_file import sealed_copy

if TYPE_CHECKING:
    from collections.abc import Iterable

LIST = Path("/proc/self/maps")
MAP_FIXED = 0x10
FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True, slots=True)
class SdkMap:
    """A range of addresses at which an SDK maps a part of a file.

    Attributes:
        offset: In the file.
    """

    start: int
    size: int
    offset: int


@dataclass(slots=True, eq=False)
class SdkMaps:
    """The maps that SDKs have of one file, each for as long as an object of the SDK's lives."""

    _owned: list[tuple[weakref.ref[object], tuple[SdkMap, ...]]] = field(default_factory=list)

    def add(self, owner: object, maps: Iterable[SdkMap]) -> None:
        """Count on these maps for as long as `owner` lives."""
        self._owned = [one for one in self._owned if one[0]() is not None]
        self._owned.append((weakref.ref(owner), tuple(maps)))

    def copy(self, descriptor: int, size: int) -> None:
        """Put one copy of the file, which all of them share, in the place of each map.

        Args:
            descriptor: The file.
            size: Of the file when it was mapped, in bytes.

        Raises:
            OSError: There is no memory for it.
        """
        # Whose owner is held here cannot be unmapped, and somebody else's map made in its place.
        owners = [(owner, maps) for made, maps in self._owned if (owner := made()) is not None]
        if not owners:
            return
        copied = sealed_copy(descriptor, size)
        if copied is None:
            raise OSError(0, "this system has no files in memory")
        try:
            for _, maps in owners:
                for one in maps:
                    _replace(one, copied)
        finally:
            os.close(copied)


def maps_beside(address: int) -> set[SdkMap]:
    """All maps of the file that is mapped at an address, but for the one there.

    None where the system does not show them.
    """
    if not LIST.exists():
        return set()
    shared: dict[tuple[bytes, bytes], set[SdkMap]] = {}
    own: tuple[tuple[bytes, bytes], SdkMap] | None = None
    with LIST.open("rb") as file:
        for line in file:
            places, _, offset, device, inode = line.split(maxsplit=5)[:5]
            if inode == b"0":
                continue
            start, end = (int(text, 16) for text in places.split(b"-"))
            one = SdkMap(start, end - start, int(offset, 16))
            shared.setdefault((device, inode), set()).add(one)
            if start <= address < end:
                own = (device, inode), one
    return shared[own[0]] - {own[1]} if own is not None else set()


def _replace(one: SdkMap, descriptor: int) -> None:
    if sys.platform != "linux":
        return  # there is no copy to be mapped
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = pointer = ctypes.c_void_p
    call.argtypes = [pointer, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | MAP_FIXED
    if call(one.start, one.size, protection, flags, descriptor, one.offset) == FAILED:
        raise OSError(ctypes.get_errno(), "a copy cannot take the place of an SDK's map")
