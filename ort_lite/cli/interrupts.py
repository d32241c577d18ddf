"""Handles Ctrl-C: reports it immediately; a second Ctrl-C ends the process.

Python raises KeyboardInterrupt only once a vendor's compiler has returned. So a thread receives the
signal first and reports it. Once Python ends, vendors' libraries
take some tenths of a second to unload; Ctrl-C is then ignored, as the command has answered already.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING

from ctx_formats.temporary_files import remove_unfinished

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
STOPPING = "stopping (press Ctrl-C again to quit immediately)"
WAITING = (
    "still stopping: waiting for vendor code to return (press Ctrl-C again to quit immediately)"
)
PATIENCE = 2.0
"""Seconds after which the message names what is waited for."""


def answer_interrupts() -> None:
    """Have a thread answer Ctrl-C from now on, in the main thread of a program.

    Nothing is changed where the signal is handled or ignored already, and on Windows, whose
    wakeup descriptor must be a socket.
    """
    if sys.platform == "win32" or current_thread() is not main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    thread = Thread(target=_answer, args=(read,), name="ort-lite Ctrl-C", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread to spare: an interrupt is answered later
        signal.set_wakeup_fd(-1)
        os.close(write)
    else:
        atexit.register(_stop_answering, thread, write)
    # Otherwise Python restores the system's default, by which the signal kills the process.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _stop_answering(thread: Thread, write: int) -> None:
    """End the thread: Python may crash if it ends while a daemon thread is at work."""
    signal.set_wakeup_fd(-1)
    os.close(write)
    thread.join(PATIENCE)


def _answer(read: int) -> None:
    """Report interrupts until the other end of the pipe is closed."""
    from select import select

    heard = 0
    while True:
        if heard == 1 and not select([read], [], [], PATIENCE)[0]:
            _say(WAITING)
            select([read], [], [])
        signals = os.read(read, 64)
        if not signals:
            return
        for _ in range(_interrupts(signals)):
            heard += 1
            if heard > 1:
                remove_unfinished()
                os._exit(INTERRUPTED)
            _say(STOPPING)


def _interrupts(signals: Sequence[int]) -> int:
    return sum(number == signal.SIGINT for number in signals)


def _say(line: str) -> None:
    """Write to the terminal past Python's streams, one of which the program may be using."""
    os.write(2, f"\n{line}\n".encode())
