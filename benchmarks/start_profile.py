"""Where a start's milliseconds go, ort_lite's beside the floor's: `start_profile.py [MODEL ...]`.

Whole processes in turns. The floor is floor.py's program in bare Python with a digest; what
ort_lite takes more is told step by step. The modules that it imports before OpenVINO may have the
payload are imported once more by processes that do nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from contexts import prepare
from engines import OURS, RAW
from floor import FLOORS
from report import text_table, write_json
from samples import Sample, ask, make_sample
from starts import (
    INTERPRETER,
    NUMPY,
    SESSION,
    answer_once,
    measure_starts,
    module_variant,
    written_inputs,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from measure import Measurement, Variant

TURNS = 9
MODELS = ("squeezenet_rw", "resnet50_rw")
PROGRAMS = {
    "numpy first": ("C API, numpy first, digest", NUMPY),
    "numpy meanwhile": ("C API, digest, numpy meanwhile", SESSION),
}
"""By what is imported first: the floor, and what profiled_start.py is told."""

STEPS = (INTERPRETER, "numpy", "before", "import", "after", "feed", "run")
PARTS = ("python", "packages", "ours", "digest")
COLUMNS = ("model", "program", "answer", *STEPS, *PARTS, "other")
LEGEND = """
Milliseconds, medians; more: medians of the differences in a turn. The steps make up the answer:
the interpreter until a program's first line; numpy, where it is imported first; what comes before
OpenVINO gets the payload; its import of it; what comes after, until the session is there; reading
the inputs; the first run.
Of what comes before: importing as many modules in a process that does nothing else, Python's own,
other packages' and ours (the floor's ctypes, mmap and blake3 are not told apart); the wait for the
digest; and other, the rest: the model read, the device opened, and waiting for OpenVINO's
libraries, which load meanwhile and hold up imports.
"""


def main() -> int:
    """Measure and print."""
    asked = ask(__doc__, TURNS, default=MODELS)
    results: dict[str, Mapping[str, Measurement]] = {}
    rows, counts = [], []
    for name in asked.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            sample = make_sample(name, Path(folder))
            variants, modules = programs(sample)
            results[name] = measure_starts(variants, asked.turns, name)
        rows += rows_of(name, results[name])
        counts += [f"{name}, {first}: {n} modules before\n" for first, n in modules.items()]
        if asked.json is not None:
            write_json(asked.json, results)
    sys.stdout.write(text_table(COLUMNS, rows) + LEGEND + "".join(counts))
    return 0


def programs(sample: Sample) -> tuple[list[Variant], dict[str, int]]:
    """What is started in turns, and how many modules ort_lite imports before the vendor's import.

    Raises:
        SystemExit: An engine takes the model not, or not as a whole.
    """
    context, blob = (prepare(engine, sample)["external"] for engine in (OURS, RAW))
    if isinstance(context, str) or isinstance(blob, str):
        raise SystemExit(f"{sample.name}: {context} {blob}")
    inputs = written_inputs(sample)
    variants, counts = [], {}
    for program, (floor, first) in PROGRAMS.items():
        ours = module_variant(_ours(program), "profiled_start", str(context), first, *inputs)
        answer_once(ours)  # compiles what has no bytecode yet, which imports modules, too
        modules = answer_once(ours)["modules"]
        listed = sample.feed.with_name(f"{first}.txt")
        listed.write_text("\n".join(modules), encoding="utf-8")
        counts[program] = len(modules)
        variants += [
            ours,
            module_variant(floor, "floor_start", str(blob), *FLOORS[floor], *inputs),
            module_variant(_imports(program), "module_imports", first, str(listed)),
        ]
    return variants, counts


def rows_of(model: str, found: Mapping[str, Measurement]) -> list[tuple[str, ...]]:
    """For each program the floor, ort_lite, and what that takes more."""
    rows = []
    for program, (floor, _) in PROGRAMS.items():
        least, ours = (
            {s: _turns(found, v, s) for s in ("", *STEPS)} for v in (floor, _ours(program))
        )
        more = {s: [b - a for a, b in zip(least[s], ours[s], strict=True)] for s in ours}
        parts = {s: _turns(found, _imports(program), s) for s in PARTS[:-1]}
        parts[PARTS[-1]] = _turns(found, _ours(program), PARTS[-1])
        known = [sum(turn) for turn in zip(*parts.values(), strict=True)]
        other = [a - b for a, b in zip(ours["before"], known, strict=True)]
        blank = ("",) * (len(PARTS) + 1)
        rows += [
            (model, floor, *map(_shown, least.values()), *blank),
            (
                model,
                _ours(program),
                *map(_shown, ours.values()),
                *map(_shown, parts.values()),
                _shown(other),
            ),
            (model, "more", *map(_shown, more.values()), *blank),
        ]
    return rows


def _ours(program: str) -> str:
    return f"{OURS}, {program}"


def _imports(program: str) -> str:
    return f"imports, {program}"


def _turns(found: Mapping[str, Measurement], variant: str, step: str) -> tuple[float, ...]:
    return found[f"{variant} {step}".rstrip()].turns


def _shown(seconds: tuple[float, ...] | list[float]) -> str:
    return f"{median(seconds) * 1000:.1f}"


if __name__ == "__main__":
    sys.exit(main())
