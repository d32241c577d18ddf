"""`ort-lite run`: runs a model on given or random inputs; can compare the outputs."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from ort_lite.cli.completion import complete_peer
from ort_lite.cli.device_lines import devices_of, ran_on
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import (
    finite,
    json_option,
    print_json,
    print_line,
    print_note,
    print_table,
    progress,
    size_text,
    time_text,
)
from ort_lite.cli.path_type import PATH, NamedPath
from ort_lite.cli.pixel_form import pixel_options
from ort_lite.cli.run_inputs import FeedChoice, explain_guesses, make_feed, parse_shapes
from ort_lite.cli.session_choice import open_session, session_choice
from ort_lite.context.quote_argument import quote_argument
from ort_lite.status import NotImplemented as NotImplementedByAny

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.cli.comparison import Difference
    from ort_lite.cli.pixel_form import PixelForm
    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.planning.explain import SessionReport
    from ort_lite.planning.memory_report import MemoryReport

TOLERANCE = 1e-4
MODEL_SUFFIXES = (".onnx", ".ort")


@click.command(short_help="Run a model and compare its outputs.")
@click.argument("paths", nargs=-1, metavar="MODEL [INPUT]...", type=NamedPath())
@click.option(
    *("-m", "--model", "named_model"), type=PATH,
    help="The model; all arguments are then inputs.",
)  # fmt: skip
@click.option(
    *("-i", "--inputs"), "more", multiple=True, metavar="[NAME=]FILE", type=NamedPath(),
    help="An input file: .npz or .json with arrays by name, .npy, or an image. Default: random.",
)  # fmt: skip
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0, show_default=True,
    help="Seed of random inputs.",
)  # fmt: skip
@click.option(
    "--shape", "shapes", multiple=True, metavar="INPUT=1x3x224x224",
    help="Shape of a random input. Default: the model's, with dynamic sizes guessed.",
)  # fmt: skip
@pixel_options
@click.option("--labels", type=PATH,
              help="Class names, one per line or JSON. Default: the model's metadata.")  # fmt: skip
@click.option(
    "--top", type=click.IntRange(min=0), metavar="K",
    help="Print the K largest values of each vector. Default: 5 if it has labels.",
)  # fmt: skip
@click.option(
    "--compare", metavar="onnxruntime|cpu|FILE.npz", shell_complete=complete_peer,
    help="Compare the outputs with onnxruntime's CPU provider, ort_lite's CPU provider, or a "
    "file.",
)  # fmt: skip
@click.option(
    "--reference", type=PATH,
    help="The plain model that --compare runs. Default: MODEL.",
)  # fmt: skip
@click.option(
    "--tolerance", default=TOLERANCE, show_default=True,
    help="Largest difference allowed, relative to the output's largest magnitude.",
)  # fmt: skip
@click.option(*("-o", "--output"), type=PATH, help="Write outputs as .npz.")
@click.option("--memory", is_flag=True,
              help="Show each device's memory: weights, arena, bound tensors, peak.")  # fmt: skip
@session_choice
@json_option
def run(  # noqa: PLR0913 - one parameter an option
    paths: Sequence[str],
    *,
    named_model: Path | None,
    more: Sequence[str],
    seed: int,
    shapes: Sequence[str],
    form: PixelForm,
    labels: Path | None,
    top: int | None,
    compare: str | None,
    reference: Path | None,
    tolerance: float,
    output: Path | None,
    memory: bool,
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    """Run MODEL once; exit code 1 if a requested comparison fails.

    \b
    ort-lite run model.onnx
    ort-lite run model.onnx photo.jpg --labels classes.txt
    ort-lite run photo.jpg -m model.onnx --device npu
    """  # noqa: D301 - click reads \b as the mark of lines to keep
    from ort_lite.cli.arrays import save_arrays
    from ort_lite.cli.comparison import compare_outputs
    from ort_lite.cli.format_outputs import labels_of, read_labels, value_lines
    from ort_lite.cli.peers import run_named

    model, files = _model_and_inputs(paths, named_model)
    _check_comparison(compare, reference)
    if output is not None and output.suffix != ".npz":
        raise click.UsageError(f"-o {output}: expected a .npz file")
    names = read_labels(labels) if labels is not None else None
    began = perf_counter()
    with open_session(model, choice) as session:
        opened = perf_counter()
        metadata = session.get_modelmeta().custom_metadata_map
        feed_choice = FeedChoice(
            files=(*files, *more), shapes=parse_shapes(shapes), seed=seed, form=form
        )
        feed = make_feed(session, feed_choice)
        ready = perf_counter()
        with progress(f"running {model.name}"), explain_guesses(session, feed_choice):
            outputs = run_named(session, feed)
        seconds = {"load": round(opened - began, 6), "run": round(perf_counter() - ready, 6)}
        report = session.explain()
        used = session.memory_report() if memory else None
    if output is not None:
        save_arrays(output, outputs)
    differences: tuple[Difference, ...] | None = None
    if compare is not None:
        with progress(f"running {compare}"):
            expected = _reference_outputs(compare, reference or model, feed)
        differences = compare_outputs(outputs, expected)
    ok = all(d.relative <= tolerance for d in differences or ())
    if as_json:
        rest = {"memory": used.to_json()} if used is not None else {}
        _print_json(model, report, outputs, differences, {**rest, "seconds": seconds, "ok": ok})
    else:
        for name, value in outputs.items():
            for line in value_lines(name, value, names or labels_of(metadata), top):
                print_line(line)
        print_line(ran_on(report))
        print_line(f"loaded in {time_text(seconds['load'])}, first run {time_text(seconds['run'])}")
        _print_memory(used)
        _print_differences(differences, compare)
    return ExitCode.OK if ok else ExitCode.DIFFERENT


def _model_and_inputs(paths: Sequence[str], named: Path | None) -> tuple[Path, Sequence[str]]:
    """MODEL and the inputs among the arguments."""
    if named is not None:
        return named, paths
    if not paths:
        raise click.UsageError("Missing argument 'MODEL'.")
    models = [text for text in paths[1:] if text.endswith(MODEL_SUFFIXES)]
    if models and not paths[0].endswith(MODEL_SUFFIXES):
        others = [text for text in paths if text != models[0]]
        command = " ".join(("ort-lite run", *map(quote_argument, (models[0], *others))))
        raise click.UsageError(f"{paths[0]} is not a model; name the model first: {command}")
    return Path(paths[0]), paths[1:]


def _check_comparison(compare: str | None, reference: Path | None) -> None:
    """Check --compare and --reference before anything runs.

    Raises:
        UsageError: One has no meaning.
    """
    from ort_lite.cli.peers import PEERS

    if compare is not None and compare not in PEERS and not compare.endswith(".npz"):
        raise click.UsageError(f"--compare {compare}: expected {', '.join(PEERS)} or a .npz file")
    if reference is not None and compare not in PEERS:
        raise click.UsageError(
            f"--reference {reference} is for --compare {' or --compare '.join(PEERS)}"
        )


def _reference_outputs(compare: str, model: Path, feed: Mapping[str, object]) -> dict[str, object]:
    from ort_lite.cli.arrays import load_arrays
    from ort_lite.cli.peers import PEERS, open_peer, run_named

    if compare in PEERS:
        try:
            return run_named(open_peer(compare, model), feed)
        except NotImplementedByAny as exc:
            if not exc.message.startswith("EPContext node"):
                raise
            raise CommandError(
                ExitCode.NO_HARDWARE,
                f"{model} is compiled, and {compare} cannot run compiled nodes",
                hint=f"--reference {quote_argument(_source_of(model))} compares with the plain "
                "model",
            ) from exc
    return {**load_arrays(Path(compare))}


def _source_of(model: Path) -> str:
    """Name of the model that `model` was compiled from, or a placeholder."""
    from ort_lite.cli.model_facts import read_facts

    return next(
        (c.onnx_model_filename for c in read_facts(model).contexts if c.onnx_model_filename),
        "MODEL",
    )


def _print_differences(differences: Sequence[Difference] | None, compare: str | None) -> None:
    if differences is None:
        return
    rows = [
        (
            d.output,
            "identical" if d.identical else f"{d.absolute:.2e}",
            f"{d.relative:.2e}",
            d.problem,
        )
        for d in differences
    ]
    columns = ("output", f"largest difference from {compare}", "relative", "problem")
    print_table(columns, rows, right=columns[1:3])


def _print_memory(memory: MemoryReport | None) -> None:
    if memory is None:
        return
    columns = ("provider", "weights", "arena", "bound tensors", "peak")
    rows = [
        (one.provider, *map(_size, (one.weights, one.arena, one.bound_tensors, one.peak)))
        for one in memory.devices
    ]
    print_table(columns, rows, right=columns[1:])
    for one in memory.devices:
        for note in one.notes:
            print_note(note)


def _size(size: int | None) -> str:
    return "not known" if size is None else size_text(size)


def _print_json(
    model: Path,
    report: SessionReport,
    outputs: Mapping[str, object],
    differences: Sequence[Difference] | None,
    rest: Mapping[str, object],
) -> None:
    from ort_lite.cli.format_outputs import type_text

    compared = [
        {
            "output": d.output,
            "absolute": finite(d.absolute),
            "relative": finite(d.relative),
            "identical": d.identical,
            "problem": d.problem,
        }
        for d in differences or ()
    ]
    print_json(
        {
            "model": str(model),
            "nodes": report.node_counts(),
            "devices": devices_of(report),
            "outputs": {name: type_text(value) for name, value in outputs.items()},
            "comparison": compared if differences is not None else None,
            **rest,
        }
    )
