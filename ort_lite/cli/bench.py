"""`ort-lite bench`: measures the time to compile, reload and run a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ctx_formats.temporary_files import temporary_folder
from ort_lite.cli.device_lines import devices_of, ran_on
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import (
    json_option,
    print_json,
    print_line,
    print_table,
    progress,
    time_text,
)
from ort_lite.cli.peers import open_peer, run_named
from ort_lite.cli.run_inputs import FeedChoice, make_feed, parse_shapes
from ort_lite.cli.session_choice import open_session, session_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.planning.explain import SessionReport

RELOAD = "session from context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of one phase.

    Attributes:
        p90: The 90th percentile.
    """

    phase: str
    median: float
    p90: float
    best: float
    count: int


@click.command(short_help="Measure compile, reload and run times.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(*("-n", "--runs"), default=50, show_default=True, help="Number of measured runs.")
@click.option("--loads", default=3, show_default=True, help="Number of sessions of each kind.")
@click.option("--warmup", default=5, show_default=True, help="Number of runs before measuring.")
@click.option(
    *("-i", "--inputs"), multiple=True, metavar="[NAME=]FILE",
    help="Input file, as for ort-lite run. Default: random.",
)  # fmt: skip
@click.option("--shape", "shapes", multiple=True, metavar="INPUT=1x3x224x224",
              help="Shape of a random input.")  # fmt: skip
@click.option("--against", type=click.Choice(["onnxruntime", "cpu"]), help="Also measure this one.")
@click.option("--startup", is_flag=True, help="Measure whole processes, phase by phase.")
@session_choice
@json_option
def bench(  # noqa: PLR0913 - one parameter an option
    model: Path,
    *,
    runs: int,
    loads: int,
    warmup: int,
    inputs: Sequence[str],
    shapes: Sequence[str],
    against: str | None,
    startup: bool,
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    """Measure MODEL: session, context export, session from context, first run, run.

    Measures in one process and prints medians. With --against, runs alternate between the two, so
    that a busy machine slows both.

    With --startup, measures --loads processes, each from its start to its first output.
    """
    if min(runs, loads) < 1 or warmup < 0:
        raise click.UsageError("--runs and --loads must be at least 1, --warmup at least 0")
    feed_choice = FeedChoice(files=tuple(inputs), shapes=parse_shapes(shapes))
    if startup:
        from ort_lite.cli.startup import bench_startup

        return bench_startup(model, choice, loads, feed_choice, as_json=as_json)
    timings = [*_measure_loads(model, choice, loads)]
    with open_session(model, choice) as session:
        feed = make_feed(session, feed_choice)
        runners: dict[str, Callable[[], object]] = {
            "run": lambda: session.run(None, feed),
        }
        if against is not None:
            peer = open_peer(against, model)
            runners[f"run, {against}"] = lambda: run_named(peer, feed)
        with progress(f"running {model.name}"):
            timings += _measure_runs(runners, runs, warmup)
        report = session.explain()
    if against is not None:
        timings += _measure_peer_loads(against, model, loads)
    _show(model, report, timings, as_json=as_json)
    return ExitCode.OK


def _measure_loads(model: Path, choice: SessionChoice, loads: int) -> Sequence[Timing]:
    plain = _times(loads, lambda: open_session(model, choice).close())
    timings = [_summarize("session from model", plain)]
    with temporary_folder("ort-lite-bench-") as folder:
        context = Path(folder) / "bench_ctx.onnx"
        entries = {"ep.context_enable": "1", "ep.context_file_path": str(context)}
        if _has_context(model):
            return timings
        export = _times(1, lambda: open_session(model, choice, entries).close())
        timings.append(_summarize("session and context written", export))
        if context.exists():
            reload = _times(loads, lambda: open_session(context, choice).close())
            timings.append(_summarize(RELOAD, reload))
    return timings


def _has_context(model: Path) -> bool:
    from ort_lite.cli.model_facts import read_facts

    return bool(read_facts(model).contexts)


def _measure_runs(
    runners: Mapping[str, Callable[[], object]], runs: int, warmup: int
) -> Sequence[Timing]:
    timings = [_summarize(f"first {name}", _times(1, call)) for name, call in runners.items()]
    for call in runners.values():
        _times(warmup, call)
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(runs):
        for name, call in runners.items():
            times[name] += _times(1, call)
    return [*timings, *(_summarize(name, seconds) for name, seconds in times.items())]


def _measure_peer_loads(peer: str, model: Path, loads: int) -> Sequence[Timing]:
    return [
        _summarize(f"session from model, {peer}", _times(loads, lambda: open_peer(peer, model)))
    ]


def _times(count: int, call: Callable[[], object]) -> list[float]:
    seconds = []
    for _ in range(count):
        began = perf_counter()
        call()
        seconds.append(perf_counter() - began)
    return seconds


def _summarize(phase: str, seconds: Sequence[float]) -> Timing:
    many = len(seconds) > 1
    return Timing(
        phase=phase,
        median=median(seconds),
        p90=quantiles(seconds, n=10, method="inclusive")[-1] if many else seconds[0],
        best=min(seconds),
        count=len(seconds),
    )


def _show(model: Path, report: SessionReport, timings: Sequence[Timing], *, as_json: bool) -> None:
    if as_json:
        nodes, devices = report.node_counts(), devices_of(report)
        phases = [_json(timing) for timing in timings]
        print_json({"model": str(model), "nodes": nodes, "devices": devices, "phases": phases})
        return
    rows = [
        (t.phase, time_text(t.median), time_text(t.p90), time_text(t.best), str(t.count))
        for t in timings
    ]
    columns = ("phase", "median", "p90", "best", "count")
    print_table(columns, rows, right=columns[1:])
    print_line(ran_on(report))


def _json(timing: Timing) -> dict[str, Any]:
    return {
        "phase": timing.phase,
        "count": timing.count,
        **{f"{key}_s": round(getattr(timing, key), 6) for key in ("median", "p90", "best")},
    }
