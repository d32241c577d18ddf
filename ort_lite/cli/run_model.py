"""`ort-lite run`: a model on given or random inputs, compared with a peer if asked to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import finite, json_option, print_json, print_line, print_table, progress
from ort_lite.cli.session_choice import key_value, open_session, session_choice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.cli.comparison import Difference
    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.session import InferenceSession

TOLERANCE = 1e-4


@click.command(short_help="Run a model, and compare its outputs.")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    *("-i", "--inputs"), type=click.Path(path_type=Path),
    help="Inputs by name, a .npz file. Default: random ones.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Of random inputs.")
@click.option(
    "--shape", "shapes", multiple=True, metavar="INPUT=1x3x224x224",
    help="Shape of a random input. Dimensions that the model leaves open are 1 without it.",
)  # fmt: skip
@click.option(
    "--compare", metavar="onnxruntime|cpu|FILE.npz",
    help="Compare the outputs with those of onnxruntime's CPU provider, of ort_lite's, or of "
    "a file.",
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
    model: Path,
    *,
    inputs: Path | None,
    seed: int,
    shapes: Sequence[str],
    compare: str | None,
    reference: Path | None,
    tolerance: float,
    output: Path | None,
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    """Run MODEL once; exit code 1 if a comparison was asked for and fails."""
    from ort_lite.cli.arrays import save_arrays
    from ort_lite.cli.comparison import compare_outputs
    from ort_lite.cli.peers import run_named

    with open_session(model, choice) as session:
        feed = make_feed(session, inputs, parse_shapes(shapes), seed)
        with progress(f"running {model.name}"):
            found = run_named(session, feed)
        nodes = session.explain().node_counts()
    if output is not None:
        save_arrays(output, found)
    differences: tuple[Difference, ...] | None = None
    if compare is not None:
        with progress(f"running {compare}"):
            expected = _expected(compare, reference or model, feed)
        differences = compare_outputs(found, expected)
    ok = all(d.relative <= tolerance for d in differences or ())
    if as_json:
        _print_json(model, nodes, found, differences, ok=ok)
    else:
        _print(nodes, found, differences, compare)
    return ExitCode.OK if ok else ExitCode.DIFFERENT


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


def make_feed(
    session: InferenceSession,
    file: Path | None,
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
) -> dict[str, object]:
    """Inputs out of a file, or random ones."""
    from ort_lite.cli.arrays import load_feed, random_feed

    inputs = session.get_inputs()
    if file is None:
        return {**random_feed(inputs, shapes, seed)}
    if shapes:
        raise click.UsageError("--shape is for random inputs, not for those of a file")
    feed = load_feed(file, inputs)
    missing = [arg.name for arg in inputs if arg.name not in feed]
    if missing:
        raise CommandError(
            ExitCode.USAGE,
            f"{file} has no array for input {', '.join(missing)}; it has {', '.join(feed)}",
        )
    return {**feed}


def _expected(compare: str, model: Path, feed: Mapping[str, object]) -> dict[str, object]:
    from ort_lite.cli.arrays import load_arrays
    from ort_lite.cli.peers import PEERS, open_peer, run_named

    if compare in PEERS:
        return run_named(open_peer(compare, model), feed)
    if not compare.endswith(".npz"):
        raise CommandError(
            ExitCode.USAGE, f"--compare {compare}: expected {', '.join(PEERS)} or a .npz file"
        )
    return {**load_arrays(Path(compare))}


def _print(
    nodes: Mapping[str, int],
    found: Mapping[str, object],
    differences: Sequence[Difference] | None,
    compare: str | None,
) -> None:
    for name, value in found.items():
        print_line(f"{name}: {_described(value)}")
    print_line("ran on: " + ", ".join(f"{ep} {n} nodes" for ep, n in nodes.items()))
    if differences is not None:
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
    nodes: Mapping[str, int],
    found: Mapping[str, object],
    differences: Sequence[Difference] | None,
    *,
    ok: bool,
) -> None:
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
            "nodes": nodes,
            "outputs": {name: _described(value) for name, value in found.items()},
            "comparison": compared if differences is not None else None,
            "ok": ok,
        }
    )


def _described(value: object) -> str:
    """Type and shape of an output."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None:
        return (
            f"{type(value).__name__} of {len(value)}" if hasattr(value, "__len__") else str(value)
        )
    return f"{dtype}{list(shape)}"
