"""Ctrl-C on a terminal: an answer at once, exit code 130, and nothing half written."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from small_models import mlp

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_TERMINALS = "the system has no terminals of this kind"
pty = pytest.importorskip("pty", reason=NO_TERMINALS)
fcntl = pytest.importorskip("fcntl", reason=NO_TERMINALS)
termios = pytest.importorskip("termios", reason=NO_TERMINALS)

ROOT = Path(__file__).parents[3]
LONG = 120.0
"""Seconds after which a test gives up; no answer depends on it."""

START = """
import ctypes, sys, time
from pathlib import Path

def stuck(*args, **kwargs):
    '''As in a vendor's compiler: no signal brings Python back.'''
    mutex, libc = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    libc.pthread_mutex_lock(mutex)
    ready = ["READY"]
    while True:
        try:
            if ready:
                print(ready.pop(), flush=True)
            libc.pthread_mutex_lock(mutex)
        except KeyboardInterrupt:  # it came a moment too early
            pass

def waiting(*args, **kwargs):
    # In short sleeps: a signal that comes between Python's last look for one and the system call
    # is not heard until that call returns.
    print("READY", flush=True)
    while True:
        time.sleep(0.05)
"""
RUN = """
from ort_lite.cli import main
main(sys.argv[1:])
"""
PLACES = {
    "while modules are imported": "import ort_lite.cli\nort_lite.cli.find_spec = waiting\n",
    "while a class is created": """
import ort_lite.cli

class Attribute:
    def __set_name__(self, owner, name):
        waiting()

def create_class(*args):
    class Owner:
        attribute = Attribute()

ort_lite.cli.find_spec = create_class
""",
    "in a session": "import ort_lite.start.prepare_model as m\nm.compile_plain = waiting\n",
    "in a write": "import os\nos.fsync = waiting\n",
}


class Terminal:
    """A program on a terminal of its own.

    Attributes:
        seen: All that it has written.
    """

    def __init__(self, code: str, arguments: list[str], folder: Path, **environ: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            start_new_session=True,
            preexec_fn=_take_terminal,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        )
        os.close(slave)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read until it has written `text`."""
        end = time.monotonic() + LONG
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self._master], [], [], 1)[0]:
                self.seen += os.read(self._master, 4096).decode(errors="replace")

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def end(self) -> int:
        """Its exit code, once it has ended."""
        end = time.monotonic() + LONG
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen
            self._drain()
        self._drain()
        return self.process.returncode

    def _drain(self) -> None:
        try:
            if select.select([self._master], [], [], 0.05)[0]:
                self.seen += os.read(self._master, 4096).decode(errors="replace")
        except OSError:  # nobody has the other end any more
            time.sleep(0.05)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(code: str, arguments: list[str], folder: Path, **environ: str) -> Iterator[Terminal]:
    opened = Terminal(START + code + RUN, arguments, folder, **environ)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    (tmp_path / "tmp").mkdir()
    return tmp_path


def left_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


COMPILE = ["compile", "m.onnx", "-e", "openvino"]


@pytest.mark.parametrize("where", PLACES)
def test_an_interrupt_ends_a_command_and_leaves_nothing(where: str, place: Path) -> None:
    with terminal(PLACES[where], COMPILE, place, TMPDIR=str(place / "tmp")) as shown:
        shown.until("READY")
        shown.press_ctrl_c()
        assert shown.end() == 130
        assert "interrupted" in shown.seen
        assert "Traceback" not in shown.seen
    assert left_in(place) == {"m.onnx", "tmp"}


@pytest.mark.parametrize("place_of_it", ["compile_plain", "fsync"])
def test_vendor_code_does_not_keep_the_answer_and_a_second_interrupt_ends_it(
    place_of_it: str, place: Path
) -> None:
    code = {
        "compile_plain": "import ort_lite.start.prepare_model as m\nm.compile_plain = stuck\n",
        "fsync": "import os\nos.fsync = stuck\n",  # a temporary file is there
    }[place_of_it]
    with terminal(code, COMPILE, place, TMPDIR=str(place / "tmp")) as shown:
        shown.until("READY")
        shown.press_ctrl_c()
        shown.until("stopping (press Ctrl-C again to quit immediately)")
        shown.until("still stopping: waiting for vendor code to return")
        shown.press_ctrl_c()
        assert shown.end() == 130
        assert "Traceback" not in shown.seen
    assert left_in(place) == {"m.onnx", "tmp"}


LOCKED = """
import fcntl, os
from ort_lite.model_cache import lock
folder = Path("cache/v1/locks")
folder.mkdir(parents=True)
real = lock.single_flight
held = []
def others(path, canceled):
    held.append(open(path, "w"))
    fcntl.flock(held[0], fcntl.LOCK_EX)
    print("READY", flush=True)
    return real(path, canceled)
lock.single_flight = others
"""


def test_an_interrupt_ends_the_wait_for_another_process(place: Path) -> None:
    arguments = ["run", "m.onnx", "-e", "openvino"]
    with terminal(LOCKED, arguments, place, ORT_LITE_CACHE_DIR=str(place / "cache")) as shown:
        shown.until("READY")
        shown.press_ctrl_c()
        assert shown.end() == 130
        assert "Traceback" not in shown.seen
    assert not [path for path in left_in(place) if path.endswith((".tmp", ".bin"))]


RUNNING = """
from ort_lite import session
session.InferenceSession.run = waiting
"""


@pytest.mark.parametrize("command", [["run", "m.onnx"], ["bench", "m.onnx"]])
def test_an_interrupt_ends_a_run(command: list[str], place: Path) -> None:
    with terminal(RUNNING, [*command, "-e", "cpu"], place, TMPDIR=str(place / "tmp")) as shown:
        shown.until("READY")
        shown.press_ctrl_c()
        assert shown.end() == 130
        assert "interrupted" in shown.seen
        assert "Traceback" not in shown.seen
    assert left_in(place) == {"m.onnx", "tmp"}


LATE = """
import os, signal

class Library:
    '''A vendor's, which is unloaded once Python has given up its signal handlers.'''
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
        kill(process, number)

library = Library()
"""


def test_an_interrupt_after_the_answer_does_not_change_the_exit_code(place: Path) -> None:
    with terminal(LATE, ["keygen", "k"], place) as shown:
        assert shown.end() == 0
    assert left_in(place) == {"m.onnx", "tmp", "k.key", "k.pub"}
