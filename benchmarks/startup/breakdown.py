"""Where a start's milliseconds go, in ort_lite and in the floor: `breakdown.py [MODEL ...]`.

Whole processes in turns. The floor is floor.py's program in bare Python with a digest; what
ort_lite takes more is shown step by step. The modules that it imports before OpenVINO may have the
payload are imported once more by processes that do nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.harness.conditions import conditions
from benchmarks.harness.contexts import prepare
from benchmarks.harness.engines import OURS, RAW
from benchmarks.harness.process_turns import (
    INTERPRETER,
    NUMPY,
    SESSION,
    answer_once,
    measure_starts,
    module_variant,
    write_inputs,
)
from benchmarks.harness.report import text_table, write_json
from benchmarks.harness.samples import Sample, ask, make_sample
from benchmarks.startup.floor import FLOORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.harness.measure import Measurement, Variant

TURNS = 9
MODELS = ("squeezenet_rw", "resnet50_rw")
PROGRAMS = {
    "numpy first": ("C API, numpy first, digest", NUMPY),
    "numpy meanwhile": ("C API, digest, numpy meanwhile", SESSION),
}
"""By what is imported first: the floor, and the argument of breakdown_process.py."""

STEPS = (INTERPRETER, "numpy", "before", "import", "after", "feed", "run")
GROUPS = ("python", "packages", "ours")
COLUMNS = ("program", "answer", *STEPS, *GROUPS, "held up", "digest", "again", "other")
LEGEND = """
Milliseconds, medians; more: medians of the differences in a turn. The steps make up the answer:
the interpreter until a program's first line; numpy, where it is imported first; what comes before
OpenVINO gets the payload; its import of it; what comes after, until the session is there; reading
the inputs; the first run.
Of what comes before: importing the same modules in a process that does nothing else, Python's own,
other packages' and ours; what that takes longer where a thread loads OpenVINO meanwhile, which is
waited for; the wait for the digest; what a second session of the process takes before OpenVINO gets
the payload again, with all imports done; and other, the rest. The floor's three modules are not
told apart.
"""


def main() -> int:
    """Measure and print."""
    arguments = ask(__doc__, TURNS, default=MODELS)
    results: dict[str, Mapping[str, Measurement]] = {}
    rows, counts = [], []
    for name in arguments.models:
        with TemporaryDirectory(prefix="ort-lite-bench-") as folder:
            sample = make_sample(name, Path(folder))
            variants, modules = programs(sample)
            results[name] = measure_starts(variants, arguments.turns, name)
        rows += [(f"{name}:", *("",) * (len(COLUMNS) - 1)), *rows_of(results[name])]
        counts += [f"{name}, {first}: {n} modules before\n" for first, n in modules.items()]
        if arguments.json is not None:
            write_json(arguments.json, results)
    sys.stdout.write(conditions() + text_table(COLUMNS, rows) + LEGEND + "".join(counts))
    return 0


def programs(sample: Sample) -> tuple[list[Variant], dict[str, int]]:
    """What is started in turns, and how many modules ort_lite imports before the vendor's import.

    Raises:
        SystemExit: An engine does not take the model.
    """
    context, blob = (prepare(engine, sample)["external"] for engine in (OURS, RAW))
    if isinstance(context, str) or isinstance(blob, str):
        raise SystemExit(f"{sample.name}: {context} {blob}")
    inputs = write_inputs(sample)
    variants, counts = [], {}
    for program, (floor, first) in PROGRAMS.items():
        ours = module_variant(
            _session_variant(program), "startup.breakdown_process", str(context), first, *inputs
        )
        answer_once(ours)  # compiles what has no bytecode yet, which imports modules, too
        modules = answer_once(ours)["modules"]
        listed = sample.feed.with_name(f"{first}.txt")
        listed.write_text("\n".join(modules), encoding="utf-8")
        counts[program] = len(modules)
        variants += [
            ours,
            module_variant(floor, "startup.floor_process", str(blob), *FLOORS[floor], *inputs),
            module_variant(
                _imports_alone(program), "startup.import_process", first, "-", str(listed)
            ),
            module_variant(
                _imports_overlapped(program),
                "startup.import_process",
                first,
                "libraries",
                str(listed),
            ),
        ]
    return variants, counts


def rows_of(measured: Mapping[str, Measurement]) -> list[tuple[str, ...]]:
    """For each program the floor, ort_lite with parts of what comes before, and the difference."""
    rows = []
    for program, (floor, _) in PROGRAMS.items():
        name = _session_variant(program)
        least, ours = ([_turns(measured, v, step) for step in ("", *STEPS)] for v in (floor, name))
        more = [_subtract(b, a) for a, b in zip(least, ours, strict=True)]
        blank = ("",) * (len(COLUMNS) - len(STEPS) - 2)
        rows += [
            (f"  {floor}", *map(_milliseconds_text, least), *blank),
            (
                f"  {name}",
                *map(_milliseconds_text, ours),
                *map(_milliseconds_text, _parts(measured, program)),
            ),
            ("  more", *map(_milliseconds_text, more), *blank),
        ]
    return rows


def _parts(measured: Mapping[str, Measurement], program: str) -> list[Sequence[float]]:
    """Of what comes before the vendor's import, turn by turn: the last columns."""
    alone, overlapped = _imports_alone(program), _imports_overlapped(program)
    held_up = _subtract(_turns(measured, overlapped, "modules"), _turns(measured, alone, "modules"))
    groups = [_turns(measured, alone, group) for group in GROUPS]
    before, digest, again = (
        _turns(measured, _session_variant(program), s) for s in ("before", "digest", "again")
    )
    other = _subtract(
        _subtract(_subtract(before, _turns(measured, overlapped, "modules")), digest), again
    )
    return [*groups, held_up, digest, again, other]


def _subtract(left: Sequence[float], right: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(left, right, strict=True)]


def _session_variant(program: str) -> str:
    return f"{OURS}, {program}"


def _imports_alone(program: str) -> str:
    return f"imports alone, {program}"


def _imports_overlapped(program: str) -> str:
    return f"imports beside libraries, {program}"


def _turns(measured: Mapping[str, Measurement], variant: str, step: str) -> Sequence[float]:
    return measured[f"{variant} {step}".rstrip()].turns


def _milliseconds_text(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1000:.1f}"


if __name__ == "__main__":
    sys.exit(main())
