"""Fetching what is needed next while the work on what is in the cache goes on.

Statements of clang, for CPU devices whose compiler is made of it; an address beyond the end of a
buffer is not a fault. OpenCL's own `prefetch` is a call that costs more than it brings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from eps.opencl.compile.views import Storage
    from eps.opencl.target import Target

LINE = 64
"""Bytes in a line of the cache, of the CPUs that OpenCL runs on."""
SECOND = "0, 2"
"""To be read, into the second cache."""
AHEAD = 1024
"""Bytes between a load and what is fetched with it."""
SMALLEST_STREAM = 1 << 16
"""Bytes of weights from which on they are fetched ahead; fewer stay in a cache between runs."""

MOST_TILES = 64
"""Tiles of a panel beyond which its first use hardly counts, and fetching costs as much."""


def fetch_row(target: Target, at: str) -> list[str]:
    """Fetch element `at` of `x` and, to be written, of `y`.

    The passes over a row after the first find it in the cache, and memory would idle meanwhile.
    Fetching the next row takes a quarter off where rows come from memory.
    """
    if not target.prefetches:
        return []
    return [fetch(f"x + {at}", "0"), fetch(f"y + {at}", "1")]


def fetch_ahead(pointer: str, at: int, count: int) -> list[str]:
    """Fetch the lines of `count` words of 4 bytes that come `AHEAD` bytes after element `at`.

    For weights that a run reads once, in order: the processor's own prefetcher stops at the end of
    each page. This takes a fifth off a product of one row.
    """
    return [
        fetch(f"{pointer} + {at + (AHEAD + byte) // 4}", "0") for byte in range(0, 4 * count, LINE)
    ]


def fetch(address: str, into: str) -> str:
    """Statement that fetches the line at `address`.

    Args:
        address: Pointer, in OpenCL C.
        into: "0" to be read and "1" to be written, or `SECOND`.
    """
    return f"__builtin_prefetch((const void*)(size_t)({address}), {into});"


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAhead:
    """The next panel of packed weights, fetched in parts by all the tiles that use this one.

    A run uses its weights once, so they come from memory, and the processor's own prefetcher
    stops at the end of each page. The weights of the next operation follow the last panel. This
    takes 5 to 30 % off products of 8 to 512 rows; of one row there is no work to hide it behind.

    Attributes:
        panel: Elements of a panel.
        steps: Of the innermost loop in a tile.
        each: Elements fetched in a step.
        width: Bytes of an element.
    """

    panel: int
    steps: int
    each: int
    width: int

    @staticmethod
    def of(weights: Storage, panel: int, steps: int, tiles: int) -> PanelAhead | None:
        """None if the weights are not constants or stay in a cache, or tiles hide too little."""
        if weights.constant is None or weights.constant.nbytes < SMALLEST_STREAM:
            return None
        if not 2 <= tiles <= MOST_TILES:
            return None
        each = -(-panel // (steps * tiles))
        return PanelAhead(panel=panel, steps=steps, each=each, width=weights.constant.itemsize)

    def begin(self, tile: str) -> str:
        """Declare where `tile`, a number from 0, begins to fetch."""
        return f"size_t next = (size_t)(w + {self.panel} + {tile} * {self.steps * self.each});"

    def step(self) -> list[str]:
        """Fetch one step's part into the second cache: the first has this panel's."""
        size = self.each * self.width
        lines = [fetch(f"next + {at}", SECOND) for at in range(0, size, LINE)]
        return [*lines, f"next += {size};"]
