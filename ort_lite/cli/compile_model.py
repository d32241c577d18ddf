"""`ort-lite compile`: writes a model as a context model, which reloads fast."""

from __future__ import annotations

import dataclasses
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ctx_formats.temporary_files import temporary_folder
from ort_lite.cli.compile_shapes import with_shapes
from ort_lite.cli.context_files import (
    default_context_path,
    files_json,
    list_files,
    print_files,
)
from ort_lite.cli.device_choice import for_npu_platform
from ort_lite.cli.device_lines import devices_of, summarize_compiled
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import (
    count_text,
    json_option,
    print_json,
    print_line,
    time_text,
)
from ort_lite.cli.path_type import PATH
from ort_lite.cli.session_choice import open_session, require_devices, session_choice
from ort_lite.cli.signing import passphrase_option, signing_entries
from ort_lite.context.quote_argument import quote_argument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ort_lite.cli.session_choice import SessionChoice
    from ort_lite.planning.explain import SessionReport


@click.command("compile", short_help="Compile a model to a context model.")
@click.argument("model", type=PATH)
@click.option(
    *("-o", "--output"),
    type=PATH,
    help="Path of the context model. Default: MODEL with _ctx before its suffix.",
)
@click.option(
    "--embed/--no-embed",
    default=False,
    help="Store payloads inside the model instead of in a file next to it.",
)
@click.option("--force", is_flag=True, help="Replace an existing context model.")
@click.option(
    "--npu-platform", "platforms", default="", metavar="4000[,5010,...]",
    help="Compile for these Intel NPUs, present or not; writes one context model for each. "
    "3720 Meteor Lake or Arrow Lake, 4000 Lunar Lake, 5010 Panther Lake, 5020 Wildcat Lake.",
)  # fmt: skip
@click.option(
    "--shapes", "shape_sets", multiple=True, metavar="INPUT=1x3x320x320,...",
    help="Shapes to compile a model with free dimensions for, on OpenCL; others are compiled when "
    "a run has them.",
)  # fmt: skip
@click.option(
    "--sign", "key", type=PATH, metavar="KEY",
    help="Sign the context model with this private key.",
)  # fmt: skip
@passphrase_option
@session_choice
@json_option
def compile_model(  # noqa: PLR0913 - one parameter an option
    model: Path,
    *,
    output: Path | None,
    embed: bool,
    force: bool,
    platforms: str,
    shape_sets: tuple[str, ...],
    key: Path | None,
    passphrase_file: Path | None,
    choice: SessionChoice,
    as_json: bool,
) -> ExitCode:
    """Compile MODEL and write it as a context model.

    An existing file is replaced only with --force, once the new one is complete.
    """
    signing = signing_entries(key, passphrase_file)
    choice = dataclasses.replace(choice, config={**choice.config, **signing})
    _refuse_compiled(model, choice)
    choice = with_shapes(choice, model, shape_sets)
    written = []
    for target, chosen in _targets(model, output, platforms, choice):
        context = _compile(model, target, chosen, embed=embed, replace=force)
        written.append(context)
        if not as_json:
            _print(context)
    if as_json:
        contexts = [_json(model, context) for context in written]
        print_json({"model": str(model), "contexts": contexts} if platforms else contexts[0])
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class _Written:
    """A context model: its files, itself first, what its session decided, and how long it took."""

    files: list[Path]
    report: SessionReport
    seconds: float


def _targets(
    model: Path, output: Path | None, platforms: str, choice: SessionChoice
) -> list[tuple[Path, SessionChoice]]:
    """Each context model to write, with the session that compiles it.

    Raises:
        UsageError: A name or a platform is malformed.
    """
    if output is not None and not output.suffix:
        raise click.UsageError(f"-o {output}: expected the name of a file that ends in .onnx")
    if not platforms:
        return [(output or default_context_path(model), choice)]
    names = platforms.split(",")
    if not all(name.isascii() and name.isdigit() for name in names):
        raise click.UsageError(f"--npu-platform {platforms}: expected numbers such as 4000,5010")
    targets = []
    for name in dict.fromkeys(names):
        target = output or model.with_name(f"{model.stem}_npu{name}_ctx.onnx")
        if output is not None and len(names) > 1:
            target = output.with_name(f"{output.stem}_npu{name}{output.suffix}")
        providers = for_npu_platform(choice.providers, name)
        targets.append((target, dataclasses.replace(choice, providers=providers)))
    return targets


def _compile(
    model: Path, target: Path, choice: SessionChoice, *, embed: bool, replace: bool
) -> _Written:
    """Write one context model.

    Raises:
        CommandError: Nothing was compiled, or what is there cannot be replaced.
        OrtLiteError: The session fails.
    """
    if replace and target.exists() and target.samefile(model):
        raise CommandError(ExitCode.USAGE, f"{target} is the model itself; name another output")
    if target.exists() and not replace:
        require_devices(choice)  # without its device, --force would fail as well
        raise CommandError(
            ExitCode.COMPILE_FAILED,
            f"{target} exists already",
            hint="--force replaces it, -o names another file",
        )
    began = perf_counter()
    with _output_path(target, replace=replace) as place:
        entries = {
            "ep.context_enable": "1",
            "ep.context_file_path": str(place),
            "ep.context_embed_mode": "1" if embed else "0",
        }
        with open_session(model, choice, entries) as session:
            report = session.explain()
        if not place.exists():
            raise CommandError(
                ExitCode.COMPILE_FAILED,
                f"no execution provider that supports contexts compiled a node of {model}, "
                f"so {target} was not written",
                hint=f"run ort-lite explain {quote_argument(str(model))} to see why",
            )
    return _Written(list_files([target]), report, perf_counter() - began)


@contextmanager
def _output_path(target: Path, *, replace: bool) -> Iterator[Path]:
    """Path for the context model: `target`, or a temporary name next to it until it is complete.

    Raises:
        CommandError: What is there cannot be replaced.
    """
    if not (replace and target.exists()):
        yield target
        return
    try:
        with temporary_folder(f".{target.name}.", target.parent) as folder:
            place = Path(folder) / target.name
            yield place
            # The model last: until then the old one has a payload that it refuses.
            for path in sorted(Path(folder).iterdir(), key=place.__eq__):
                path.replace(target.with_name(path.name))
    except OSError as exc:
        raise CommandError(ExitCode.COMPILE_FAILED, f"{target} cannot be replaced: {exc}") from exc


def _refuse_compiled(model: Path, choice: SessionChoice) -> None:
    """Refuse a context model, which a session would load and have nothing to write.

    Raises:
        CommandError: `model` is compiled already.
    """
    from ort_lite.compiler import refuse_compiled
    from ort_lite.model.loader import load
    from ort_lite.status import InvalidGraph

    with closing(load(model, choice.session_options())) as loaded:
        try:
            refuse_compiled(loaded)
        except InvalidGraph as exc:
            raise CommandError(
                ExitCode.INVALID_GRAPH,
                f"{model} is compiled already: {exc.message}",
                hint=f"run ort-lite check {quote_argument(str(model))} to see whether it may "
                "run here",
            ) from exc


def _print(context: _Written) -> None:
    print_files(context.files)
    parts = count_text(len(context.report.partitions), "partition")
    print_line(
        f"{summarize_compiled(context.report)}; {parts}; {time_text(context.seconds)} with loading"
    )


def _json(model: Path, context: _Written) -> dict[str, Any]:
    report = context.report
    return {
        "model": str(model),
        "output": str(context.files[0]),
        "files": files_json(context.files),
        "nodes": report.node_counts(),
        "devices": devices_of(report),
        "partitions": [
            {"name": p.name, "ep": p.ep, "nodes": len(p.nodes)} for p in report.partitions
        ],
        "seconds": round(context.seconds, 6),
    }
