"""Runs test files with pytest on the Windows machine, and goes on behind tests that hang.

A process that ends during a test costs that test: it is recorded as hung, and the next process
goes on behind it. pytest's own time limit ends a test that hangs, and writes where it did.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING

from windows.outcomes import PLAN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from windows.machine import Machine
    from windows.record import FileOutcomes, Record

LONGEST_TEST = 1200
"""Seconds; the processes that a test starts take seconds each."""
LONGEST_SILENCE = LONGEST_TEST + 300
"""Seconds after which a process that records nothing is ended: it hangs where pytest cannot."""
MOST_RESTARTS = 40
LAST_WORDS = 10
"""Seconds that a process's output may arrive after its end."""
OPTIONS = (
    *("-q", "--tb=short", "--color=no", "-p", "no:cacheprovider", "-p", "windows.outcomes"),
    "--continue-on-collection-errors",
)
TIME_LIMIT = f"--timeout={LONGEST_TEST}"


@dataclass(slots=True)
class SliceRun:
    """The test files of one slice, run until each has an outcome for all of its tests.

    Attributes:
        machine: Where they run.
        record: Where their outcomes are kept.
        name: Of the slice; its output goes into a file of that name.
        files: The test files, relative to the checkout, in their order.
        report: Is called with each file that is complete, once.
        limits: Options of pytest that end a test that hangs.
    """

    machine: Machine
    record: Record
    name: str
    files: Sequence[str]
    report: Callable[[str, FileOutcomes], None]
    limits: Sequence[str] = (TIME_LIMIT,)
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def output(self) -> Path:
        """What pytest printed, process by process."""
        return self.machine.folder / "logs" / f"{self.name.replace('/', '.')}.txt"

    def run(self) -> str:
        """Run what is not done; why it could not be done, or "" if it was."""
        self.output.parent.mkdir(exist_ok=True)
        self.output.unlink(missing_ok=True)
        left = self._files_left(self.files)
        for _ in range(MOST_RESTARTS):
            if not left:
                return ""
            before = {file: len(self.record.read(file).outcomes) for file in left}
            code = self._run_pytest(left)
            self._record_hung(left, code)
            now = self._files_left(left)
            progress = any(len(self.record.read(file).outcomes) > before[file] for file in now)
            if len(now) == len(left) and not progress:
                return f"pytest ended with {code} and without an outcome: {self.output}"
            left = now
        return f"{len(left)} files are not done after {MOST_RESTARTS} processes: {self.output}"

    def _files_left(self, files: Sequence[str]) -> list[str]:
        return [file for file in files if not self.record.read(file).complete]

    def _record_hung(self, files: Sequence[str], code: int) -> None:
        for file in files:
            text = f"the process ended with {code}; see {self.output}"
            self.record.append(
                file,
                *(
                    {"test": test, "outcome": "hung", "text": text}
                    for test in self.record.read(file).running
                ),
            )

    def _run_pytest(self, files: Sequence[str]) -> int:
        plan = self.output.with_suffix(".plan.json")
        logs = {file: self.machine.path(self.record.log(file)) for file in files}
        done = [test for file in files for test in self.record.read(file).outcomes]
        plan.write_text(json.dumps({"logs": logs, "done": done}), encoding="utf-8")
        # Command lines are short on Windows. pytest reads no `-p` from a file.
        arguments = self.output.with_suffix(".args")
        arguments.write_text("\n".join(files), encoding="utf-8")
        own = self.machine.path(self.machine.checkout / "tests")
        # Through a pipe: what Wine's programs write to a file directly they may write twice.
        process = subprocess.Popen(
            self.machine.command(
                *("-X", "faulthandler", "-m", "pytest", *OPTIONS, *self.limits),
                f"@{self.machine.path(arguments)}",
            ),
            cwd=self.machine.checkout,
            env=self.machine.environment(**{PLAN: self.machine.path(plan), "PYTHONPATH": own}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        copying = Thread(target=_copy_output, args=(process, self.output), daemon=True)
        copying.start()
        self._follow(process, files)
        copying.join(LAST_WORDS)
        return process.returncode

    def _follow(self, process: subprocess.Popen[bytes], files: Sequence[str]) -> None:
        """Report files until the process ends, and end it if it does nothing for long."""
        heard = time.monotonic()
        open_files = list(files)
        while _is_running(process):
            grown = [file for file in open_files if self._has_grown(file)]
            for file in grown:
                if self._report_complete(file):
                    open_files.remove(file)
            heard = time.monotonic() if grown else heard
            if time.monotonic() - heard > LONGEST_SILENCE:
                self.machine.stop()
        for file in open_files:
            self._report_complete(file)

    def _has_grown(self, file: str) -> bool:
        log = self.record.log(file)
        size = log.stat().st_size if log.exists() else 0
        grown = size != self.sizes.get(file, 0)
        self.sizes[file] = size
        return grown

    def _report_complete(self, file: str) -> bool:
        outcomes = self.record.read(file)
        if outcomes.complete:
            self.report(file, outcomes)
        return outcomes.complete


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process runs, after a second or at its end."""
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        return True
    return False


def _copy_output(process: subprocess.Popen[bytes], path: Path) -> None:
    """Copy what a process prints. Wine's server, which it may have started, has the pipe too."""
    assert process.stdout is not None
    with path.open("ab", buffering=0) as out, process.stdout as printed:
        for line in printed:
            out.write(line)
