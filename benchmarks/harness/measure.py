"""Repeated timing of several variants in turns, each in a process of its own.

In each turn every variant has its go, in an order drawn anew and after a rest: what else the
machine does falls on all of them alike, none always meets the caches of the same one before it, nor
its threads, which go on spinning for a while (numpy's BLAS, onnxruntime's pool). A ratio is the
median over the turns, each against the peer's time in the same turn. A variant is a program that
speaks measured_process.py's protocol.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


REST = 0.1
"""Seconds before each go; OpenBLAS's threads spin for about 30 ms, onnxruntime's for less."""


class MeasureError(Exception):
    """A variant ended before it was asked to; says which, and its last words."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One thing to time.

    Attributes:
        command: The program that serves turns of it.
        absent: Why the engine has no such program; "" if it has one.
    """

    name: str
    command: tuple[str, ...]
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What was found of one variant.

    Attributes:
        absent: Why it cannot run here; "" where it can.
        first: Seconds that its first repetition took, in a fresh process, imports included.
        turns: For each turn the median of its repetitions, in seconds.
        peak_rss: High-water mark of its process's resident memory, in bytes.
        facts: What it says about itself.
    """

    absent: str = ""
    first: float = 0.0
    turns: tuple[float, ...] = ()
    peak_rss: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Median over the turns."""
        return median(self.turns)


def interleave(variants: Sequence[Variant], turns: int) -> dict[str, Measurement]:
    """Measure all variants `turns` times in turn; by name.

    Raises:
        MeasureError: One of them failed.
    """
    measured = {v.name: Measurement(absent=v.absent) for v in variants}
    with contextlib.ExitStack() as stack:
        servers = [(v, stack.enter_context(_serve_variant(v))) for v in variants if not v.absent]
        hello = {variant.name: _ask(variant, process, None) for variant, process in servers}
        present = [(v, process) for v, process in servers if not hello[v.name]["absent"]]
        times: dict[str, list[float]] = {variant.name: [] for variant, _ in present}
        order = random.Random(0)  # the same orders in every run
        for _ in range(turns):
            for variant, process in order.sample(present, len(present)):
                time.sleep(REST)
                times[variant.name].append(median(_ask(variant, process, "turn")["seconds"]))
        last = {variant.name: _ask(variant, process, "end") for variant, process in present}
    for name, said in hello.items():
        measured[name] = Measurement(absent=said["absent"])
    for name, seconds in times.items():
        measured[name] = Measurement(
            first=hello[name]["first"],
            turns=tuple(seconds),
            peak_rss=last[name]["peak_rss"],
            facts=last[name]["facts"],
        )
    return measured


@contextlib.contextmanager
def _serve_variant(variant: Variant) -> Iterator[subprocess.Popen[str]]:
    """The variant's process; it is gone when the block ends."""
    process = subprocess.Popen(
        variant.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def _ask(variant: Variant, process: subprocess.Popen[str], word: str | None) -> dict[str, Any]:
    """The process's next answer, to `word` where there is one."""
    assert process.stdin is not None
    assert process.stdout is not None
    if word is not None:
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise MeasureError(f"{variant.name} ended early, with {process.wait()}: {variant.command}")
    answer: dict[str, Any] = json.loads(line)
    return answer


def ratio(measured: Mapping[str, Measurement], name: str, peer: str) -> float | None:
    """Median over the turns of a variant's time over the peer's; None where one is absent."""
    ours, theirs = measured[name], measured[peer]
    if ours.absent or theirs.absent:
        return None
    return median(a / b for a, b in zip(ours.turns, theirs.turns, strict=True))
