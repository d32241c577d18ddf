"""Progress of a compile on a terminal, which moves inside a partition, too.

An execution provider that reports steps of its own, as OpenCL's does for kernels, moves the bar
with them. OpenVINO reports none: the bar then follows the clock towards the duration of the last
compile of the same partition.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ort_lite.cli.compile_times import CompileClock, open_times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Task
    from rich.progress_bar import ProgressBar

_PARTITION = re.compile(r"(\w+?)(?:ExecutionProvider)?_[0-9a-f]{16}_\d+")
"""The name of a partition: its EP, a digest, a number."""
MOST = 0.98
"""Largest share of an estimate that the bar shows before the compile has ended."""
WIDTH = 20


@contextmanager
def compile_progress(doing: str, settings: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """Show on a terminal what is being compiled, for how long, and how long it took last time.

    Args:
        doing: Text until the first compile.
        settings: Everything besides the partition that decides the duration.

    Yields:
        A function of (partition or step, number done, total); None without a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class Bar(BarColumn):
        """A bar that follows the clock where a duration is known."""

        def render(self, task: Task) -> ProgressBar:
            share = estimated_share(task.get_time() - task.fields["since"], task.fields["last"])
            bar = super().render(task)
            if share is not None:
                bar.total = max(task.total or 1, 1)
                bar.completed = min(task.completed + share, bar.total)
                bar.pulse = False
            return bar

    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}", table_column=None)),
        *(Bar(bar_width=WIDTH), TextColumn("{task.fields[count]}")),
        *(TimeElapsedColumn(), TextColumn("{task.fields[before]}")),
    )
    clock = CompileClock(open_times(), settings)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(
            escape(doing), total=None, count="", before="", since=shown.get_time(), last=None
        )

        def update(name: str, done: int, total: int) -> None:
            several = total > 1  # a bar of one step would not move until it is over
            changed: dict[str, Any] = {}
            if not is_step(name):
                last = clock.begin(name)
                before = f"last time {last:.0f} s" if last is not None else ""
                changed = {"before": before, "since": shown.get_time(), "last": last}
            shown.update(
                task,
                description=escape(describe_step(name)),
                completed=done if several else 0,
                total=total if several else None,
                count=f"{done}/{total}" if several else "",
                refresh=True,
                **(changed or {"last": None}),
            )

        yield update
    clock.end()


def estimated_share(elapsed: float, last: float | None) -> float | None:
    """Share of a compile that is over, below 1; None without a duration to compare with.

    Args:
        elapsed: Seconds since it began.
        last: Seconds that it took last time.
    """
    return min(max(elapsed, 0) / last, MOST) if last else None


def is_step(name: str) -> bool:
    """Whether a name is a step inside a partition, such as "tuning kernels"."""
    return " " in name


def describe_step(name: str) -> str:
    """What is done, without the digests in names of partitions: `compiling for OpenVINO`."""
    short = _PARTITION.sub(r"\1", name)
    return f"compiling: {short}" if is_step(name) else f"compiling for {short}"
