"""Compiles models again and again, each time killed one write step later; prints how often.

    python killed_writer.py SOURCES FOLDER COPIES

SOURCES is a folder of models; FOLDER/<name>_ctx.onnx is what each is compiled to, several as a
session group. COPIES/<n> is a copy of FOLDER in which the writer was killed (SIGKILL) before its
n-th step. A step is opening a file to write, fsync, link, rename or remove: what is written in
between goes to files that have no name of their own yet.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import openvino  # noqa: F401 - before forking: no thread runs yet, and children need not import

import ort_lite as ort
from ort_lite import check, compiler, session  # noqa: F401 - as above
from ort_lite.context import shared_contexts, writer  # noqa: F401 - as above

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = {"os.link", "os.rename", "os.remove"}


def main(sources: Path, target: Path, copies: Path) -> None:
    """Kill at one step after the other, until the writer gets to its end."""
    for step in range(1, 100):
        folder = copies / str(step)
        shutil.copytree(target, folder)
        if _ended_well(sources, folder, step):
            shutil.rmtree(folder)
            sys.stdout.write(f"{step - 1}\n")
            return
    raise SystemExit("the writer never ends")


def _ended_well(sources: Path, folder: Path, step: int) -> bool:
    child = os.fork()
    if not child:
        _write(sorted(sources.iterdir()), folder, step)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert status == 0, "the writer failed"
    return True


def _write(sources: Sequence[Path], folder: Path, step: int) -> None:
    """In the child: compile, and die before step number `step`."""
    options = ort.SessionOptions()
    options.add_provider("OpenVINOExecutionProvider")
    left = [step]

    def count() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event in STEPS or (event == "open" and _writes(arguments, folder)):
            count()

    sync = os.fsync

    def fsync(descriptor: int) -> None:
        count()
        sync(descriptor)

    os.fsync = fsync  # type: ignore[assignment] # patched where it is used
    sys.addaudithook(watch)
    with ort.SharedContexts() if len(sources) > 1 else nullcontext() as group:
        if group is not None:
            group.join(options)
        for source in sources:
            compiled = ort.ModelCompiler(options, source)
            compiled.compile_to_file(folder / f"{source.stem}_ctx.onnx")
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
