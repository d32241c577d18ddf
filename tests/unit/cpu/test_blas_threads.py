"""`intra_op_num_threads` reaches the BLAS of numpy, seen in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CHILD = """
import ctypes, sys
import ort_lite as ort
from small_models import mlp

library = ctypes.CDLL(sys.argv[1])
names = ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads")
get = next(getattr(library, name) for name in names if hasattr(library, name))
options = ort.SessionOptions()
for count in (1, 2, 0):
    options.intra_op_num_threads = count
    ort.InferenceSession(mlp().SerializeToString(), options, providers=["CPUExecutionProvider"])
    print(get())
"""


def test_the_last_session_that_names_a_number_sets_it() -> None:
    root = Path(np.__file__).parent
    folders = (root.parent / "numpy.libs", root / ".dylibs")
    libraries = [path for folder in folders for path in folder.glob("*openblas*")]
    if not libraries:
        pytest.skip("this numpy brings no OpenBLAS")
    tests = Path(__file__).parents[2]
    paths = f"import sys; sys.path[:0] = [{str(tests.parent)!r}, {str(tests)!r}]\n"
    command = [sys.executable, "-c", paths + CHILD, str(libraries[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2", "2"]  # 0 leaves it as it is
