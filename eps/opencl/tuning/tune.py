"""Kernel parameters by measuring: once for each different contraction of a device's models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, replace
from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Buffer, Queue
from eps.opencl.compile.codegen.emit import emit_program
from eps.opencl.compile.codegen.generate import generate_kernels
from eps.opencl.compile.codegen.tiling import choose_tiling, rank_tiles
from eps.opencl.compile.compile_partition import build_options, schedule_partition
from eps.opencl.compile.memory_plan import nbytes
from eps.opencl.compile.tilings import Tiling
from eps.opencl.runtime.launch import Launch
from eps.opencl.runtime.program import build
from eps.opencl.sdk_errors import opencl_errors
from ort_lite.ep import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.cl.objects import Context
    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.compile.tilings import Problem
    from eps.opencl.compile.views import Storage
    from eps.opencl.target import Target
    from eps.opencl.tuning.cache import TuningCache
    from ort_lite.ep import Graph

    Progress = Callable[[str, int, int], None]

log = get_logger(__name__)

SMALLEST_WORK = 1_000_000
"""Operations below which a launch takes longer than the kernel."""
MARGIN = 0.97
"""A measured time must be under this share of the rule's to be believed."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried: so many tiles, shares of the tasks for the first, launches of each."""

    tiles: int
    shares: tuple[float, ...]
    passes: int


EFFORTS: Mapping[str, Effort] = {
    "fast": Effort(3, (), 3),
    "full": Effort(8, (0.25, 0.5, 2.0), 8),
}


class Tuner:
    """Measures on one device what its cache does not know yet."""

    def __init__(self, context: Context, cache: TuningCache, effort: str) -> None:
        """`effort` is one of `EFFORTS`."""
        self._context = context
        self._cache = cache
        self._effort = EFFORTS[effort]

    def tune_target(
        self,
        graph: Graph,
        shapes: Mapping[str, tuple[int, ...]],
        target: Target,
        progress: Progress | None = None,
    ) -> Target:
        """`target` with measured tilings for the contractions of `graph`.

        Args:
            graph: A partition.
            shapes: Of its inputs.
            target: The device by the rule.
            progress: Called with (what is done, how many are done, how many there are).

        Raises:
            EPFail: The driver failed.
            Unsupported: A node is not supported with these shapes.
        """
        problems = _problems(graph, shapes, target)
        known = self._cache.read()
        missing = [problem for problem in problems if problem not in known]
        tilings = {}
        for count, problem in enumerate(missing):
            if progress is not None:
                progress("tuning kernels", count, len(missing))
            tilings[problem] = self._best(problem, problems[problem], target)
        if tilings:
            self._cache.add(tilings)
        log.info(
            "tuned %d contractions, %d of them measured now, the others from %s",
            *(len(problems), len(tilings), self._cache.path),
        )
        chosen = {problem: {**known, **tilings}[problem] for problem in problems}
        return replace(target, tuned={**target.tuned, **chosen})

    def _best(self, problem: Problem, step: PlacedOp, target: Target) -> Tiling:
        """The fastest tiling; the rule's, which is the first, where none is clearly faster."""
        tilings = candidates(problem, target, self._effort)
        kernels = [_kernel(problem, step, tiling, target) for tiling in tilings]
        times = time_kernels(self._context, kernels, target, self._effort.passes)
        best = min(range(len(times)), key=times.__getitem__)
        chosen = best if times[best] < MARGIN * times[0] else 0
        log.debug(
            "%s: %s in %.1f us, the rule's %s in %.1f us",
            *(problem, tilings[chosen], times[chosen] / 1e3, tilings[0], times[0] / 1e3),
        )
        return tilings[chosen]


def candidates(problem: Problem, target: Target, effort: Effort) -> list[Tiling]:
    """The tilings to measure, the rule's choice first."""
    rule = choose_tiling(problem, target)
    tiles = rank_tiles(problem, target)
    tilings = [rule, *(Tiling(tile, rule.tasks) for tile in tiles)]
    shared = [Tiling(rule.tile, max(1, int(rule.tasks * share))) for share in effort.shares]
    return [*list(dict.fromkeys(tilings))[: effort.tiles], *shared]


def _problems(
    graph: Graph, shapes: Mapping[str, tuple[int, ...]], target: Target
) -> dict[Problem, PlacedOp]:
    """Each different contraction that is worth it, and the first step that has it."""
    problems: dict[Problem, PlacedOp] = {}
    for step in schedule_partition(graph, shapes, target.custom).steps:
        for kernel in generate_kernels(step, target):
            if kernel.problem is not None and kernel.problem.work >= SMALLEST_WORK:
                problems.setdefault(kernel.problem, step)
    return problems


def _kernel(problem: Problem, step: PlacedOp, tiling: Tiling, target: Target) -> Kernel:
    """The first kernel of `step` for `problem`, with `tiling`."""
    tuned = replace(target, tuned={**target.tuned, problem: tiling})
    return next(k for k in generate_kernels(step, tuned) if k.problem == problem)


def time_kernels(
    context: Context, kernels: Sequence[Kernel], target: Target, passes: int
) -> list[int]:
    """Nanoseconds of the fastest of `passes` launches of each, after one that is not counted.

    The kernels take turns, so that what else the machine does falls on all of them alike.

    Raises:
        EPFail: The driver refuses the program, or has not the memory.
    """
    emitted = emit_program(kernels, target)
    program = build(context, emitted.source, build_options(target))
    with opencl_errors("timing kernels"):
        queue = Queue(context, profiling=True)
        memory = _Memory(context, queue, kernels)
        try:
            launches = [
                Launch(queue, program, name, memory.operands(kernel), (kernel.tasks, kernel.group))
                for name, kernel in zip(emitted.names, kernels, strict=True)
            ]
            times = [[launch.run_timed() for launch in launches] for _ in range(passes + 1)]
        finally:
            memory.release()
    return [min(column) for column in zip(*times[1:], strict=True)]


class _Memory:
    """Zeros for every operand; constants, which differ from kernel to kernel, share theirs."""

    def __init__(self, context: Context, queue: Queue, kernels: Sequence[Kernel]) -> None:
        sizes: dict[int, int] = {}
        for buffer in (b for kernel in kernels for b in kernel.operands):
            key = self._key(buffer)
            sizes[key] = max(sizes.get(key, 4), nbytes(buffer))
        self._buffers = {
            key: Buffer.of(context, CL_MEM_READ_WRITE, size) for key, size in sizes.items()
        }
        for key, size in sizes.items():
            queue.clear(self._buffers[key], size)

    @staticmethod
    def _key(buffer: Storage) -> int:
        return id(buffer) if buffer.constant is None else 0

    def operands(self, kernel: Kernel) -> list[Buffer]:
        """The operands of the kernel."""
        return [self._buffers[self._key(operand)] for operand in kernel.operands]

    def release(self) -> None:
        for buffer in self._buffers.values():
            buffer.release()
