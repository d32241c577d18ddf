"""The runner of the tests under Wine: what it keeps when it is stopped, and what runs anew.

Wine itself is not needed: here Linux' own Python stands for the machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from windows.machine import Machine
from windows.record import FileOutcomes, Record, checkout_key, open_record, read_log
from windows.run_slice import SliceRun
from windows.slices import SLICES, UnknownSliceError, files_of
from windows.summary import print_summary

ROOT = Path(__file__).parents[3]
FILE = "tests/test_it.py"
TESTS = """\
import os, sys
from pathlib import Path
import pytest

def note(name):
    with Path("ran.txt").open("a") as file:
        file.write(name + " ")

def test_a(): note("a")
def test_a_too(): note("a_too"); assert 1 == 2, "one is not two"
def test_fatal():
    note("fatal")
    if not Path("mended").exists():
        os._exit(3)
@pytest.mark.skip(reason="no such device")
def test_skipped(): pass
def test_last(): note("last")
"""


class LocalMachine(Machine):
    """This system's Python, with paths as they are."""

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, *map(str, arguments)]

    def environment(self, **more: str) -> dict[str, str]:
        return {**os.environ, **more, "PYTHONPATH": str(ROOT / "tests")}

    def path(self, path: Path) -> str:
        return str(path)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    checkout = tmp_path / "checkout"
    (checkout / "tests").mkdir(parents=True)
    (checkout / "pytest.toml").write_text("[pytest]\n")
    (checkout / FILE).write_text(TESTS)
    (checkout / "product.py").write_text("")
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    (tmp_path / "logs").mkdir()
    return LocalMachine(tmp_path)


def run(machine: Machine, record: Record) -> tuple[FileOutcomes, list[str]]:
    """The outcomes of FILE, and which of its tests ran now."""
    ran = machine.checkout / "ran.txt"
    ran.unlink(missing_ok=True)
    reported = []
    is_done = record.read(FILE).complete
    slice_run = SliceRun(
        machine, record, "own", [FILE], lambda file, _: reported.append(file), limits=()
    )
    assert slice_run.run() == ""
    assert reported == ([] if is_done else [FILE])
    return record.read(FILE), ran.read_text().split() if ran.exists() else []


def test_a_test_that_ends_its_process_costs_that_test_alone(machine: Machine) -> None:
    record = open_record(machine.folder / "outcomes", machine.checkout, "wine")
    outcomes, ran = run(machine, record)
    assert ran == ["a", "a_too", "fatal", "last"]
    assert {test.partition("::test_")[2]: found for test, found in outcomes.outcomes.items()} == {
        "a": "passed",
        "a_too": "failed",
        "fatal": "hung",
        "skipped": "skipped",
        "last": "passed",
    }
    assert "one is not two" in outcomes.texts[f"{FILE}::test_a_too"]
    assert run(machine, record)[1] == []


def test_a_stopped_run_goes_on_where_it_stopped(machine: Machine) -> None:
    record = open_record(machine.folder / "outcomes", machine.checkout, "wine")
    done, stopped = f"{FILE}::test_a", f"{FILE}::test_a_too"
    record.append(
        FILE,
        {"outcome": "collected", "tests": 5},
        {"test": done, "outcome": "started"},
        {"test": done, "outcome": "passed", "text": ""},
        {"test": done, "outcome": "finished", "seconds": 1.5},
        {"test": stopped, "outcome": "started"},
    )
    with record.log(FILE).open("a") as log:
        log.write('{"test": "tests/test_it.py::test_a_t')  # the process was killed here
    assert record.read(FILE).running == [stopped]
    (machine.checkout / "mended").touch()
    outcomes, ran = run(machine, record)
    assert ran == ["a_too", "fatal", "last"]
    assert (outcomes.tests, outcomes.count("passed"), outcomes.failures) == (5, 3, [stopped])


def test_failures_alone_run_anew_if_asked(machine: Machine) -> None:
    record = open_record(machine.folder / "outcomes", machine.checkout, "wine")
    run(machine, record)
    (machine.checkout / "mended").touch()
    record.forget_failures(FILE)
    assert record.read(FILE).count("passed") == 2
    outcomes, ran = run(machine, record)
    assert ran == ["a_too", "fatal"]
    assert outcomes.failures == [f"{FILE}::test_a_too"]
    record.forget(FILE)
    assert record.read(FILE) == FileOutcomes()


def test_a_change_makes_the_tests_run_again_that_it_can_affect(machine: Machine) -> None:
    folder, root = machine.folder / "outcomes", machine.checkout
    before = open_record(folder, root, "wine")
    log = before.log(FILE)
    (root / "tests" / "test_other.py").write_text("")
    assert open_record(folder, root, "wine").log(FILE) == log
    (root / FILE).write_text(TESTS + "# changed")
    assert before.log(FILE).parent == log.parent
    assert before.log(FILE) != log
    (root / "product.py").write_text("changed")
    assert open_record(folder, root, "wine").folder != before.folder
    assert checkout_key(root, "wine") != checkout_key(root, "another wine")


def test_a_file_that_cannot_be_imported_fails_and_one_skipped_as_a_whole_says_why(
    machine: Machine,
) -> None:
    record = open_record(machine.folder / "outcomes", machine.checkout, "wine")
    (machine.checkout / FILE).write_text("import not_there")
    assert list(run(machine, record)[0].outcomes.items()) == [(FILE, "failed")]
    (machine.checkout / FILE).write_text("import pytest; pytest.importorskip('not_there')")
    outcomes = run(machine, record)[0]
    assert outcomes.outcomes == {FILE: "skipped"}
    assert "could not import 'not_there'" in outcomes.texts[FILE]


def test_the_summary_counts_and_gives_reasons(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    record = open_record(machine.folder / "outcomes", machine.checkout, "wine")
    run(machine, record)
    assert print_summary(record, {"own": [FILE, "tests/test_not_run.py"]}) == 2
    shown = capsys.readouterr().out
    row = next(line for line in shown.splitlines() if line.startswith("| own"))
    assert [cell.strip() for cell in row.split("|")][2:7] == ["1 of 2", "2", "1", "1", "1"]
    assert f"failed: {FILE}::test_a_too: " in shown
    assert f"hung: {FILE}::test_fatal: the process ended with 3" in shown
    assert "1 skipped: no such device" in shown


def test_a_line_of_a_log_that_was_cut_off_costs_one_step() -> None:
    outcomes = read_log('{"test": "t", "outcome": "started"}\n{"test": "t", "outc')
    assert outcomes.running == ["t"]
    assert outcomes.outcomes == {}


def test_slices_are_names_files_or_folders() -> None:
    assert all(files_of(name, ROOT) for name in SLICES)
    assert files_of("hostile", ROOT)[-1] == "tests/hostile/test_attacks.py"
    own = "tests/unit/repo/test_windows_runner.py"
    assert files_of(own, ROOT) == files_of(str(ROOT / own), ROOT) == (own,)
    assert own in files_of("tests/unit/repo", ROOT)
    for wrong, text in (
        ("formatz", "no slice, test file or folder formatz; the slices are formats, "),
        (f"{own}::test_x", "names a test; name its file"),
        ("tests/conftest.py", "is not a test file"),
        ("docs", "is not in"),
        ("tests/windows", "has no test files"),
    ):
        with pytest.raises(UnknownSliceError, match=text):
            files_of(wrong, ROOT)
