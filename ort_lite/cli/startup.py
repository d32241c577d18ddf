"""`ort-lite bench --startup`: times a process from its start to its first output, by phase."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ctx_formats.temporary_files import temporary_folder
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import (
    print_json,
    print_line,
    print_table,
    progress,
    size_text,
    time_text,
)
from ort_lite.cli.run_inputs import make_feed
from ort_lite.cli.session_choice import open_session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.cli.run_inputs import FeedChoice
    from ort_lite.cli.session_choice import SessionChoice


def bench_startup(
    model: Path,
    choice: SessionChoice,
    starts: int,
    feed: FeedChoice,
    *,
    as_json: bool,
) -> ExitCode:
    """Start `starts` processes in turn; each creates the session and runs it once.

    Args:
        model: Plain or compiled.
        choice: The session to create.
        starts: Number of processes.
        feed: Inputs of each run.
        as_json: Print every report in full.
    """
    with temporary_folder("ort-lite-bench-") as folder:
        inputs = _saved_feed(model, choice, feed, Path(folder))
        with progress(f"starting {model.name}"):
            reports = [_start(model, choice, inputs) for _ in range(starts)]
    if as_json:
        print_json({"model": str(model), "starts": reports})
        return ExitCode.OK
    names = dict.fromkeys(name for report in reports for name in report["phases_s"])
    rows = [(name, *_cells([r["phases_s"].get(name, 0.0) for r in reports])) for name in names]
    rows.append(("total, to the first output", *_cells([r["ready_s"] for r in reports])))
    columns = ("phase", "median", "best", "worst")
    print_table(columns, rows, right=columns[1:])
    last = reports[-1]
    peak = last["peak_rss_bytes"]
    print_line(
        f"model {size_text(last['model_bytes'])}, payloads {size_text(last['payload_bytes'])}, "
        f"peak memory {size_text(peak) if peak else 'unknown'}; {starts} processes"
    )
    print_line(f"model cache, last start: {_outcome_text(last['cache'])}")
    background = _outcome_text(last["background"])
    if background != "off":
        print_line(f"background compile, last start, at its first output: {background}")
    return ExitCode.OK


def _saved_feed(
    model: Path,
    choice: SessionChoice,
    feed: FeedChoice,
    folder: Path,
) -> Path:
    import numpy as np

    with open_session(model, choice) as session:
        arrays = make_feed(session, feed)
    path = folder / "feed.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type] # numpy 2.4's stub takes allow_pickle for all of **kwds
    return path


def _start(model: Path, choice: SessionChoice, feed: Path) -> dict[str, Any]:
    request = {
        "began": perf_counter(),
        "model": str(model),
        "config": dict(choice.config),
        "providers": choice.providers,
        "dimensions": dict(choice.dimensions),
        "policy": choice.policy,
        "feed": str(feed),
    }
    command = [sys.executable, "-m", "ort_lite.start.timed_start", json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CommandError(ExitCode.COMPILE_FAILED, f"a start of {model} failed: {last}")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def _outcome_text(outcome: Mapping[str, str]) -> str:
    """Text of a state and its reason."""
    return ": ".join(part for part in (outcome["state"], outcome["reason"]) if part)


def _cells(seconds: Sequence[float]) -> tuple[str, str, str]:
    return time_text(median(seconds)), time_text(min(seconds)), time_text(max(seconds))
