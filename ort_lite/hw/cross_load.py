"""Every row builds contexts, every row tries to load every other's, each try in a child."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ort_lite.hw.cross_result import Cell, CrossResult, CrossRow, judge, write_cross
from ort_lite.hw.errors import EnvironmentFailed, MatrixError
from ort_lite.hw.requirements import machine_lacks
from ort_lite.hw.row_setup import model_job
from ort_lite.hw.run_row import git_state, open_row, row_lacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ort_lite.hw.child import Ended
    from ort_lite.hw.row_setup import ReadyRow, Workplace
    from ort_lite.hw.rows import ExpandedRow

    Progress = Callable[[str], None]

BUILT_FILE = "built.json"
_REFUSALS = {"INVALID_GRAPH": "invalid_graph", "NOT_IMPLEMENTED": "not_implemented"}
"""Of a session: a payload that must not run here, and a context of an EP that it has not."""
_VERDICTS: Mapping[str, Any] = {
    "EP_SUPPORTED_OPTIMAL": "optimal",
    "EP_SUPPORTED_PREFER_RECOMPILATION": "recompile_advised",
}


@dataclass(frozen=True, slots=True)
class Built:
    """What came of building a context: its path, or why there is none."""

    row: str
    model: str
    context: str = ""
    problem: str = ""


def cross_load(
    rows: Sequence[ExpandedRow],
    place: Workplace,
    contexts: Sequence[Path],
    progress: Progress,
    *,
    build_only: bool = False,
) -> CrossResult:
    """Build and load; crossload.json lies in `place.out` then.

    Args:
        rows: That take part.
        place: Where.
        contexts: Folders with what other machines built; their rows are not built again.
        progress: Called with what is going on.
        build_only: Leave the loading to another call, maybe on another machine.

    Raises:
        MatrixError: A folder in `contexts` holds none.
    """
    commit, _ = git_state(place.root)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    given = read_built(contexts)
    opened = [_opened(row, place, progress) for row in rows]
    ready = [one for one, _ in opened if one is not None]
    already = {built.row for built in given}
    fresh = [b for one in ready if one.row.id not in already for b in _build(one, progress)]
    cells: list[Cell] = []
    if not build_only:
        known = place.matrix.cross_load.expect
        everything = (*given, *fresh)
        cells = [judge(_load(to, built, progress), known) for to in ready for built in everything]
    result = CrossResult(
        started=started, commit=commit, rows=tuple(told for _, told in opened), cells=tuple(cells)
    )
    place.out.mkdir(parents=True, exist_ok=True)
    write_cross(result, place.out)
    return result


def read_built(folders: Iterable[Path]) -> tuple[Built, ...]:
    """What built.json files in or under the folders name, beside them.

    Raises:
        MatrixError: A folder holds none, or one that is damaged.
    """
    found = []
    for folder in folders:
        paths = sorted(folder.rglob(BUILT_FILE))
        if not paths:
            raise MatrixError(f"{folder}: there is no {BUILT_FILE} of ort-lite hw crossload in it")
        for path in paths:
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
                found += [_given(path, told["row"], one) for one in told["built"]]
            except (OSError, ValueError, KeyError, TypeError) as exc:
                raise MatrixError(f"{path}: not as ort-lite hw crossload writes it: {exc}") from exc
    return tuple(found)


def _given(path: Path, row: str, told: Mapping[str, str]) -> Built:
    name = told["context"].replace("\\", "/").rpartition("/")[2]
    context = str(path.parent / "contexts" / name) if name else ""
    return Built(row, told["model"], context, told["problem"])


def _opened(
    row: ExpandedRow, place: Workplace, progress: Progress
) -> tuple[ReadyRow | None, CrossRow]:
    lacks = machine_lacks(row, place.facts)
    if lacks:
        return None, CrossRow(row=row.id, status="wrong_hardware", lacks=lacks)
    try:
        ready, answer = open_row(row, place, lambda doing: progress(f"{row.id}: {doing}"))
    except EnvironmentFailed as exc:
        return None, CrossRow(row=row.id, status="environment", lacks=(str(exc),))
    if "ended" in answer:
        return None, CrossRow(row=row.id, status="failed", lacks=(answer["ended"].describe(),))
    lacks = row_lacks(row, answer)
    identity = answer.get("identity", {})
    if lacks:
        told = CrossRow(row=row.id, status="wrong_hardware", lacks=lacks, identity=identity)
        return None, told
    return ready, CrossRow(row=row.id, status="ready", identity=identity)


def _build(ready: ReadyRow, progress: Progress) -> list[Built]:
    found = []
    for model in ready.place.matrix.cross_load.models:
        progress(f"{ready.row.id} builds {model}")
        found.append(_built(ready, model))
    folder_of = {"row": ready.row.id, "built": [
        {"model": b.model, "context": b.context, "problem": b.problem} for b in found
    ]}  # fmt: skip
    (ready.folder / BUILT_FILE).write_text(json.dumps(folder_of, indent=1), encoding="utf-8")
    return found


def _built(ready: ReadyRow, model: str) -> Built:
    if not ready.keeps_contexts:
        return Built(ready.row.id, model, problem=f"{ready.row.ep} keeps no contexts")
    try:
        job = model_job(ready, model)
    except EnvironmentFailed as exc:
        return Built(ready.row.id, model, problem=str(exc))
    limit = ready.place.matrix.defaults.load_timeout_s
    ended, answer = ready.ask("build", job, limit)
    if "context" in answer:
        return Built(ready.row.id, model, answer["context"])
    problem = answer.get("error", {}).get("message") or ended.describe()
    return Built(ready.row.id, model, problem=problem)


def _load(ready: ReadyRow, built: Built, progress: Progress) -> Cell:
    progress(f"{ready.row.id} loads {built.model} of {built.row}")
    cell: dict[str, Any] = {
        "builder": built.row, "loader": ready.row.id, "model": built.model,
    }  # fmt: skip
    if not built.context:
        return Cell(**cell, verdict="not_built", message=built.problem)
    try:
        job = model_job(ready, built.model)
    except EnvironmentFailed as exc:
        return Cell(**cell, verdict="error", message=str(exc))
    limit = ready.place.matrix.defaults.load_timeout_s
    ended, answer = ready.ask("load", {**job, "context": built.context}, limit)
    return Cell(**cell, **_verdict(ended, answer), seconds=ended.seconds)


def _verdict(ended: Ended, answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a child that loaded a context came to."""
    if not answer:
        died = ended.crashed or ended.timed_out
        message = f"{ended.describe()}: {ended.tail[-300:]}"
        return {"verdict": "crashed" if died else "error", "message": message}
    error = answer.get("error")
    if error is not None:
        verdict = _REFUSALS.get(error["status"], "error")
        told = error["status"].lower() if verdict == "error" else error["reason"]
        return {"verdict": verdict, "reason": told, "message": error["message"]}
    far = [d for d in answer["differences"] if not d["within"]]
    if far or not answer["differences"]:
        told = "; ".join(d["problem"] or f"{d['output']}: {d['relative']:.1e}" for d in far)
        return {"verdict": "wrong_numbers", "message": told or "no outputs"}
    loaded = _VERDICTS.get(answer["verdict"])
    if loaded is None:
        message = f"it loads, and ort-lite check says {answer['verdict']}"
        return {"verdict": "error", "message": message}
    return {"verdict": loaded, "message": answer["verdict_message"]}
