"""Builds contexts on every row and loads each on every other row, each in a child process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ort_lite.hw.cross_result import CrossCell, CrossResult, CrossRow, judge, write_cross
from ort_lite.hw.errors import EnvironmentFailed, MatrixError
from ort_lite.hw.requirements import machine_lacks
from ort_lite.hw.row_setup import model_job
from ort_lite.hw.run_row import git_state, open_row, row_lacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ort_lite.hw.child_process import ChildExit
    from ort_lite.hw.row_setup import ReadyRow, RunEnvironment
    from ort_lite.hw.rows import ExpandedRow

    Progress = Callable[[str], None]

BUILT_FILE = "built.json"
_REFUSALS = {"INVALID_GRAPH": "invalid_graph", "NOT_IMPLEMENTED": "not_implemented"}
"""A session's refusals: of a payload that must not run here, and of a missing EP's context."""
_VERDICTS: Mapping[str, Any] = {
    "EP_SUPPORTED_OPTIMAL": "optimal",
    "EP_SUPPORTED_PREFER_RECOMPILATION": "recompile_advised",
}


@dataclass(frozen=True, slots=True)
class Built:
    """A built context's path, or why it is missing."""

    row: str
    model: str
    context: str = ""
    problem: str = ""


def cross_load(
    rows: Sequence[ExpandedRow],
    run_env: RunEnvironment,
    contexts: Sequence[Path],
    progress: Progress,
    *,
    build_only: bool = False,
) -> CrossResult:
    """Build contexts, load them, and write crossload.json to `run_env.out`.

    Args:
        rows: Rows that take part.
        run_env: Where to run them.
        contexts: Folders with contexts that other machines built; their rows are not built again.
        progress: Called with what is going on.
        build_only: Leave loading to another call, perhaps on another machine.

    Raises:
        MatrixError: A folder in `contexts` holds none.
    """
    commit, _ = git_state(run_env.root)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    shipped = read_built(contexts)
    opened = [_open_row(row, run_env, progress) for row in rows]
    ready = [one for one, _ in opened if one is not None]
    already = {built.row for built in shipped}
    fresh = [b for one in ready if one.row.id not in already for b in _build_all(one, progress)]
    cells: list[CrossCell] = []
    if not build_only:
        known = run_env.matrix.cross_load.expect
        everything = (*shipped, *fresh)
        cells = [judge(_load(to, built, progress), known) for to in ready for built in everything]
    result = CrossResult(
        started=started, commit=commit, rows=tuple(row for _, row in opened), cells=tuple(cells)
    )
    run_env.out.mkdir(parents=True, exist_ok=True)
    write_cross(result, run_env.out)
    return result


def read_built(folders: Iterable[Path]) -> tuple[Built, ...]:
    """Contexts that built.json files in or under the folders list.

    Raises:
        MatrixError: A folder has no built.json, or a damaged one.
    """
    contexts: list[Built] = []
    for folder in folders:
        paths = sorted(folder.rglob(BUILT_FILE))
        if not paths:
            raise MatrixError(f"no {BUILT_FILE} of ort-lite hw crossload in {folder}")
        for path in paths:
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                contexts += [_shipped_context(path, content["row"], b) for b in content["built"]]
            except (OSError, ValueError, KeyError, TypeError) as exc:
                raise MatrixError(f"{path}: not written by ort-lite hw crossload: {exc}") from exc
    return tuple(contexts)


def _shipped_context(path: Path, row: str, entry: Mapping[str, str]) -> Built:
    name = entry["context"].replace("\\", "/").rpartition("/")[2]
    context = str(path.parent / "contexts" / name) if name else ""
    return Built(row, entry["model"], context, entry["problem"])


def _open_row(
    row: ExpandedRow, run_env: RunEnvironment, progress: Progress
) -> tuple[ReadyRow | None, CrossRow]:
    lacks = machine_lacks(row, run_env.facts)
    if lacks:
        return None, CrossRow(row=row.id, status="wrong_hardware", lacks=lacks)
    try:
        ready, answer = open_row(row, run_env, lambda doing: progress(f"{row.id}: {doing}"))
    except EnvironmentFailed as exc:
        return None, CrossRow(row=row.id, status="environment", lacks=(str(exc),))
    if "ended" in answer:
        return None, CrossRow(row=row.id, status="failed", lacks=(answer["ended"].describe(),))
    lacks = row_lacks(row, answer)
    identity = answer.get("identity", {})
    if lacks:
        return None, CrossRow(row=row.id, status="wrong_hardware", lacks=lacks, identity=identity)
    return ready, CrossRow(row=row.id, status="ready", identity=identity)


def _build_all(ready: ReadyRow, progress: Progress) -> list[Built]:
    contexts = []
    for model in ready.run_env.matrix.cross_load.models:
        progress(f"{ready.row.id} builds {model}")
        contexts.append(_build_context(ready, model))
    folder_of = {"row": ready.row.id, "built": [
        {"model": b.model, "context": b.context, "problem": b.problem} for b in contexts
    ]}  # fmt: skip
    (ready.folder / BUILT_FILE).write_text(json.dumps(folder_of, indent=1), encoding="utf-8")
    return contexts


def _build_context(ready: ReadyRow, model: str) -> Built:
    if not ready.keeps_contexts:
        return Built(ready.row.id, model, problem=f"{ready.row.ep} keeps no contexts")
    try:
        job = model_job(ready, model)
    except EnvironmentFailed as exc:
        return Built(ready.row.id, model, problem=str(exc))
    limit = ready.run_env.matrix.defaults.load_timeout_s
    ended, answer = ready.ask("build", job, limit)
    if "context" in answer:
        return Built(ready.row.id, model, answer["context"])
    problem = answer.get("error", {}).get("message") or ended.describe()
    return Built(ready.row.id, model, problem=problem)


def _load(ready: ReadyRow, built: Built, progress: Progress) -> CrossCell:
    progress(f"{ready.row.id} loads {built.model} of {built.row}")
    cell: dict[str, Any] = {
        "builder": built.row, "loader": ready.row.id, "model": built.model,
    }  # fmt: skip
    if not built.context:
        return CrossCell(**cell, verdict="not_built", message=built.problem)
    try:
        job = model_job(ready, built.model)
    except EnvironmentFailed as exc:
        return CrossCell(**cell, verdict="error", message=str(exc))
    limit = ready.run_env.matrix.defaults.load_timeout_s
    ended, answer = ready.ask("load", {**job, "context": built.context}, limit)
    return CrossCell(**cell, **_verdict(ended, answer), seconds=ended.seconds)


def _verdict(ended: ChildExit, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Verdict, reason and message of a child that loaded a context."""
    if not answer:
        died = ended.has_crashed or ended.timed_out
        message = f"{ended.describe()}: {ended.tail[-300:]}"
        return {"verdict": "crashed" if died else "error", "message": message}
    error = answer.get("error")
    if error is not None:
        verdict = _REFUSALS.get(error["status"], "error")
        reason = error["status"].lower() if verdict == "error" else error["reason"]
        return {"verdict": verdict, "reason": reason, "message": error["message"]}
    far = [d for d in answer["differences"] if not d["within"]]
    if far or not answer["differences"]:
        text = "; ".join(d["problem"] or f"{d['output']}: {d['relative']:.1e}" for d in far)
        return {"verdict": "wrong_numbers", "message": text or "no outputs"}
    loaded = _VERDICTS.get(answer["verdict"])
    if loaded is None:
        message = f"it loads, and ort-lite check says {answer['verdict']}"
        return {"verdict": "error", "message": message}
    return {"verdict": loaded, "message": answer["verdict_message"]}
