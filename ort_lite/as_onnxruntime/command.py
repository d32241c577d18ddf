"""The command `python -m ort_lite.as_onnxruntime`: this process becomes that of the program.

It is replaced (execve) by `python` with the program's own arguments and the stand-in's folder on
PYTHONPATH. So everything is as `python script.py` has it: `__main__`, sys.argv, sys.path, signals,
tracebacks, exit codes; and every Python that the program starts has the stand-in, too.

Windows replaces no process: there this one waits for the program's, and ends with its exit code.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from ort_lite.as_onnxruntime.installation import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME = "ort_lite.as_onnxruntime"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(FOLDER)))  # noqa: PTH120 - as installation.py
USAGE = f"""\
usage: python -m {NAME} [options] script.py [arguments]
       python -m {NAME} [options] -m module [arguments]
       python -m {NAME} [options] -c code [arguments]

Run a Python program with ort_lite in the place of onnxruntime.

options:
  --providers LIST   execution providers of all sessions, whatever the program asks for:
                     openvino,cpu or "openvino:device_type=GPU,precision=FP16;cpu"
                     (ORT_LITE_PROVIDERS; default: what the program asks for)
  --cache[=FOLDER]   keep compiled models and reload them (ORT_LITE_CACHE_DIR; default folder:
                     the user's, as `ort-lite cache ls` shows it)
  --report[=FILE]    say at exit which model ran where and how long: on stderr, or as a line of
                     JSON a process in FILE (ORT_LITE_REPORT; "-" is stderr)
  -h, --help         this text
"""
USAGE_ERROR = 2


class UsageError(Exception):
    """A command line that cannot be read."""


def main(arguments: Sequence[str]) -> int:
    """Become the program, or return the exit code of what went wrong before."""
    try:
        variables, program = parse(arguments)
        if program is None:
            sys.stdout.write(USAGE)
            return 0
        flags = interpreter_flags(sys.orig_argv[1:], len(sys.argv) - 1)
    except (UsageError, ValueError) as exc:
        sys.stderr.write(f"python -m {NAME}: {exc}\n")
        return USAGE_ERROR
    return start(flags, program, {**os.environ, **variables})


def parse(arguments: Sequence[str]) -> tuple[dict[str, str], list[str] | None]:
    """Variables of the environment, and the rest of the command line; None to print the usage.

    Raises:
        UsageError: An unknown option, a value that is missing, or no program.
        ValueError: The providers cannot be read, or one is not installed.
    """
    variables: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest[0]
        if not word.startswith("-") or word in ("-m", "-c", "-"):
            if word in ("-m", "-c") and len(rest) == 1:
                raise UsageError(f"argument expected for the {word} option")
            return variables, rest
        name, sign, value = rest.pop(0).partition("=")
        if name in ("-h", "--help"):
            return variables, None
        if name == "--":
            return variables, rest
        if name == "--providers" and not sign:
            if not rest:
                raise UsageError("argument expected for --providers, such as openvino,cpu")
            value = rest.pop(0)
        variables.update(_option_variable(name, value))
    raise UsageError(f"which program? Expected script.py, -m module or -c code.\n\n{USAGE}")


def interpreter_flags(original: Sequence[str], own: int) -> list[str]:
    """Options of the interpreter, such as -X dev: what comes before `-m` and this module's name.

    Args:
        original: `sys.orig_argv` without the interpreter.
        own: How many arguments at its end are this command's.

    Raises:
        UsageError: The interpreter ignores PYTHONPATH.
    """
    if sys.flags.ignore_environment:
        raise UsageError(
            "python -E and -I ignore PYTHONPATH, by which the program gets the stand-in; start "
            "without them, or call ort_lite.as_onnxruntime() at the top of the program"
        )
    head = list(original[: len(original) - own])
    if head[-1:] == [NAME] and len(head) > 1:
        option = head[-2]
        head = head[:-2]
    else:
        option = head.pop().removesuffix(NAME) if head else ""
    if not option.endswith("m"):
        return []  # started by another program, such as a debugger
    return [*head, option[:-1]] if option != "-m" else head


def start(flags: Sequence[str], program: Sequence[str], environment: dict[str, str]) -> int:
    """Replace this process by `python flags program`; on Windows, run it and give its exit code."""
    path = [FOLDER, environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else [FOLDER]
    if os.path.abspath(sys.path[0]) == ROOT:  # noqa: PTH100 - as installation.py
        path.append(ROOT)  # found in the working folder, which a script does not look into
    environment["PYTHONPATH"] = os.pathsep.join(path)
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, *flags, *program]
    run = _run if sys.platform == "win32" else _become
    return run(command, environment)


def _become(command: Sequence[str], environment: dict[str, str]) -> NoReturn:
    os.execve(sys.executable, [*command], environment)


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run a program in this one's console, where Ctrl-C is the program's to answer."""
    import signal  # noqa: PLC0415 - lazy: rare
    import subprocess  # noqa: PLC0415 - lazy: rare

    with subprocess.Popen(command, env=environment) as process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return process.wait()


def _option_variable(name: str, value: str) -> dict[str, str]:
    """The environment variable that an option sets for the stand-in."""
    if name == "--providers":
        from ort_lite.as_onnxruntime.provider_text import parse_providers  # noqa: PLC0415 - lazy: rare
        from ort_lite.as_onnxruntime.settings import PROVIDERS_VARIABLE  # noqa: PLC0415 - lazy: rare

        parse_providers(value, "--providers")
        return {PROVIDERS_VARIABLE: value}
    if name == "--cache":
        from ort_lite.context.keys import CACHE_FOLDER_VARIABLE  # noqa: PLC0415 - lazy: reload
        from ort_lite.model_cache.user_folder import user_cache_folder  # noqa: PLC0415 - lazy: reload

        return {CACHE_FOLDER_VARIABLE: os.path.abspath(value or user_cache_folder(os.environ))}  # noqa: PTH100 - as installation.py
    if name == "--report":
        from ort_lite.as_onnxruntime.settings import REPORT_VARIABLE, STDERR  # noqa: PLC0415 - lazy: rare

        if value and value != STDERR:
            value = os.path.abspath(value)  # noqa: PTH100 - as above
            try:
                with open(value, "w", encoding="utf-8"):  # noqa: PTH123 - as above
                    pass  # a line for each process comes in; those of an earlier program go
            except OSError as exc:
                raise UsageError(f"--report: {value} cannot be written: {exc.strerror}") from exc
        return {REPORT_VARIABLE: value or STDERR}
    raise UsageError(f"unknown option {name}. Options of the program come after it.\n\n{USAGE}")
