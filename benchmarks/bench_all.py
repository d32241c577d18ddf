"""Every benchmark in turn, as `make bench` runs them: `bench_all.py [MODEL ...] [--turns N]`.

What it is given it gives to each that takes it. Ends with 1 if numbers were wrong
or a limit was missed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = ("accuracy.py", "sessions.py", "startup.py", "latency.py", "cpu.py", "opencl.py")
NO_MODELS = "imports.py"


def main(arguments: list[str]) -> int:
    """Run them; 1 if one ended with anything but 0."""
    here = Path(__file__).resolve().parent
    failed = []
    for script in (*SCRIPTS, NO_MODELS):
        sys.stdout.write(f"\n== {script} ==\n\n")
        sys.stdout.flush()
        taken = arguments if script in SCRIPTS else []
        if subprocess.run([sys.executable, str(here / script), *taken], check=False).returncode:
            failed.append(script)
    if failed:
        sys.stdout.write(f"\nfailed: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
