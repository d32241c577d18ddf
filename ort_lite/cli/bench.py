"""`ort-lite bench`: measures the time to compile, reload and run a model."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from ctx_formats.temporary_files import temporary_folder
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.output import json_option, progress
from ort_lite.cli.path_type import PATH
from ort_lite.cli.peers import open_peer, run_named
from ort_lite.cli.run_inputs import FeedChoice, make_feed, parse_shapes
from ort_lite.cli.session_choice import open_session, session_choice
from ort_lite.cli.timings import Timing, show_timings, summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ort_lite.cli.session_choice import SessionChoice

RELOAD = "session from context"


@click.command(short_help="Measure compile, reload and run times.")
@click.argument("model", type=PATH)
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
@click.option(
    "--generate", metavar="N", type=click.IntRange(min=1),
    help="Measure a decoder of a language model: N new tokens, --loads times.",
)  # fmt: skip
@click.option(
    "--prompt", metavar="N", default=64, show_default=True, type=click.IntRange(min=1),
    help="Tokens of the prompt, for --generate.",
)  # fmt: skip
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
    generate: int | None,
    prompt: int,
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    """Measure MODEL: session, context export, session from context, first run, run.

    Measures in one process and prints medians. With --against, runs alternate between the two, so
    that a busy machine slows both.

    With --startup, measures --loads processes, each from its start to its first output.

    With --generate, measures the time to the first token of a prompt and to each token after it.
    """
    if min(runs, loads) < 1 or warmup < 0:
        raise click.UsageError("--runs and --loads must be at least 1, --warmup at least 0")
    feed_choice = FeedChoice(files=tuple(inputs), shapes=parse_shapes(shapes))
    if startup:
        from ort_lite.cli.startup import bench_startup

        return bench_startup(model, choice, loads, feed_choice, as_json=as_json)
    if generate is not None:
        from ort_lite.cli.generation import bench_generation

        lengths = prompt, generate
        return bench_generation(model, choice, lengths, loads, against=against, as_json=as_json)
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
    show_timings(model, report, timings, as_json=as_json)
    return ExitCode.OK


def _measure_loads(model: Path, choice: SessionChoice, loads: int) -> Sequence[Timing]:
    plain = _times(loads, lambda: open_session(model, choice).close())
    timings = [summarize("session from model", plain)]
    with temporary_folder("ort-lite-bench-") as folder:
        context = Path(folder) / "bench_ctx.onnx"
        entries = {"ep.context_enable": "1", "ep.context_file_path": str(context)}
        if _has_context(model):
            return timings
        export = _times(1, lambda: open_session(model, choice, entries).close())
        timings.append(summarize("session and context written", export))
        if context.exists():
            reload = _times(loads, lambda: open_session(context, choice).close())
            timings.append(summarize(RELOAD, reload))
    return timings


def _has_context(model: Path) -> bool:
    from ort_lite.cli.model_facts import read_facts

    return bool(read_facts(model).contexts)


def _measure_runs(
    runners: Mapping[str, Callable[[], object]], runs: int, warmup: int
) -> Sequence[Timing]:
    timings = [summarize(f"first {name}", _times(1, call)) for name, call in runners.items()]
    for call in runners.values():
        _times(warmup, call)
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(runs):
        for name, call in runners.items():
            times[name] += _times(1, call)
    return [*timings, *(summarize(name, seconds) for name, seconds in times.items())]


def _measure_peer_loads(peer: str, model: Path, loads: int) -> Sequence[Timing]:
    return [summarize(f"session from model, {peer}", _times(loads, lambda: open_peer(peer, model)))]


def _times(count: int, call: Callable[[], object]) -> list[float]:
    seconds = []
    for _ in range(count):
        began = perf_counter()
        call()
        seconds.append(perf_counter() - began)
    return seconds
