"""What first_answer.py measured, as two tables: starts from contexts, and all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.harness.engines import OURS, PEER, PEER_CPU, RAW
from benchmarks.harness.process_turns import LOAD, OPENED_FIRST
from benchmarks.harness.report import absences, mebibytes, milliseconds, over, over_peak, text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.harness.measure import Measurement

    Found = Mapping[str, Measurement]

EXTERNAL, EMBEDDED = f"{OURS} external", f"{OURS} embedded"
FIRST = f"{OURS} {OPENED_FIRST}"
CACHED, PLAIN = f"{OURS} cache", f"{OURS} plain"
PEER_EXTERNAL, PEER_EMBEDDED, PEER_PLAIN = (
    f"{PEER} {k}" for k in ("external", "embedded", "plain")
)
RAW_EXTERNAL, RAW_CACHE, RAW_PLAIN = (f"{RAW} {k}" for k in ("external", "cache", "plain"))
CPU_PLAIN = f"{PEER_CPU} plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A number of each model.

    Attributes:
        title: What stands above it.
        of: A variant, or a variant and a step of it.
        peer: What it is a multiple of; "" where it is milliseconds or MiB itself.
        most: The ratio that was asked for.
        memory: Whether it is the peak memory.
    """

    title: str
    of: str
    peer: str = ""
    most: float | None = None
    memory: bool = False

    def cell(self, measured: Found) -> str:
        """That of one model."""
        if self.memory:
            return (
                over_peak(measured, self.of, self.peer)
                if self.peer
                else mebibytes(measured, self.of)
            )
        if not self.peer:
            return milliseconds(measured, self.of)
        return over(measured, self.of, self.peer, self.most)


FROM_CONTEXTS = (
    Column(title="external", of=EXTERNAL),
    Column(title="vs EP", of=EXTERNAL, peer=PEER_EXTERNAL, most=0.8),
    Column(title="vs OVc", of=EXTERNAL, peer=RAW_CACHE, most=0.65),
    Column(title="vs OV", of=EXTERNAL, peer=RAW_EXTERNAL),
    Column(title="vs CPU", of=EXTERNAL, peer=CPU_PLAIN),
    Column(title="first", of=FIRST),
    Column(title="vs EP", of=FIRST, peer=PEER_EXTERNAL, most=0.8),
    Column(title="vs OVc", of=FIRST, peer=RAW_CACHE, most=0.65),
    Column(title="embedded", of=EMBEDDED),
    Column(title="vs EP", of=EMBEDDED, peer=PEER_EMBEDDED, most=0.4),
)
OTHERWISE = (
    Column(title="cache", of=CACHED),
    Column(title="vs ext", of=CACHED, peer=EXTERNAL, most=1.2),
    Column(title="plain", of=PLAIN),
    Column(title="vs EP", of=PLAIN, peer=PEER_PLAIN),
    Column(title="vs OV", of=PLAIN, peer=RAW_PLAIN, most=1.0),
    Column(title="load", of=f"{EXTERNAL} {LOAD}"),
    Column(title="vs OV", of=f"{EXTERNAL} {LOAD}", peer=f"{RAW_EXTERNAL} {LOAD}", most=1.1),
    Column(title="RSS", of=EXTERNAL, memory=True),
    Column(title="OV RSS", of=RAW_EXTERNAL, memory=True),
    Column(title="vs OV", of=EXTERNAL, peer=RAW_EXTERNAL, memory=True),
)

LEGEND = """
Milliseconds from before a process is started to its first answer, medians; ratios are medians over
turns; >: more than was asked for models of 4 MB and more.
external, embedded: ort_lite from its context of that kind. first: the external context, opened
before the program imports numpy; the others bring numpy in themselves, so it makes no difference
to them. vs EP: over onnxruntime with onnxruntime-ep-openvino, from a context of the same kind of
its own. vs OVc: over openvino alone with its cache_dir; vs OV: over its import_model of a map.
vs CPU: over onnxruntime's CPU EP, plain model.
cache: ort_lite from the plain model, its compiled form in the model cache; vs ext: over external.
plain: ort_lite compiling the plain model; vs EP, vs OV: over onnxruntime with
onnxruntime-ep-openvino and openvino alone doing that.
load: session and first run from the external context once more in the same process; vs OV: over
import_model of a map and a run, in the same way. RSS, OV RSS: peak of those two processes in MiB;
vs OV: the one over the other.
"""


def tables(results: Mapping[str, Found]) -> str:
    """A row for each model in both tables, what was asked, and what the columns are."""
    both = "\n".join(_table(columns, results) for columns in (FROM_CONTEXTS, OTHERWISE))
    return both + LEGEND + absences(results)


def _table(columns: Sequence[Column], results: Mapping[str, Found]) -> str:
    rows = [
        (name, *(column.cell(measured) for column in columns)) for name, measured in results.items()
    ]
    bounds = ["" if column.most is None else f"{column.most:.2f}x" for column in columns]
    return text_table(("model", *(column.title for column in columns)), [("asked", *bounds), *rows])
