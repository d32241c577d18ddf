"""Sessions leave the process as they find it: signals, floating point, affinity, environment."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import ctypes, decimal, locale, logging, os, random, resource, signal, sys, threading
from pathlib import Path

import numpy as np
import onnx.parser
import ort_lite

TEXT = '''<ir_version: 8, opset_import: ["" : 17]>
g (float[64, 64] x) => (float[64, 64] y) { z = MatMul (x, x)  y = Sigmoid (z) }'''
LIBC, LIBM = ctypes.CDLL(None), ctypes.CDLL("libm.so.6")
calls = []


def handlers():
    "What the kernel calls, and not only what Python thinks."
    action = (ctypes.c_size_t * 32)()
    return [LIBC.sigaction(n, None, action) or action[0] for n in range(1, 32)]


def float_environment():
    "Rounding, flush-to-zero and exception masks; not the flags of what happened."
    environment = (ctypes.c_uint16 * 32)()
    LIBM.fegetenv(environment)
    return environment[0], environment[14] & 0xFFC0


def mapped_signal_stack():
    "Whether the thread's alternate signal stack, where it has one, is mapped."
    stack = (ctypes.c_size_t * 3)()
    LIBC.sigaltstack(None, stack)
    if stack[1] & 2:  # SS_DISABLE
        return True
    ranges = (line.split()[0].split("-") for line in Path("/proc/self/maps").open())
    return any(int(low, 16) <= stack[0] < int(high, 16) for low, high in ranges)


def state():
    return {
        "handlers": handlers(),
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "signal stack": mapped_signal_stack(),
        "floating point": float_environment(),
        "numpy errors": np.geterr(),
        "affinity": os.sched_getaffinity(0),
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "limits": [
            resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n[:7] == "RLIMIT_"
        ],
        # PyOpenCL names its folder there for the loader in its wheel.
        "environment": {k: v for k, v in os.environ.items() if k != "PYOPENCL_HOME"},
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "recursion": sys.getrecursionlimit(),
        "threads' stacks": threading.stack_size(),
        "logging": (logging.getLogger().level, list(logging.getLogger().handlers)),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook),
        "random": (random.getstate(), np.random.get_state()[1].tolist()),
        "decimal": str(decimal.getcontext()),
    }


def assert_unchanged(before, what):
    now = state()
    changed = {key: (before[key], now[key]) for key in before if now[key] != before[key]}
    assert not changed, (what, changed)


for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, lambda number, _: calls.append(number))
x = np.full((64, 64), 0.5, np.float32)
model, context = onnx.parser.parse_model(TEXT).SerializeToString(), "model_ctx.onnx"
before = state()
options = ort_lite.SessionOptions()
if sys.argv[1] != "CPUExecutionProvider":
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", context)
    options.add_session_config_entry("ep.context_embed_mode", "1")
session = ort_lite.InferenceSession(model, options, providers=[sys.argv[1]])
assert_unchanged(before, "opened")
for _ in range(3):
    session.run(None, {"x": x})
assert_unchanged(before, "run")
session.close()
assert_unchanged(before, "closed")
if sys.argv[1] != "CPUExecutionProvider":
    with ort_lite.InferenceSession(context, providers=[sys.argv[1]]) as session:
        session.run(None, {"x": x})
        assert_unchanged(before, "reloaded")
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM):
    os.kill(os.getpid(), number)
    for _ in range(3):
        pass  # here Python calls its handlers
    assert calls.pop() == number
print("as it was")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's C library and /proc")
@pytest.mark.parametrize(
    "ep", ["CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider"]
)
def test_a_session_leaves_the_process_as_it_was(ep: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ep], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (0, "as it was\n"), done.stderr
