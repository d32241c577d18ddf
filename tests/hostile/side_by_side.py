"""Tries hostile cases on onnxruntime and on ort_lite's execution providers, side by side.

python tests/hostile/side_by_side.py                        # a table of all cases
python tests/hostile/side_by_side.py --only feeds --engines cpu,openvino --details
python tests/hostile/side_by_side.py --markdown             # the table of docs/robustness.md
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from attacks import load_all  # noqa: E402 - found by the path above
from attacks.attack import ATTACKS, ENGINES, Attack  # noqa: E402 - as above
from processor_time import processor_seconds  # noqa: E402 - as above

KINDS = ("right", "typed", "raw", "wrong", "crash", "hang")
WORDS = {
    "right": "right answer",
    "typed": "typed error",
    "raw": "raw error",
    "wrong": "wrong answer",
    "crash": "crash",
    "hang": "hang",
}
FORKS = hasattr(os, "fork")
STATUS = "status"
"""Kind of the line that a process sends once its fork has ended: `["status", -11]`."""
SECONDS = 180.0
"""A case hangs if it uses no processor time for this long, or uses this much: a hundred times what
the slowest needs. On an overloaded machine a case may be slow without hanging."""
MOST_WAITS = 10
"""Times SECONDS, after which a case hangs, whatever it uses."""
LEAST_USED = 0.05
"""Processor seconds, within SECONDS, of a process that does something."""


@dataclass
class Worker:
    """A process that runs cases on one engine; a new one after a crash or a hang.

    Cases that need a process of their own get forks of a second one, where the system has forks.
    onnxruntime starts in its import: in a fork some of its exits abort.
    """

    engine: str
    folder: str
    seconds: float = SECONDS
    _process: subprocess.Popen[str] | None = field(default=None, init=False)
    _forked: subprocess.Popen[str] | None = field(default=None, init=False)

    def outcome(self, case: Attack) -> tuple[str, str]:
        """Kind of outcome, and a line about it."""
        if case.alone and FORKS and self.engine != "onnxruntime":
            return self._outcome_in_fork(case)
        if case.alone:
            self.close()
        process = self._process = self._process or self._start_program()
        _send(process, case)
        line = self._answer(process)
        if line:
            if case.alone and (status := self.close()):
                return self._end_of(status, after=line)
            kind, detail = json.loads(line)
            if kind == "wrong":
                self.close()  # its memory may have been written into
            return kind, detail
        if line is None:
            _kill(process)
        return self._end_of(self.close(), hangs=line is None)

    def _outcome_in_fork(self, case: Attack) -> tuple[str, str]:
        """As `outcome`; the fork's exit status follows its line, or comes alone after a crash."""
        process = self._forked = self._forked or self._start_program("--forks")
        _send(process, case)
        fork = json.loads(self._answer(process) or "0")
        line = self._answer(process, fork)
        kind, detail = json.loads(line) if line else ("", "")
        end = line if kind in ("", STATUS) else self._answer(process, fork)
        if not end:
            _kill(process)
            return self._end_of(self.close(), hangs=end is None)
        status = json.loads(end)[1]
        if kind == STATUS:
            return self._end_of(status)
        return self._end_of(status, after=line) if status else (kind, detail)

    def _end_of(
        self, status: int, *, hangs: bool = False, after: str | None = ""
    ) -> tuple[str, str]:
        """Outcome of a case whose process did not answer, or ended badly after its answer."""
        log = Path(self.folder, "stacks.txt")
        stacks = log.read_text(errors="replace") if log.exists() else ""
        if hangs or stacks:  # reading stacks of threads that run may crash the process
            return "hang", f"no answer; stacks after {self.seconds:.0f} s:\n{stacks}"
        return "crash", f"exit status {status}{f' after {after.strip()}' if after else ''}"

    def _answer(self, process: subprocess.Popen[str], fork: int = 0) -> str | None:
        """The next line, "" if the process ends without, None if it hangs, or its fork."""
        assert process.stdout is not None, "a pipe"
        lines = _lines_of(process.stdout)
        begun = used = processor_seconds(process, fork)
        for _ in range(MOST_WAITS):
            with suppress(Empty):
                return lines.get(timeout=self.seconds)
            before, used = used, processor_seconds(process, fork)
            if used - before < LEAST_USED or used - begun > self.seconds:
                return None
        return None

    def _start_program(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, HERE / "attacks" / "worker.py"),
                *(self.engine, self.folder, str(0.95 * self.seconds), *options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            start_new_session=FORKS,  # so that forks that hang are killed with it
        )

    def close(self) -> int:
        """End the processes; the first exit status that is not 0."""
        processes = (self._process, self._forked)
        self._process = self._forked = None
        statuses = [self._wait_for_end(process) for process in processes if process is not None]
        return next(filter(None, statuses), 0)

    def _wait_for_end(self, process: subprocess.Popen[str]) -> int:
        assert process.stdin is not None, "a pipe"
        assert process.stdout is not None, "a pipe"
        with suppress(OSError):  # it is gone already
            process.stdin.close()
        status = process.wait(self.seconds)
        process.stdout.close()
        return status


def _send(process: subprocess.Popen[str], case: Attack) -> None:
    assert process.stdin is not None, "a pipe"
    process.stdin.write(case.name + "\n")
    process.stdin.flush()


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process, and its forks."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _lines_of(pipe: IO[str]) -> SimpleQueue[str]:
    """A queue that gets the next line, or "" at the end; pipes have no time limit on Windows."""
    lines: SimpleQueue[str] = SimpleQueue()
    Thread(target=lambda: lines.put(pipe.readline()), daemon=True).start()
    return lines


def cases_of(group: str) -> list[Attack]:
    """All cases about something."""
    load_all()
    return [case for name, case in ATTACKS.items() if name.split(": ")[0] == group]


def groups() -> list[str]:
    """What the cases are about: their names up to the colon."""
    load_all()
    return list(dict.fromkeys(name.split(": ")[0] for name in ATTACKS))


def results(
    engines: list[str], only: str, *, show: bool = False
) -> dict[str, dict[str, tuple[str, str]]]:
    """By case, then by engine."""
    load_all()
    found: dict[str, dict[str, tuple[str, str]]] = {}
    begun = [case for name, case in ATTACKS.items() if name.startswith(only)]
    chosen = begun or [case for name, case in ATTACKS.items() if only in name]
    with tempfile.TemporaryDirectory() as folder:
        for engine in engines:
            worker = Worker(engine, folder)
            for case in chosen:
                if engine in case.engines:
                    found.setdefault(case.name, {})[engine] = worker.outcome(case)
                    if show:
                        kind, detail = found[case.name][engine]
                        line = f"{engine:12} {kind:6} {case.name}  {ascii(detail)[1:-1]}\n"
                        sys.stdout.write(line)
                        sys.stdout.flush()
            worker.close()
    return found


def summary(found: dict[str, dict[str, tuple[str, str]]], engines: list[str]) -> list[list[str]]:
    """Rows: group of cases and engine, then how many cases came to what."""
    rows = []
    for group in dict.fromkeys(name.split(":")[0] for name in found):
        for engine in engines:
            kinds = Counter(
                by[engine][0]
                for name, by in found.items()
                if name.startswith(group + ":") and engine in by
            )
            if kinds:
                rows.append([group, engine, *(str(kinds[kind] or "") for kind in KINDS)])
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--only", default="", help="part of the names of cases")
    parser.add_argument("--details", action="store_true", help="print each case as it is run")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    engines = given.engines.split(",")
    found = results(engines, given.only, show=given.details)
    head = ["cases about", "engine", *(WORDS[kind] for kind in KINDS)]
    rows = summary(found, engines)
    if given.markdown:
        lines = [head, ["---"] * len(head), *rows]
        text = "\n".join(f"| {' | '.join(row)} |" for row in lines)
    else:
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        text = "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        )
    sys.stdout.write(f"{len(found)} cases\n{text}\n")


if __name__ == "__main__":
    main()
