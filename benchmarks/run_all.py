"""Runs every benchmark in turn, as `make bench` does: `python -m benchmarks.run_all [MODEL ...]`.

Arguments, `--turns N` too, go to each benchmark that accepts them. Exits with 1 if numbers were
wrong or a limit was missed.
"""

from __future__ import annotations

import subprocess
import sys

SCRIPTS = (
    "accuracy.accuracy",
    "startup.sessions",
    "startup.first_answer",
    "latency.latency",
    "latency.cpu",
    "opencl.models",
)
NO_MODELS = "startup.imports"


def main(arguments: list[str]) -> int:
    """Run them; 1 if one ended with anything but 0."""
    failed = []
    for script in (*SCRIPTS, NO_MODELS):
        sys.stdout.write(f"\n== {script} ==\n\n")
        sys.stdout.flush()
        passed = arguments if script in SCRIPTS else []
        command = [sys.executable, "-m", f"benchmarks.{script}", *passed]
        if subprocess.run(command, check=False).returncode:
            failed.append(script)
    if failed:
        sys.stdout.write(f"\nfailed: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
