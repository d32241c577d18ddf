"""`ort-lite run`: runs a model on given or random inputs; can compare the outputs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from ort_lite.cli.device_lines import devices_of, ran_on
from ort_lite.cli.exit_codes import CommandError, ExitCode, exit_code_of
from ort_lite.cli.output import (
    finite,
    json_option,
    print_json,
    print_line,
    print_table,
    progress,
    time_text,
)
from ort_lite.cli.pixel_form import PixelForm, pixel_options
from ort_lite.cli.session_choice import key_value, open_session, session_choice
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ort_lite.cli.comparison import Difference
    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.planning.explain import SessionReport
    from ort_lite.session import InferenceSession

TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedChoice:
    """The inputs on which a command runs a model.

    Attributes:
        files: `[NAME=]FILE`; random inputs without any.
        shapes: Of random inputs, by name.
        form: How pixels of images become numbers.
    """

    files: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    seed: int = 0
    form: PixelForm | None = None


@click.command(short_help="Run a model and compare its outputs.")
@click.argument("paths", nargs=-1, metavar="MODEL [INPUT]...")
@click.option(
    *("-m", "--model", "named_model"), type=click.Path(path_type=Path),
    help="The model; all arguments are then inputs.",
)  # fmt: skip
@click.option(
    *("-i", "--inputs"), "more", multiple=True, metavar="[NAME=]FILE",
    help="An input file: .npz or .json with arrays by name, .npy, or an image. Default: random.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Seed of random inputs.")
@click.option(
    "--shape", "shapes", multiple=True, metavar="INPUT=1x3x224x224",
    help="Shape of a random input. Default: the model's, with dynamic sizes guessed.",
)  # fmt: skip
@pixel_options
@click.option("--labels", type=click.Path(path_type=Path),
              help="Class names, one per line or JSON. Default: the model's metadata.")  # fmt: skip
@click.option(
    "--top", type=click.IntRange(min=0), metavar="K",
    help="Print the K largest values of each vector. Default: 5 if it has labels.",
)  # fmt: skip
@click.option(
    "--compare", metavar="onnxruntime|cpu|FILE.npz",
    help="Compare the outputs with onnxruntime's CPU provider, ort_lite's CPU provider, or a "
    "file.",
)  # fmt: skip
@click.option(
    "--reference", type=click.Path(path_type=Path),
    help="The plain model that --compare runs. Default: MODEL.",
)  # fmt: skip
@click.option(
    "--tolerance", default=TOLERANCE, show_default=True,
    help="Largest difference allowed, relative to the output's largest magnitude.",
)  # fmt: skip
@click.option(*("-o", "--output"), type=click.Path(path_type=Path), help="Write outputs as .npz.")
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
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    r"""Run MODEL once; exit code 1 if a requested comparison fails.

    \b
    ort-lite run model.onnx
    ort-lite run model.onnx photo.jpg --labels classes.txt
    ort-lite run photo.jpg -m model.onnx --device npu
    """
    from ort_lite.cli.arrays import save_arrays
    from ort_lite.cli.comparison import compare_outputs
    from ort_lite.cli.peers import PEERS, run_named
    from ort_lite.cli.shown_values import labels_of, read_labels, value_lines

    model, files = _model_and_inputs(paths, named_model)
    if compare is not None and compare not in PEERS and not compare.endswith(".npz"):
        raise click.UsageError(f"--compare {compare}: expected {', '.join(PEERS)} or a .npz file")
    names = read_labels(labels) if labels is not None else None
    began = perf_counter()
    with open_session(model, choice) as session:
        opened = perf_counter()
        metadata = session.get_modelmeta().custom_metadata_map
        asked = FeedChoice(files=(*files, *more), shapes=parse_shapes(shapes), seed=seed, form=form)
        feed = make_feed(session, asked)
        ready = perf_counter()
        with progress(f"running {model.name}"), _explain_guesses(session, asked):
            found = run_named(session, feed)
        seconds = {"load": opened - began, "run": perf_counter() - ready}
        report = session.explain()
    if output is not None:
        save_arrays(output, found)
    differences: tuple[Difference, ...] | None = None
    if compare is not None:
        with progress(f"running {compare}"):
            expected = _reference_outputs(compare, reference or model, feed)
        differences = compare_outputs(found, expected)
    ok = all(d.relative <= tolerance for d in differences or ())
    if as_json:
        _print_json(model, report, found, differences, seconds, ok=ok)
    else:
        for name, value in found.items():
            for line in value_lines(name, value, names or labels_of(metadata), top):
                print_line(line)
        print_line(ran_on(report))
        print_line(f"loaded in {time_text(seconds['load'])}, first run {time_text(seconds['run'])}")
        _print_differences(differences, compare)
    return ExitCode.OK if ok else ExitCode.DIFFERENT


@contextmanager
def _explain_guesses(session: InferenceSession, asked: FeedChoice) -> Iterator[None]:
    """Add to a failed run's error that its shapes were guessed.

    Raises:
        CommandError: The run failed on guessed shapes.
    """
    from ort_lite.cli.shape_guess import is_open

    try:
        yield
    except OrtLiteError as exc:
        guessed = [
            a.name for a in session.get_inputs() if is_open(a) and a.name not in asked.shapes
        ]
        if asked.files or not guessed:
            raise
        raise CommandError(
            exit_code_of(exc),
            exc.message,
            hint="dynamic sizes were guessed; name the sizes that the model expects, "
            f"for example --shape {guessed[0]}=1x3x48x320",
        ) from exc


def _model_and_inputs(paths: Sequence[str], named: Path | None) -> tuple[Path, Sequence[str]]:
    """MODEL and the inputs among the arguments."""
    if named is not None:
        return named, paths
    if not paths:
        raise click.UsageError("Missing argument 'MODEL'.")
    return Path(paths[0]), paths[1:]


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`INPUT=1x3x224x224`, several times; a scalar is `INPUT=`."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, value = key_value(text, "--shape")
        dims = value.split("x") if value else []
        if not all(dim.isascii() and dim.isdigit() for dim in dims):
            raise click.UsageError(f"--shape {text}: expected INPUT=1x3x224x224")
        found[name] = tuple(int(dim) for dim in dims)
    return found


def make_feed(session: InferenceSession, asked: FeedChoice) -> dict[str, object]:
    """Inputs out of files, or random ones.

    Raises:
        CommandError: A file cannot be read or fits no input, or an input is missing.
    """
    from ort_lite.cli.feeds import feed_of_files, guessed_feed

    inputs = session.get_inputs()
    metadata = session.get_modelmeta().custom_metadata_map
    if not asked.files:
        return {**guessed_feed(inputs, asked.shapes, asked.seed, metadata)}
    if asked.shapes:
        raise click.UsageError("--shape applies to random inputs only, not to those of a file")
    feed = feed_of_files(asked.files, inputs, metadata, asked.form or PixelForm())
    missing = [arg.name for arg in inputs if arg.name not in feed]
    if missing:
        raise CommandError(
            ExitCode.USAGE,
            f"{', '.join(asked.files)} has no array for input {', '.join(missing)}; it has "
            f"{', '.join(feed)}",
        )
    return {**feed}


def _reference_outputs(compare: str, model: Path, feed: Mapping[str, object]) -> dict[str, object]:
    from ort_lite.cli.arrays import load_arrays
    from ort_lite.cli.peers import PEERS, open_peer, run_named

    if compare in PEERS:
        return run_named(open_peer(compare, model), feed)
    return {**load_arrays(Path(compare))}


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


def _print_json(
    model: Path,
    report: SessionReport,
    found: Mapping[str, object],
    differences: Sequence[Difference] | None,
    seconds: Mapping[str, float],
    *,
    ok: bool,
) -> None:
    from ort_lite.cli.shown_values import type_text

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
            "outputs": {name: type_text(value) for name, value in found.items()},
            "seconds": {key: round(value, 6) for key, value in seconds.items()},
            "comparison": compared if differences is not None else None,
            "ok": ok,
        }
    )
