"""Runs attacks on one engine: names on stdin, one line of JSON for each on the real stdout.

python worker.py openvino FOLDER SECONDS          # all in this process
python worker.py openvino FOLDER SECONDS --forks  # each in a fork: id, line, exit status

If a case takes longer than SECONDS, the stacks of all threads are written to FOLDER/stacks.txt.
A fork finds numpy and onnx imported. It imports the engine's modules and starts SDKs itself, since
the process that is forked opens no session, and ends as a program of its own does.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import IO

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from attacks import load_all  # noqa: E402 - found by the path above
from attacks.attack import ATTACKS, Engine, WrongAnswerError  # noqa: E402 - as above


def outcome_of(engine: Engine, name: str) -> tuple[str, str]:
    """What the engine made of a case: the kind, and a line about it."""
    try:
        ATTACKS[name].run(engine)
    except WrongAnswerError as exc:
        return "wrong", str(exc)
    except BaseException as exc:  # noqa: BLE001 - whatever an engine raises is what is looked for
        kind = "typed" if _is_typed(exc, engine) else "raw"
        return kind, f"{type(exc).__name__}: {exc}"
    return "right", ""


def _is_typed(exc: BaseException, engine: Engine) -> bool:
    """Whether the engine raised it on purpose: its own class, or an argument's from its code."""
    package = engine.ort.__name__
    if type(exc).__module__.split(".")[0] == package:
        return True
    if type(exc) not in (ValueError, TypeError, RuntimeError, NotImplementedError, AttributeError):
        return False
    frames = traceback.extract_tb(exc.__traceback__)
    last = frames[-1].filename
    if not engine.is_ours:  # a binding in C++ leaves no frame: the caller's is the last
        return package in last or "attacks" in last
    return bool({"ort_lite", "ctx_formats", "eps"} & set(Path(last).parts)) and (
        (frames[-1].line or "").lstrip().startswith("raise")
    )


def serve(engine: Engine, names: IO[str], replies: IO[str], seconds: float) -> None:
    """Run each named case here, until the names end."""
    with (
        tempfile.TemporaryDirectory(dir=engine.folder) as folder,
        Path(engine.folder, "stacks.txt").open("w") as stacks,
    ):
        for count, line in enumerate(names):
            engine.folder = Path(folder) / str(count)
            engine.folder.mkdir()
            stacks.truncate(0)
            faulthandler.dump_traceback_later(seconds, file=stacks)
            kind, detail = outcome_of(engine, line.strip())
            faulthandler.cancel_dump_traceback_later()
            replies.write(json.dumps([kind, detail[:600]]) + "\n")
            replies.flush()


def serve_in_forks(engine: Engine, names: IO[str], replies: IO[str], seconds: float) -> None:
    """Run each named case in a fork; returns in the forks, and once the names end."""
    for line in names:
        child = os.fork()
        if not child:
            replies.write(f"{os.getpid()}\n")
            replies.flush()
            serve(engine, io.StringIO(line), replies, seconds)
            return
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        replies.write(json.dumps(["status", status]) + "\n")
        replies.flush()


def main() -> None:
    """Serve until stdin ends."""
    # Copies, since a case may close or replace the process's own.
    replies, names = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0))
    warnings.simplefilter("ignore")
    os.dup2(2, 1)
    load_all()
    engine, seconds = Engine(sys.argv[1], Path(sys.argv[2])), float(sys.argv[3])
    if sys.argv[4:] == ["--forks"]:
        serve_in_forks(engine, names, replies, seconds)
    elif engine.name == "opencl":
        from opencl_builds import reused_builds  # noqa: PLC0415 - imports modules of the EP

        with reused_builds():  # most cases are about one model
            serve(engine, names, replies, seconds)
    else:
        serve(engine, names, replies, seconds)


if __name__ == "__main__":
    main()
