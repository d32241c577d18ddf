"""Rows on a fleet: Dask hands them to workers that carry the resources of their machines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from ort_lite.hw.errors import MatrixError
from ort_lite.hw.fleet_task import FleetJob, run_job
from ort_lite.hw.result import RowResult
from ort_lite.hw.row_digest import row_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix

PREFIX = "dask://"
CONNECT_TIMEOUT_S = 20
POLL_S = 0.5
GRACE_S = 10
"""A row whose last fitting worker is gone waits this long for another before it is lost."""


def run_on_fleet(
    address: str,
    rows: Sequence[ExpandedRow],
    matrix: Matrix,
    job: FleetJob,
    progress: Callable[[str], None],
) -> Iterator[RowResult]:
    """Results as they come; every row gives one, whatever happens to its worker.

    A row whose worker dies is given to another by Dask, until three workers have died of it or
    no fitting one is left: then it is lost, and its result says so.

    Args:
        address: `dask://HOST:PORT` of a scheduler.
        rows: What is run.
        matrix: Their matrix.
        job: What all of them have in common.
        progress: Called with what happens, one line.

    Raises:
        MatrixError: No scheduler answers there, or Dask is not installed.
    """
    client = _connect(address)
    try:
        waiting: dict[Any, ExpandedRow] = {}
        for row in rows:
            wanted = matrix.machines[row.machine].resources
            if not _fits(client, wanted):
                yield _without_worker(row, wanted)
                continue
            mine = msgspec.structs.replace(job, row=row.id)
            future = client.submit(
                run_job, mine, resources=wanted or None, pure=False, key=f"{row.id}-{time.time()}"
            )
            waiting[future] = row
            progress(f"{row.id}: submitted")
        yield from _collect(client, waiting, matrix)
    finally:
        client.close()


def _connect(address: str) -> Any:  # noqa: ANN401 - Dask's client
    try:
        from distributed import Client  # noqa: PLC0415 - lazy: rare
    except ImportError as exc:
        raise MatrixError("--scheduler needs Dask: pip install 'ort-lite[fleet]'") from exc
    host = address.removeprefix(PREFIX)
    if not address.startswith(PREFIX) or not host:
        raise MatrixError(f"--scheduler {address}: expected {PREFIX}HOST:PORT")
    try:
        connect: Any = Client
        return connect(f"tcp://{host}", timeout=CONNECT_TIMEOUT_S)
    except (OSError, TimeoutError, ValueError) as exc:
        raise MatrixError(f"no Dask scheduler answers at {address}: {exc}") from exc


def _collect(
    client: Any,  # noqa: ANN401 - Dask's client
    waiting: dict[Any, ExpandedRow],
    matrix: Matrix,
) -> Iterator[RowResult]:
    orphaned: dict[Any, float] = {}
    while waiting:
        for future in [future for future in waiting if future.done()]:
            yield _result(future, waiting.pop(future), matrix)
        for future, row in list(waiting.items()):
            wanted = matrix.machines[row.machine].resources
            if _fits(client, wanted):
                orphaned.pop(future, None)
                continue
            since = orphaned.setdefault(future, time.monotonic())
            if time.monotonic() - since > GRACE_S:
                waiting.pop(future)
                future.cancel()
                yield _lost(row, f"the last worker with {_told(wanted)} is gone")
        time.sleep(POLL_S)


def _fits(client: Any, wanted: Mapping[str, float]) -> bool:  # noqa: ANN401 - Dask's client
    """Whether any worker that is there now carries what is wanted."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return any(
        all(worker["resources"].get(name, 0) >= amount for name, amount in wanted.items())
        for worker in workers
    )


def _result(future: Any, row: ExpandedRow, matrix: Matrix) -> RowResult:  # noqa: ANN401 - Dask's future
    if future.cancelled():
        return _lost(row, "the scheduler dropped it")
    problem = future.exception()
    if problem is not None:
        return _lost(row, " ".join(f"{type(problem).__name__}: {problem}".split()))
    result = msgspec.json.decode(future.result(), type=RowResult)
    if result.row_digest == row_digest(row, matrix):
        return result
    told = "the worker's project has another matrix than the one here"
    return msgspec.structs.replace(result, status="environment", lacks=(told,))


def _lost(row: ExpandedRow, why: str) -> RowResult:
    return RowResult(row=row.id, status="lost", lacks=(why,), ep=row.ep, device=row.device)


def _without_worker(row: ExpandedRow, wanted: Mapping[str, float]) -> RowResult:
    told = f"no worker of the fleet carries {_told(wanted)}"
    return RowResult(
        row=row.id, status="wrong_hardware", lacks=(told,), ep=row.ep, device=row.device
    )


def _told(wanted: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in wanted.items()) or "anything"
