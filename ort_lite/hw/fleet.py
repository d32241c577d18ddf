"""Runs rows on a fleet: Dask assigns them to workers that offer their machines' resources."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ctx_formats.temporary_files import temporary_folder
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.facts import read_facts
from ort_lite.hw.plan import required_libraries
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.result import RowResult
from ort_lite.hw.row_setup import RunEnvironment
from ort_lite.hw.rows import expand, row_digest
from ort_lite.hw.run_row import run_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ort_lite.hw.rows import ExpandedRow
    from ort_lite.hw.schema import Matrix


class FleetJob(msgspec.Struct, frozen=True, kw_only=True):
    """A row to run on a worker.

    Attributes:
        file: Path of the matrix on the worker.
        cache: Folder of environments on the worker.
        artifacts: fsspec URL under which each row gets a folder; "" keeps only the result.
    """

    file: str
    cache: str
    suites: tuple[str, ...]
    artifacts: str = ""
    row: str = ""


def run_job(job: FleetJob) -> bytes:
    """Run the row as `ort-lite hw run` does, store its files, and return its result as JSON.

    Raises:
        MatrixError: The worker's matrix is invalid, or has no such row.
        OSError: The artifacts cannot be stored.
    """
    file = Path(job.file)
    matrix = read_matrix(file, outdated=True)
    row = expand(matrix)[job.row]
    with temporary_folder("ort-lite-row-") as folder:
        run_env = RunEnvironment(
            matrix=matrix,
            root=file.parent,
            out=Path(folder),
            cache=Path(job.cache),
            facts=read_facts(libraries=required_libraries([row])),
            environ=dict(os.environ),
        )
        result = run_row(row, run_env, job.suites, lambda _: None)
        if job.artifacts:
            _store(Path(folder) / row.folder, job.artifacts, matrix.artifacts.produce)
    return msgspec.json.encode(result)


def _store(folder: Path, url: str, patterns: Sequence[str]) -> None:
    """Copy the files that the patterns name to `url`/<the row's folder>."""
    from fsspec.core import url_to_fs  # noqa: PLC0415 - lazy: rare

    files, base = url_to_fs(url)
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        target = f"{base}/{folder.name}/{path.relative_to(folder).as_posix()}"
        files.makedirs(target.rpartition("/")[0], exist_ok=True)
        files.put_file(str(path), target)


PREFIX = "dask://"
CONNECT_TIMEOUT_S = 20
POLL_S = 0.5
GRACE_S = 10
"""Seconds that a row waits for another worker after its last suitable one is gone."""


def run_on_fleet(
    address: str,
    rows: Sequence[ExpandedRow],
    matrix: Matrix,
    job: FleetJob,
    progress: Callable[[str], None],
) -> Iterator[RowResult]:
    """Yield results as they arrive: one for every row, whatever happens to its worker.

    If a row's worker dies, Dask tries another, until three workers have died or no suitable one is
    left; then the row's result has status `lost`.

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
            resources = matrix.machines[row.machine].resources
            if not _has_worker(client, resources):
                yield _unplaced_result(row, resources)
                continue
            own_job = msgspec.structs.replace(job, row=row.id)
            future = client.submit(
                run_job,
                own_job,
                resources=resources or None,
                pure=False,
                key=f"{row.id}-{time.time()}",
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
        raise MatrixError('--scheduler needs Dask: pip install "ort-lite[fleet]"') from exc
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
            yield _read_result(future, waiting.pop(future), matrix)
        for future, row in list(waiting.items()):
            resources = matrix.machines[row.machine].resources
            if _has_worker(client, resources):
                orphaned.pop(future, None)
                continue
            since = orphaned.setdefault(future, time.monotonic())
            if time.monotonic() - since > GRACE_S:
                waiting.pop(future)
                future.cancel()
                why = f"the last worker with {_resources_text(resources)} is gone"
                yield _lost_result(row, why)
        time.sleep(POLL_S)


def _has_worker(client: Any, resources: Mapping[str, float]) -> bool:  # noqa: ANN401 - Dask's client
    """Whether any present worker offers the resources."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return any(
        all(worker["resources"].get(name, 0) >= amount for name, amount in resources.items())
        for worker in workers
    )


def _read_result(future: Any, row: ExpandedRow, matrix: Matrix) -> RowResult:  # noqa: ANN401 - Dask's future
    if future.cancelled():
        return _lost_result(row, "the scheduler dropped it")
    problem = future.exception()
    if problem is not None:
        return _lost_result(row, " ".join(f"{type(problem).__name__}: {problem}".split()))
    result = msgspec.json.decode(future.result(), type=RowResult)
    if result.row_digest == row_digest(row, matrix):
        return result
    text = "the worker's project has another matrix than this machine"
    return msgspec.structs.replace(result, status="environment", lacks=(text,))


def _lost_result(row: ExpandedRow, why: str) -> RowResult:
    return RowResult(row=row.id, status="lost", lacks=(why,), ep=row.ep, device=row.device)


def _unplaced_result(row: ExpandedRow, resources: Mapping[str, float]) -> RowResult:
    text = f"no worker of the fleet offers {_resources_text(resources)}"
    return RowResult(
        row=row.id, status="wrong_hardware", lacks=(text,), ep=row.ep, device=row.device
    )


def _resources_text(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in resources.items()) or "anything"
