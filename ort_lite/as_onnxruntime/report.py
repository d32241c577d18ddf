"""The report at exit: which model ran on which execution providers, how long, cache hit or miss."""

from __future__ import annotations

import atexit
import json
import os
import sys
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.as_onnxruntime.sessions import InferenceSession
from ort_lite.as_onnxruntime.settings import STDERR
from ort_lite.status import OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.ep.device_tensors import Place
    from ort_lite.ep.interface import Value
    from ort_lite.run_options import RunOptions

SCHEMA_VERSION = 1


@dataclass(slots=True)
class SessionRecord:
    """One session, from its making on.

    Attributes:
        model: Its file, or how many bytes it had.
        error: Why it was not made; "" if it was.
        providers: Those that it runs on, in order of preference.
        nodes: How many run on each, bodies included.
        load: As LoadReport.to_json gives it.
        runs: How many calls of `run` have ended, failed ones included.
        first: Seconds that the first one took.
        seconds: That all took together; concurrent ones each count.
    """

    model: str
    error: str = ""
    providers: Sequence[str] = ()
    nodes: Mapping[str, int] = field(default_factory=dict)
    load: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 0
    first: float = 0.0
    seconds: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def note_run(self, seconds: float) -> None:
        """A call of `run` has ended; may be called by many threads."""
        with self._lock:
            if not self.runs:
                self.first = seconds
            self.runs += 1
            self.seconds += seconds

    def to_json(self) -> dict[str, Any]:
        """The entry as a JSON object."""
        return {
            "model": self.model,
            "error": self.error,
            "providers": list(self.providers),
            "nodes": dict(self.nodes),
            "load": dict(self.load),
            "runs": {
                "count": self.runs,
                "first_s": round(self.first, 6),
                "total_s": round(self.seconds, 6),
            },
        }

    def __str__(self) -> str:
        """The entry as one line of text."""
        if self.error:
            return f"{self.model}: no session: {self.error}"
        nodes = ", ".join(f"{name} {count}" for name, count in self.nodes.items())
        cache = self.load["cache"]
        why = f" ({cache['reason']})" if cache["reason"] else ""
        line = f"{self.model}: nodes: {nodes or 'none'}; loaded in {self.load['total_s']:.3f} s, "
        line += f"model cache: {cache['state']}{why}; runs: {self.runs}"
        if self.runs:
            line += f" in {self.seconds:.3f} s, the first {self.first:.3f} s"
        if self.runs > 1:
            line += f", then {(self.seconds - self.first) / (self.runs - 1):.4f} s each"
        return line


class SessionsReport:
    """The sessions of a process, written when it ends; a forked child has a report of its own."""

    def __init__(self, target: str) -> None:
        """To the file `target`, or to stderr for "-"."""
        self._target = target
        self._records: list[SessionRecord] = []
        self._process = 0

    def add(self, record: SessionRecord) -> None:
        """Say `record` at exit."""
        if self._process != os.getpid():
            self._process, self._records = os.getpid(), []
            self._write_at_exit()
        self._records.append(record)

    def write(self) -> None:
        """Write what there is, once."""
        records, self._records = self._records, []
        if not records or self._process != os.getpid():
            return
        if self._target == STDERR:
            lines = [f"ort_lite in place of onnxruntime, process {os.getpid()}:"]
            sys.stderr.write("\n  ".join([*lines, *map(str, records)]) + "\n")
            return
        summary = {
            "schema_version": SCHEMA_VERSION,
            "pid": os.getpid(),
            "argv": sys.argv,
            "sessions": [record.to_json() for record in records],
        }
        try:
            # One write of a line: processes that end at once do not mix theirs.
            with open(self._target, "ab", buffering=0) as file:  # noqa: PTH123 - as installation.py
                file.write(json.dumps(summary).encode() + b"\n")
        except OSError as exc:
            sys.stderr.write(f"ort_lite: the report cannot be written to {self._target}: {exc}\n")

    def _write_at_exit(self) -> None:
        """By atexit; workers of multiprocessing leave by os._exit, after what is finalized."""
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            from multiprocessing.util import Finalize  # noqa: PLC0415 - lazy: rare

            Finalize(None, self.write, exitpriority=0)
        else:
            atexit.register(self.write)


class ReportedSession(InferenceSession):
    """The stand-in's session, which adds what it does to a report."""

    report: ClassVar[SessionsReport]

    def __init__(self, path_or_bytes: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as the stand-in's
        """Accept the same arguments as the stand-in's session."""
        self._record = SessionRecord(_model_label(path_or_bytes))
        self.report.add(self._record)
        try:
            super().__init__(path_or_bytes, *args, **kwargs)
        except (OrtLiteError, ValueError, TypeError) as exc:
            self._record.error = str(exc)
            raise
        self._describe()

    def set_providers(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as the stand-in's
        """As the stand-in's; a record of its own."""
        self._record = SessionRecord(self._record.model)
        self.report.add(self._record)
        super().set_providers(*args, **kwargs)
        self._describe()

    def _run_plain(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
        places: Mapping[str, Place] | None = None,
    ) -> list[Value]:
        """As ort_lite's, which every form of `run` calls, timed."""
        began = perf_counter()
        try:
            return super()._run_plain(output_names, input_feed, run_options, places)
        finally:
            self._record.note_run(perf_counter() - began)

    def _describe(self) -> None:
        self._record.providers = self.get_providers()
        self._record.nodes = self.explain().node_counts()
        self._record.load = self.load_report().to_json()


def reported_session_class(target: str) -> type[ReportedSession]:
    """The class of sessions that are reported to `target`."""
    return type("ReportedSession", (ReportedSession,), {"report": SessionsReport(target)})


def _model_label(model: object) -> str:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return f"{len(model):,} bytes"
    return os.fspath(model) if isinstance(model, (str, os.PathLike)) else repr(type(model))
