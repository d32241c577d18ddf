"""Processes that see another CPU than the one that they run on, where that can be imitated."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("other_cpu.c")


def built_library(folder: Path) -> Path:
    """The library to be preloaded; skips the test where it cannot be made or has no effect."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("another CPU is imitated on x86-64 Linux only")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here, which compiles tests/other_cpu/other_cpu.c")
    library = folder / "other_cpu.so"
    command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library)]
    subprocess.run([*command, str(SOURCE), "-ldl"], check=True)
    environ = {**os.environ, **imitating(library, "zen5")}
    if subprocess.run(["true"], env=environ, check=False).returncode:
        pytest.skip("this CPU does not trap CPUID")
    return library


def imitating(library: Path, words: str) -> dict[str, str]:
    """Environment variables for a child that is to see another CPU; words as in other_cpu.c."""
    return {"LD_PRELOAD": str(library), "ORT_LITE_OTHER_CPU": words}
