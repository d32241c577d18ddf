"""Outcomes of test files on the Windows machine, kept on disk while they are made.

Each test file has a log in `outcomes/KEY`. KEY is a digest of the machine and of the checkout
except for test files, and the name of a log ends with a digest of its test file. A run that was
stopped therefore goes on where it stopped; a change makes the tests run again that it can affect.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DIGITS = 16
MOST_KEPT = 8
"""Folders of other checkouts that stay: of a branch and main, say."""


@dataclass(slots=True)
class FileOutcomes:
    """The outcomes of one test file.

    Attributes:
        outcomes: "passed", "failed", "skipped" or "hung" by test, for those that have ended.
        texts: The end of the failure, or the reason of the skip, by test.
        running: Tests that were started and have not ended.
        tests: How many tests the file has; 0 if it was not collected.
        seconds: The time of the tests that have ended.
        complete: Each test has ended.
    """

    outcomes: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    tests: int = 0
    seconds: float = 0.0
    complete: bool = False

    def count(self, outcome: str) -> int:
        """How many tests ended so."""
        return Counter(self.outcomes.values())[outcome]

    @property
    def failures(self) -> list[str]:
        """Tests that failed, or did not end."""
        return [test for test, found in self.outcomes.items() if found not in ("passed", "skipped")]


@dataclass(frozen=True, slots=True)
class Record:
    """The logs for one state of checkout and machine."""

    folder: Path
    root: Path

    def log(self, file: str) -> Path:
        """Where the outcomes of a test file are, given relative to the root of the checkout."""
        path = self.root / file
        own = hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest()[:DIGITS]
        return self.folder / f"{file.replace('/', '.')}.{own}.jsonl"

    def read(self, file: str) -> FileOutcomes:
        """What is known of a test file."""
        log = self.log(file)
        return read_log(log.read_text(encoding="utf-8")) if log.exists() else FileOutcomes()

    def append(self, file: str, *lines: dict[str, object]) -> None:
        """Add to what is known of a test file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log(file).open("a", encoding="utf-8") as log:
            log.writelines(json.dumps(line) + "\n" for line in lines)

    def forget(self, file: str) -> None:
        """Let a test file run anew."""
        self.log(file).unlink(missing_ok=True)

    def forget_failures(self, file: str) -> None:
        """Let the tests of a file run anew that have not passed and are not skipped."""
        failures = set(self.read(file).failures)
        if not failures:
            return
        kept = [line for line in _lines(self.log(file)) if line.get("test") not in failures]
        self.forget(file)
        self.append(file, *(line for line in kept if line["outcome"] != "complete"))


def open_record(folder: Path, root: Path, machine: str) -> Record:
    """The record for the present checkout; those of the oldest checkouts are removed.

    Args:
        folder: Where records are kept.
        root: The checkout.
        machine: What the machine consists of.
    """
    record = Record(folder / checkout_key(root, machine), root)
    record.folder.mkdir(parents=True, exist_ok=True)
    record.folder.touch()
    others = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[MOST_KEPT:]:
        shutil.rmtree(old)
    return record


def checkout_key(root: Path, machine: str) -> str:
    """A digest of the machine and of each file except test files."""
    names = [
        name
        for name in checkout_files(root)
        if not (name.startswith("tests/") and PurePosixPath(name).name.startswith("test_"))
    ]
    return hashlib.sha256((machine + digest_files(root, names)).encode()).hexdigest()[:DIGITS]


def digest_files(root: Path, names: Iterable[str]) -> str:
    """A digest of the names and contents of files."""
    digest = hashlib.sha256()
    for name in names:
        contents = hashlib.sha256((root / name).read_bytes()).hexdigest()
        digest.update(f"{name}\0{contents}\n".encode())
    return digest.hexdigest()


def checkout_files(root: Path) -> list[str]:
    """Files of the checkout, new ones too, without those that git ignores."""
    listed = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others"]
    names = subprocess.run(
        [*listed, "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout
    return sorted(name for name in set(names.split("\0")) if name and (root / name).is_file())


def read_log(text: str) -> FileOutcomes:
    """Read a log. A test that was started, and has not ended, has no outcome."""
    found = FileOutcomes()
    begun: dict[str, tuple[str, str]] = {}
    for line in _parse_lines(text.splitlines()):
        test, outcome = str(line.get("test", "")), str(line["outcome"])
        if outcome == "collected":
            found.tests = int(str(line["tests"]))
        elif outcome == "complete":
            found.complete = True
        elif outcome == "started":
            begun[test] = ("", "")
        elif outcome == "finished":
            if test in begun:
                found.outcomes[test], found.texts[test] = begun.pop(test)
            found.seconds += float(str(line["seconds"]))
        elif outcome == "hung" or test not in begun:  # a whole file, or written by the runner
            found.outcomes[test], found.texts[test] = outcome, str(line["text"])
            begun.pop(test, None)
        elif begun[test][0] != "failed":
            begun[test] = outcome, str(line["text"])
    found.running = list(begun)
    return found


def _lines(log: Path) -> list[dict[str, object]]:
    return list(_parse_lines(log.read_text(encoding="utf-8").splitlines())) if log.exists() else []


def _parse_lines(lines: Iterable[str]) -> Iterable[dict[str, object]]:
    for text in lines:
        try:
            yield json.loads(text)
        except ValueError:
            continue  # cut off when its process was killed: that step counts as not done
