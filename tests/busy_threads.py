"""One session used by several threads at once, each with shapes of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import ort_lite as ort

RUNS = 50


def wrongly_answered(session: ort.InferenceSession) -> list[int]:
    """Runs `mlp("rows")` with 1 to 6 rows in as many threads; rows whose answer ever changed."""
    wrong: list[int] = []

    def work(rows: int) -> None:
        x = np.full((rows, 4), rows, np.float32)
        first = session.run(None, {"x": x})[0]
        wrong.extend(
            rows for _ in range(RUNS) if not np.array_equal(session.run(None, {"x": x})[0], first)
        )

    threads = [threading.Thread(target=work, args=(rows,)) for rows in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong
