"""What a Dask worker does with a row: run it as `ort-lite hw run` would, and store its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ctx_formats.unfinished import temporary_folder
from ort_lite.hw.facts import read_facts
from ort_lite.hw.plan import required_libraries
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.row_setup import Workplace
from ort_lite.hw.rows import expand
from ort_lite.hw.run_row import run_row

if TYPE_CHECKING:
    from collections.abc import Sequence


class FleetJob(msgspec.Struct, frozen=True, kw_only=True):
    """A row for a worker.

    Attributes:
        file: The matrix, where the worker has it.
        cache: Of environments, on the worker.
        artifacts: fsspec URL under which each row gets a folder; "" keeps nothing but the result.
    """

    file: str
    cache: str
    suites: tuple[str, ...]
    artifacts: str = ""
    row: str = ""


def run_job(job: FleetJob) -> bytes:
    """Run the row; its result as JSON.

    Raises:
        MatrixError: The worker's matrix is wrong, or has no such row.
        OSError: The artifacts cannot be stored.
    """
    file = Path(job.file)
    matrix = read_matrix(file, outdated=True)
    row = expand(matrix)[job.row]
    with temporary_folder("ort-lite-row-") as folder:
        place = Workplace(
            matrix=matrix,
            root=file.parent,
            out=Path(folder),
            cache=Path(job.cache),
            facts=read_facts(libraries=required_libraries([row])),
            environ=dict(os.environ),
        )
        result = run_row(row, place, job.suites, lambda _: None)
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
