"""What a row's child processes do: `python -m ort_lite.hw.child_task JOB.json ANSWER.json`.

This module and `child_*` run in the row's environment, which has numpy, onnx and the SDK, and
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
"""linux/prctl.h."""


def main(arguments: list[str]) -> int:
    """Do one job; its answer is there whole or not at all."""
    end_with_parent()
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
    # An SDK's threads and destructors have nothing more to do here, and some hang in it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def end_with_parent() -> None:
    """Let Linux kill this process when whoever started it dies: nobody waits for the answer."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _error(exc: OrtLiteError) -> dict[str, str]:
    reason = str(exc.reason or "") if isinstance(exc, InvalidGraph) else ""
    return {"status": exc.code.name, "reason": reason, "message": exc.message}


def _tasks() -> Mapping[str, Task]:
    from ort_lite.hw import child_bench, child_models  # noqa: PLC0415 - lazy: rare

    return {
        "probe": child_models.probe,
        "oracle": child_models.make_oracle,
        "model": child_models.run_model,
        "build": child_models.build_context,
        "load": child_models.load_context,
        "bench": child_bench.bench,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
