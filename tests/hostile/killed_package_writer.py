"""Prunes a model package again and again, each time killed one step later; prints how often.

    python killed_package_writer.py PACKAGE COPIES

COPIES/<n>/p is a copy of PACKAGE whose writer was killed (SIGKILL) before its n-th step. A step is
making a folder, opening a file to write, fsync, rename, exchange or remove.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from ort_lite.packaging.change_package import prune_package

STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "ctypes.call_function"}


def main(package: Path, copies: Path) -> None:
    """Kill at one step after the other, until the writer gets to its end."""
    for step in range(1, 1000):
        folder = copies / str(step)
        shutil.copytree(package, folder / "p")
        child = os.fork()
        if not child:
            _prune(folder / "p", step)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0, "the writer failed"
            shutil.rmtree(folder)
            sys.stdout.write(f"{step - 1}\n")
            return
    raise SystemExit("the writer never ends")


def _prune(package: Path, step: int) -> None:
    left = [step]

    def count() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and bool(int(str(arguments[2])) & (os.O_WRONLY | os.O_RDWR))
        if event in STEPS or writes:
            count()

    sys.addaudithook(watch)
    prune_package(package, package, ["more"])
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
