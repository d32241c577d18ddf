"""The first conversions of element types in several threads do not wait for each other."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading, time
from numpy.lib import NumpyVersion

original = NumpyVersion.__init__

def slow(self, version):  # gives others the GIL, as the interpreter may do at any line of it
    time.sleep(0.05)
    original(self, version)

NumpyVersion.__init__ = slow
found = []

def convert():
    from eps.openvino.sdk.binding import ov
    found.append(ov.Type.f32.to_dtype())

threads = [threading.Thread(target=convert) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*found)
"""


def test_the_first_conversions_in_several_threads_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "float32 float32 float32 float32\n", done.stderr
