"""The child process that builds one program with the driver's compiler and sends its binary.

    python -m eps.opencl.runtime.build_child NAME FACTS

It reads two texts from stdin, the build options and the source, each behind its size as a u64, and
writes `BEGUN`, the size of the binary as a u64, and the binary to stdout. It ends where stdin ends,
which the end of its parent brings about, too. A driver that refuses ends it with code 1.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from threading import Thread
from typing import BinaryIO

from eps.opencl.cl.objects import Context
from eps.opencl.cl.program import Program
from eps.opencl.runtime.build_processes import BEGUN, SIZE
from eps.opencl.runtime.device import find_devices
from eps.opencl.runtime.intel_binary import SMALL, with_code_of
from eps.opencl.trials.record import facts_of


def main() -> None:
    """Build a program for the device that the command line names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a driver may print
    name, facts = sys.argv[1], json.loads(sys.argv[2])
    same = [d for d in find_devices() if d.name == name and facts_of(d, os.environ) == facts]
    if not same:
        sys.exit("the device is not listed here")
    context = Context(same[0].device)
    small = _build(context, SMALL, "")  # has the driver load its compiler, while no source is there
    options, source = _read_text(sys.stdin.buffer), _read_text(sys.stdin.buffer)
    Thread(target=_end_with_parent, args=(sys.stdin.buffer,), daemon=True).start()
    binary = _build(context, source, options)
    lean = with_code_of(binary, small) or binary
    out.write(BEGUN + SIZE.pack(len(lean)) + lean)
    os._exit(0)  # the driver need not tidy up


def _build(context: Context, source: str, options: str) -> bytes:
    program = Program.of_source(context, source)
    program.build(options)
    return program.binary()


def _read_text(file: BinaryIO) -> str:
    (size,) = SIZE.unpack(_read(file, SIZE.size))
    return _read(file, size).decode()


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        os._exit(1)  # the parent has no use for this process
    return data


def _end_with_parent(file: BinaryIO) -> None:
    file.read(1)
    os._exit(1)


if __name__ == "__main__":
    main()
