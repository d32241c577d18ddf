"""Whole processes in turns, each from its start to its first answer.

In each turn one process of each variant is started after the other, in an order drawn anew and
after a rest, as measure.py does it. A process is one of first_answer_process.py, or of another
module that answers as that does.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from statistics import median_low
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.installed import installed_python
from benchmarks.harness.measure import REST, Measurement, Variant
from benchmarks.harness.samples import ROOT, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOAD = "load"
"""After a variant's name: what opening it once more in the same process took."""

OPENED_FIRST = "external, opened first"
"""What a variant of an external context is called that does SESSION first."""

INTERPRETER = "interpreter"
"""As LOAD, of every variant: what the interpreter took until the program's first line."""

ABSENT = "absent"
"""In the answer of a process whose engine cannot run the model: why."""

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Not for these processes: pip compiles what it installs, but not a checkout, which would then be
compiled anew in every process (100 ms)."""

NUMPY, SESSION = "numpy", "session"
"""What a process does first; see first_answer_process.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a process of first_answer_process.py opens its model.

    Attributes:
        cache: The folder of the engine's own cache, if it is to use that.
        first: NUMPY or SESSION.
        loads: How often; the second time is what LOAD is.
    """

    cache: Path | None = None
    first: str = NUMPY
    loads: int = 2


WITHOUT_CACHE = Start()


def start_variant(
    engine: str, kind: str, sample: Sample, made: Path | str, how: Start = WITHOUT_CACHE
) -> Variant:
    """A process that opens `made` with `engine`, and runs it on the sample's inputs.

    Args:
        engine: One of engine_programs.PROGRAMS.
        kind: What `made` is; with the engine the variant's name.
        sample: For its inputs.
        made: A model or context; or why there is none.
        how: What it does besides.
    """
    name = f"{engine} {kind}"
    if isinstance(made, str):
        return Variant(name, (), absent=made)
    arguments = (engine, str(made), str(how.cache or ""), how.first, str(how.loads))
    module = "startup.first_answer_process"
    return module_variant(name, module, *arguments, *write_inputs(sample))


def module_variant(name: str, module: str, *arguments: str) -> Variant:
    """A process of a module of benchmarks/; its Python is `measure_starts`'."""
    return Variant(
        name, (str(ROOT / "benchmarks/harness/launch.py"), f"benchmarks.{module}", *arguments)
    )


def write_inputs(sample: Sample) -> tuple[str, ...]:
    """The sample's inputs, each its name and a file of its own next to those of all."""
    arguments = []
    with np.load(sample.feed) as arrays:
        for i, name in enumerate(arrays.files):
            path = sample.feed.with_name(f"{sample.feed.stem}_{i}.npy")
            np.save(path, arrays[name])
            arguments += [name, str(path)]
    return tuple(arguments)


def measure_starts(
    variants: Sequence[Variant],
    turns: int,
    label: str,
    environment: Mapping[str, str] | None = None,
    *,
    survive: bool = False,
) -> dict[str, Measurement]:
    """Start each variant once to fill caches, then once in each turn.

    Args:
        variants: From `start_variant`.
        turns: How many.
        label: What is measured, for lines of progress on stderr.
        environment: Variables besides those that are set.
        survive: Whether a variant whose process dies is absent, instead of an error.

    Returns:
        By name the first answer, counted from before the process was started; by name and what
        the process calls a step of its own, such as LOAD, what that took. All have the process's
        peak memory.

    Raises:
        subprocess.CalledProcessError: A process failed, and `survive` is false.
    """
    surroundings = _surroundings(environment or {})
    absent = {variant.name: variant.absent for variant in variants}
    present = [variant for variant in variants if not variant.absent]
    answers: dict[str, list[dict[str, Any]]] = {variant.name: [] for variant in present}
    order = random.Random(0)  # the same orders in every run
    with installed_python() as python:
        for turn in range(turns + 1):
            for variant in order.sample(present, len(present)):
                time.sleep(REST)
                command = (str(python), *variant.command)
                answer = _answer(command, surroundings, survive=survive)
                if ABSENT in answer:
                    absent[variant.name] = answer[ABSENT]
                elif turn:
                    answers[variant.name].append(answer)
            present = [variant for variant in present if not absent[variant.name]]
            sys.stderr.write(f"{label}: {turn} of {turns} turns\n")
    measured = {}
    for variant in variants:
        turn_results = answers.get(variant.name, [])
        for step in ("", *(turn_results[0]["steps"] if turn_results else (INTERPRETER, LOAD))):
            measured[f"{variant.name} {step}".rstrip()] = _measurement(
                turn_results, step, absent[variant.name]
            )
    return measured


def answer_once(variant: Variant) -> dict[str, Any]:
    """All measurements that one process of a variant reported.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    with installed_python() as python:
        return _answer((str(python), *variant.command), _surroundings({}))


def _surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != NO_BYTECODE} | dict(environment)


def _measurement(turn_results: Sequence[dict[str, Any]], step: str, absent: str) -> Measurement:
    if absent:
        return Measurement(absent=absent)
    return Measurement(
        turns=tuple(
            answer["steps"][step] if step else answer["answered"] for answer in turn_results
        ),
        peak_rss=median_low(answer["peak_rss"] for answer in turn_results),
    )


def _answer(
    command: Sequence[str], environment: Mapping[str, str], *, survive: bool = False
) -> dict[str, Any]:
    """One process's answer; when it had it, counted from here."""
    began = perf_counter()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=not survive, env=environment
    )
    if done.returncode:
        return {ABSENT: f"its process ended with {done.returncode}"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if ABSENT in answer:
        return answer
    answer["answered"] = answer["at"] - began
    answer["steps"][INTERPRETER] = answer["started"] - began
    return answer
