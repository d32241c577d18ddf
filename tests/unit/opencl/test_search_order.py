"""A list of libraries, made into a library, decides where the last one finds its symbols."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from eps.opencl.runtime.search_order import load_in_order

ROOT = Path(__file__).parents[3]
compiled = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="gcc is not here"
)

LOAD = """
import ctypes, sys
from eps.opencl.runtime.search_order import load_in_order
older, newer, user, folder = sys.argv[1:]
other = ctypes.CDLL(older)
try:
    ctypes.CDLL(user)
except OSError as exc:
    print("undefined symbol" in str(exc))
load_in_order([newer, user], folder)
print(ctypes.CDLL(user).answer(), other.common())
"""


@compiled
def test_a_library_finds_what_it_was_linked_with_behind_an_older_one(tmp_path: Path) -> None:
    """As OpenVINO's oneTBB hides the one of Intel's OpenCL runtime."""
    older, newer, user = (tmp_path / name for name in ("older", "newer", "user"))
    for folder in (older, newer, user):
        folder.mkdir()
    made(older, "libdep.so.1", "int common(void) { return 1; }")
    made(newer, "libdep.so.1", "int common(void) { return 2; } int added(void) { return 40; }")
    source = "int common(void); int added(void); int answer(void) { return common() + added(); }"
    made(user, "libuser.so", source, str(newer / "libdep.so.1"))
    paths = [older / "libdep.so.1", newer / "libdep.so.1", user / "libuser.so", tmp_path]
    command = [sys.executable, "-c", LOAD, *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "42", "1"]


def made(folder: Path, name: str, source: str, *libraries: str) -> None:
    (folder / "source.c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname," + name, "-Wl,--no-as-needed"]
    command += ["-Wl,-z,now", "-o", str(folder / name), str(folder / "source.c"), *libraries]
    subprocess.run(command, check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="dlopen's words")
def test_a_library_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nowhere\.so"):
        load_in_order(["/nowhere.so"], str(tmp_path))
