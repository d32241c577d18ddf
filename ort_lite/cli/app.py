"""The group of commands, and how their errors are reported."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import click

from ort_lite.cli.bench import bench
from ort_lite.cli.cache import cache
from ort_lite.cli.compile_model import compile_model
from ort_lite.cli.convert import convert
from ort_lite.cli.devices import devices
from ort_lite.cli.doctor import doctor
from ort_lite.cli.exit_codes import CommandError, ExitCode, exit_code_of
from ort_lite.cli.help_options import add_help_options, add_version_option
from ort_lite.cli.hw import hw
from ort_lite.cli.ignored_settings import note_variables
from ort_lite.cli.inspect_model import check, explain, inspect
from ort_lite.cli.next_steps import explain_error
from ort_lite.cli.output import escape_unencodable, print_json, print_note
from ort_lite.cli.package import package
from ort_lite.cli.run_model import run
from ort_lite.cli.share import share
from ort_lite.cli.signing import keygen, sign, verify
from ort_lite.cli.verbosity import add_verbose_option
from ort_lite.cpu_baseline import baseline_problem
from ort_lite.status import InvalidGraph, OrtLiteError
from ort_lite.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger(__name__)

EPILOG = (
    "Exit codes: 0 success, 1 comparison failed, 2 usage error, 3 hardware missing, "
    "4 INVALID_GRAPH, 5 compilation failed, 7 vendor code crashed, 130 interrupted."
)


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
def root(context: click.Context) -> None:
    """Compile ONNX models for this machine's accelerators, and reload them fast."""
    problem = baseline_problem()
    if problem and context.invoked_subcommand != doctor.name:
        raise CommandError(ExitCode.NO_HARDWARE, problem)


COMMANDS = (
    *(devices, doctor, compile_model, inspect, check, run, bench, explain, hw, cache, share),
    *(keygen, sign, verify, convert, package),
)
for command in COMMANDS:
    root.add_command(command)
add_verbose_option(root)
add_help_options(root)
add_version_option(root, VERSION)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command; every error becomes one line on stderr and an exit code."""
    as_json = "--json" in arguments
    escape_unencodable()
    note_variables(os.environ)
    try:
        result = root.main(list(arguments), prog_name="ort-lite", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as exc:
        click.echo(exc.format_message(), err=True)
        return ExitCode.USAGE
    except click.UsageError as exc:
        return _report(ExitCode.USAGE, exc.format_message(), _help(exc, arguments), as_json=as_json)
    except click.ClickException as exc:
        return _report(ExitCode.USAGE, exc.format_message(), "", as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return _report(ExitCode.INTERRUPTED, "interrupted", "", as_json=as_json)
    except CommandError as exc:
        return _report(exc.exit_code, exc.message, exc.hint, as_json=as_json)
    except OrtLiteError as exc:
        return _report_status(exc, as_json=as_json)
    return int(result) if isinstance(result, int) else ExitCode.OK


def _help(exc: click.UsageError, arguments: Sequence[str]) -> str:
    """Command that shows the help of the command that `arguments` name."""
    if exc.ctx is not None:
        return f"{exc.ctx.command_path} --help"
    # click's parser knows only the option.
    command: click.Command = root
    path = ["ort-lite"]
    for word in arguments:
        if isinstance(command, click.Group) and word in command.commands:
            command = command.commands[word]
            path.append(word)
    return f"{' '.join(path)} --help"


def _report_status(exc: OrtLiteError, *, as_json: bool) -> ExitCode:
    reason = exc.reason if isinstance(exc, InvalidGraph) else None
    hint = exc.hint if isinstance(exc, InvalidGraph) else ""
    plain, step = explain_error(exc)
    if plain:
        log.info("%s", exc.message)
    return _report(
        exit_code_of(exc),
        plain or exc.message,
        step or ("" if hint in exc.message else hint),
        as_json=as_json,
        status=exc.code.name,
        reason=str(reason or ""),
    )


def _report(
    code: ExitCode, message: str, hint: str, *, as_json: bool, status: str = "", reason: str = ""
) -> ExitCode:
    line = " ".join(message.split())
    label = f"{status}: " if status else ""
    stop = "" if line.endswith((".", "!", "?")) else "."
    # After a command, a full stop would be pasted as a part of it.
    end = "" if hint.endswith("?") or hint.startswith("ort-lite ") or ": ort-lite " in hint else "."
    print_note(f"error: {label}{line}" + (f"{stop} Hint: {hint}{end}" if hint else ""))
    if as_json:
        error = {"status": status, "reason": reason, "message": message, "hint": hint}
        print_json({"error": error, "exit_code": int(code)})
    return code
