"""For checks: an Executable whose tensors each lie in memory of their own.

The EP's tensors are parts of one arena and share its memory in turns, so that a kernel which
leaves its tensor still is inside a buffer. Here it is not, and oclgrind sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eps.opencl.compile import memory_plan
from eps.opencl.runtime import builder
from eps.opencl.runtime.executable import Executable

if TYPE_CHECKING:
    from eps.opencl.cl.objects import Buffer
    from eps.opencl.program_spec import ArenaSpan, ProgramPort

FOREVER = 1 << 30


class SeparatedExecutable(Executable):
    """One buffer for each tensor; inputs and outputs are copied to and from theirs."""

    def _part(self, place: ArenaSpan) -> Buffer:
        found = self._parts.get(place)
        if found is None:
            found = self._parts[place] = self._allocate_zeros(self._context, place.size)
            for fill in self.spec.fills:
                if fill.place == place:
                    self._queue.fill(found, fill.value, 0, place.size)
        return found

    def _copy(self, array: Any, port: ProgramPort, *, write: bool) -> None:
        if not array.nbytes:
            return
        places = [p for p in self._parts if p.offset <= port.offset < p.offset + p.size]
        if not places:  # an input that no kernel reads
            return
        (place,) = places
        part, at = self._parts[place], port.offset - place.offset
        if write:
            self._queue.write(part, array, at)
        else:
            self._queue.read(array, part, at)


def separate_tensors() -> None:
    """Have everything that this process compiles from here on run so."""
    real = memory_plan._lives

    def lives(*arguments: Any) -> Any:
        found, constants = real(*arguments)
        for life in found:
            life.first, life.last = -1, FOREVER
        return found, constants

    memory_plan._lives = lives  # type: ignore[assignment] # patched where it is used
    builder.Executable = SeparatedExecutable  # type: ignore[misc, attr-defined]
