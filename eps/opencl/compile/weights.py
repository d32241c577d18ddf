"""Constants as bytes, named by content so that programs and graphs can have them in common."""

from __future__ import annotations

from blake3 import blake3

from ctx_formats.lean_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Weight:
    """A constant as its bytes in memory.

    Attributes:
        digest: BLAKE3 of the bytes, in hex.
        data: Read-only; keeps alive what it lies in.
    """

    digest: str
    data: memoryview


def weight_of(data: memoryview) -> Weight:
    """The bytes with their digest."""
    return Weight(blake3(data, max_threads=blake3.AUTO).hexdigest(), data.toreadonly())
