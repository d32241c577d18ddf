"""Compiles a model again and again, each time killed one write step later; prints how often.

    python killed_writer.py SOURCE TARGET COPIES

COPIES/<n> is a copy of TARGET's folder in which the writer was killed (SIGKILL) before its n-th
step. A step is opening a file to write, fsync, link, rename or remove.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import openvino  # noqa: F401 - before forking: no thread runs yet, and children need not import

import ort_lite as ort
from ort_lite import check, compiler, context_writer, session  # noqa: F401 - as above

STEPS = {"os.link", "os.rename", "os.remove"}


def main(source: Path, target: Path, copies: Path) -> None:
    """Kill at one step after the other, until the writer gets to its end."""
    for step in range(1, 100):
        folder = copies / str(step)
        shutil.copytree(target.parent, folder)
        if _ended_well(source, folder / target.name, step):
            shutil.rmtree(folder)
            sys.stdout.write(f"{step - 1}\n")
            return
    raise SystemExit("the writer never ends")


def _ended_well(source: Path, target: Path, step: int) -> bool:
    child = os.fork()
    if not child:
        _write(source, target, step)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert status == 0, "the writer failed"
    return True


def _write(source: Path, target: Path, step: int) -> None:
    """In the child: compile, and die before step number `step`."""
    options = ort.SessionOptions()
    options.add_provider("OpenVINOExecutionProvider")
    model_compiler = ort.ModelCompiler(options, source)
    left = [step]

    def count() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event in STEPS or (event == "open" and _writes(arguments, target.parent)):
            count()

    sync = os.fsync

    def fsync(descriptor: int) -> None:
        count()
        sync(descriptor)

    os.fsync = fsync
    sys.addaudithook(watch)
    model_compiler.compile_to_file(target)
    os._exit(0)


def _writes(arguments: tuple[object, ...], folder: Path) -> bool:
    path, _, flags = arguments
    return (
        isinstance(path, str | os.PathLike)
        and isinstance(flags, int)
        and bool(flags & (os.O_WRONLY | os.O_RDWR))
        and Path(os.fspath(path)).parent == folder
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
