"""Entry of a row's child processes: one task of child_tasks.py, or pytest.

    python -m ort_lite.hw.child_main JOB.json ANSWER.json
    python -m ort_lite.hw.child_main pytest ARGUMENTS

This module and child_tasks.py run in the row's environment, which has numpy, onnx and the SDK, and
neither msgspec nor a YAML reader.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ort_lite.cli.exit_codes import CommandError
from ort_lite.status import InvalidGraph, OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Task = Callable[[Mapping[str, Any]], Mapping[str, Any]]


PR_SET_PDEATHSIG = 1
"""Number of the option in linux/prctl.h."""


def main(arguments: list[str]) -> int:
    """Run pytest, or one job; the answer file is complete or absent."""
    end_with_parent()
    if arguments[0] == "pytest":
        import pytest  # noqa: PLC0415 - lazy: rare

        return int(pytest.main(arguments[1:]))
    job = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    answer_file = Path(arguments[1])
    try:
        answer = dict(_tasks()[job["task"]](job))
    except OrtLiteError as exc:
        answer = {"error": _error(exc)}
    except CommandError as exc:
        answer = {"error": {"status": "", "reason": "", "message": exc.message}}
    scratch = answer_file.with_suffix(".part")
    scratch.write_text(json.dumps(answer), encoding="utf-8")
    scratch.replace(answer_file)
    # Skips an SDK's threads and destructors, some of which hang.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def end_with_parent() -> None:
    """Let Linux kill this process when its parent dies: its result is no longer awaited."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _error(exc: OrtLiteError) -> dict[str, str]:
    reason = str(exc.reason or "") if isinstance(exc, InvalidGraph) else ""
    return {"status": exc.code.name, "reason": reason, "message": exc.message}


def _tasks() -> Mapping[str, Task]:
    from ort_lite.hw import child_tasks  # noqa: PLC0415 - lazy: rare

    return {
        "probe": child_tasks.probe,
        "oracle": child_tasks.make_oracle,
        "model": child_tasks.run_model,
        "build": child_tasks.build_context,
        "load": child_tasks.load_context,
        "bench": child_tasks.bench,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
