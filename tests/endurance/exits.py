"""Ends of Python with sessions in every state, counted: `python tests/endurance/exits.py --help`.

Each is a process of its own; a crash, a hang or words on stderr are a finding. Needs two seconds an
end: 200 of each take two hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import atexit, sys, threading, time
import ort_lite as ort
from small_models import feed, mlp

name, state, how, delay = sys.argv[1:]
model, inputs = mlp().SerializeToString(), feed(mlp())
eps = [name + "ExecutionProvider"]

def session(options=None):
    return ort.InferenceSession(model, options, providers=eps, enable_fallback=0)

def run_for_ever(one):
    begun.set()
    while True:
        one.run(None, inputs)

def load_for_ever():
    begun.set()
    while True:
        session().close()

begun = threading.Event()
if state == "running":
    one = session()
    for _ in range(2):
        threading.Thread(target=run_for_ever, args=(one,), daemon=True).start()
    begun.wait()
elif state == "loading":
    threading.Thread(target=load_for_ever, daemon=True).start()
    begun.wait()
    time.sleep(float(delay))  # wherever in a start or in a compile it is then
elif state == "compiling":
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_compile_in_background", "1")
    one = session(options)
elif state == "used at exit":
    one = session()
    atexit.register(one.run, None, inputs)
    atexit.register(lambda: session().run(None, inputs))
elif state == "failed build":
    from eps.opencl.runtime import program
    program.Program.of_source = lambda *_: (_ for _ in ()).throw(program.OpenCLError("b", -11))
    try:
        session().run(None, inputs)
    except ort.OrtLiteError:
        pass
elif state == "asked":
    one = session()
    for _ in range(20):
        one.run_async(None, inputs, lambda *_: None)
if how == "exit":
    sys.exit(3)
if how == "error":
    sys.excepthook = lambda *_: None
    raise ValueError
"""
STATES = ("running", "loading", "compiling", "used at exit", "asked")
EPS = ("CPU", "OpenVINO", "OpenCL")
CODES = {"return": 0, "exit": 3, "error": 1}


def ended(ep: str, state: str, how: str, delay: float = 0.0) -> None:
    """Run one program to its end; a crash, a hang or words on stderr fail the test."""
    folders = [ROOT, ROOT / "tests"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, ep, state, how, str(delay)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        check=False,
    )
    if (done.returncode, done.stderr) != (CODES[how], ""):
        raise AssertionError(f"status {done.returncode}: {done.stderr}")


def main() -> int:
    """Count; 1 if an end was not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--count", type=int, default=200, help="ends per EP and state (%(default)s)"
    )
    parser.add_argument("--ep", choices=EPS, action="append")
    parser.add_argument("--state", choices=(*STATES, "failed build"), action="append")
    asked = parser.parse_args()
    bad = 0
    for ep in asked.ep or EPS:
        own = (*STATES, "failed build") if ep == "OpenCL" else STATES
        for state in asked.state or own:
            findings = [text for i in range(asked.count) if (text := finding(ep, state, i))]
            bad += len(findings)
            sys.stdout.write(f"{ep} {state}: {asked.count} ends, {len(findings)} findings\n")
            sys.stdout.writelines(f"  {text}\n" for text in findings)
            sys.stdout.flush()
    return int(bad > 0)


def finding(ep: str, state: str, index: int) -> str:
    """What was wrong with an end; "" if nothing was."""
    how = sorted(CODES)[index % len(CODES)]
    try:
        ended(ep, state, how, delay=index % 20 * 0.05)
    except (AssertionError, subprocess.TimeoutExpired) as exc:
        return f"{how}: {str(exc)[:500]}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
