"""Whole processes in turns, each from its start to its first answer.

In each turn one process of each variant is started after the other, in an order drawn anew and
after a rest, as measure.py does it. A process is one of one_start.py.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from statistics import median_low
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from measure import REST, Measurement, Variant
from samples import HERE, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOAD = "load"
"""After a variant's name: what opening it once more in the same process took."""

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Not for these processes: pip compiles what it installs, but not a checkout, which would then be
compiled anew in every process (100 ms)."""


NUMPY, SESSION = "numpy", "session"
"""What a process does first; see one_start.py."""


def start_variant(
    engine: str,
    kind: str,
    sample: Sample,
    made: Path | str,
    cache: Path | None = None,
    first: str = NUMPY,
) -> Variant:
    """A process that opens `made` with `engine`, and runs it on the sample's inputs.

    Args:
        engine: One of engines.ENGINES.
        kind: What `made` is; with the engine the variant's name.
        sample: For its inputs.
        made: A model or context; or why there is none.
        cache: The folder of the engine's own cache, if it is to use that.
        first: NUMPY or SESSION.
    """
    name = f"{engine} {kind}"
    if isinstance(made, str):
        return Variant(name, (), absent=made)
    program = (sys.executable, str(HERE / "one_start.py"))
    asked = (engine, str(made), str(cache or ""), first)
    return Variant(name, (*program, *asked, *written_inputs(sample)))


def written_inputs(sample: Sample) -> tuple[str, ...]:
    """The sample's inputs, each its name and a file of its own beside those of all."""
    told = []
    with np.load(sample.feed) as arrays:
        for i, name in enumerate(arrays.files):
            path = sample.feed.with_name(f"{sample.name}_{i}.npy")
            np.save(path, arrays[name])
            told += [name, str(path)]
    return tuple(told)


def measure_starts(
    variants: Sequence[Variant],
    turns: int,
    label: str,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Measurement]:
    """Start each variant once to fill caches, then once in each turn.

    Args:
        variants: From `start_variant`.
        turns: How many.
        label: What is measured, for lines of progress on stderr.
        environment: Variables besides those that are set.

    Returns:
        By name the first answer, counted from before the process was started; by name and LOAD
        what opening and running once more took in it. Both have the process's peak memory.

    Raises:
        subprocess.CalledProcessError: A process failed.
    """
    surroundings = {k: v for k, v in os.environ.items() if k != NO_BYTECODE} | dict(
        environment or {}
    )
    answers: dict[str, list[dict[str, Any]]] = {variant.name: [] for variant in variants}
    absent = {variant.name: variant.absent for variant in variants}
    order = random.Random(0)  # the same orders in every run
    for turn in range(turns + 1):
        present = [variant for variant in variants if not absent[variant.name]]
        for variant in order.sample(present, len(present)):
            time.sleep(REST)
            answer = _start(variant, surroundings)
            absent[variant.name] = answer["absent"]
            if turn:
                answers[variant.name].append(answer)
        sys.stderr.write(f"{label}: {turn} of {turns} turns\n")
    found = {}
    for name, told in answers.items():
        found[name] = _measurement(told, "answered", absent[name])
        found[f"{name} {LOAD}"] = _measurement(told, "load", absent[name])
    return found


def _measurement(told: Sequence[dict[str, Any]], what: str, absent: str) -> Measurement:
    if absent:
        return Measurement(absent=absent)
    return Measurement(
        turns=tuple(answer[what] for answer in told),
        peak_rss=median_low(answer["peak_rss"] for answer in told),
    )


def _start(variant: Variant, environment: Mapping[str, str]) -> dict[str, Any]:
    """One process's answer; when it had it, counted from here."""
    began = perf_counter()
    done = subprocess.run(
        variant.command, stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    answer["answered"] = answer["at"] - began
    return answer
