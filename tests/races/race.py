"""Sessions whose files another process changes: `python tests/races/race.py --help`.

Each form of a model is loaded and run, by each execution provider, while a process overwrites its
files in place, copies over them, cuts them off, replaces them or swaps the folder's link. A load
must give the numbers of one version, whole, or be refused with a typed error. ModelCompiler and
check_compatibility race in the same way. A running session keeps its numbers; one that maps its
payload file may stop with INVALID_GRAPH instead. Loads run in a child process; one that dies is a
finding, and another one goes on with the next race.

Payload files have 0.4 MB; with RACE_WIDTH=2200 in the environment 19 MB, and are mapped.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1])]

from races.meddler import LINK, MODES  # noqa: E402 - the path comes first
from races.versions import FORMS, make_versions  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Sequence

EPS = {
    "cpu": "CPUExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "opencl": "OpenCLExecutionProvider",
}
KEEPS_NOTHING = ("cpu",)
OUTCOMES = ("right", "refused", "stopped", "wrong", "finding", "died")
"""Of loads; "stopped" is a session that was refused later, because its mapped file had changed."""
BAD = ("wrong", "finding", "died")


@dataclass
class Tally:
    """What came of the loads of each race, by form and mode."""

    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)

    def add(self, race: tuple[str, str], outcome: str, detail: str) -> None:
        """Count a load."""
        self.counts.setdefault(race, Counter())[outcome] += 1
        if outcome in BAD:
            self.details.append(f"{' '.join(race)}: {outcome}: {detail}")

    @property
    def bad(self) -> int:
        """Loads that were neither right nor refused."""
        return sum(counter[outcome] for counter in self.counts.values() for outcome in BAD)

    def lines(self, ep: str) -> list[str]:
        """A table, one line for each form."""
        found = []
        for form in dict.fromkeys(form for form, _ in self.counts):
            total: Counter[str] = Counter()
            for (name, _), counter in self.counts.items():
                if name == form:
                    total += counter
            loads = total.total() - total["stopped"]
            cells = " ".join(f"{total[name]:>8}" for name in OUTCOMES)
            found.append(f"{ep:9} {form:15} {loads:>8} {cells}")
        return found


def main() -> int:
    """Run the races; 1 if a load was neither right nor refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ep", choices=sorted(EPS), action="append")
    parser.add_argument("--form", choices=sorted(FORMS), action="append")
    parser.add_argument("--mode", choices=[*MODES, LINK], action="append")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="for each form of each EP (%(default)s)"
    )
    asked = parser.parse_args()
    modes = asked.mode or [*MODES, LINK]
    head = " ".join(f"{name:>8}" for name in ("loads", *OUTCOMES))
    sys.stdout.write(f"{'ep':9} {'form':15} {head}\n")
    bad = 0
    for ep in asked.ep or EPS:
        tally = race(ep, asked.form or forms_of(ep), modes, loads=1, seconds=asked.seconds)
        sys.stdout.write("\n".join(tally.lines(ep)) + "\n")
        sys.stdout.flush()
        sys.stderr.write("".join(f"{ep} {line}\n" for line in tally.details))
        bad += tally.bad
    return int(bool(bad))


def forms_of(ep: str) -> list[str]:
    """The forms in which the EP can be given a model."""
    keeps = ep not in KEEPS_NOTHING
    return [name for name, form in FORMS.items() if keeps or not (form.compiled or form.cached)]


def race(
    ep: str, forms: Sequence[str], modes: Sequence[str], *, loads: int, seconds: float
) -> Tally:
    """Run every mode on every form.

    Args:
        ep: One of EPS.
        forms: Some of FORMS.
        modes: Some of MODES, or LINK.
        loads: At least as many for each form and mode.
        seconds: At least as long for each form.
    """
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="race_") as place:
        races = []
        for form in forms:
            for mode in modes:
                folder = Path(place) / form / mode
                if mode == modes[0]:
                    make_versions(folder, form, EPS[ep])
                else:
                    _copy(Path(place) / form / modes[0], folder)
                races.append((form, mode, str(folder)))
        while races:
            races = _raced(ep, races, tally, [str(loads), str(seconds / len(modes))])
    return tally


def _raced(
    ep: str, races: list[tuple[str, str, str]], tally: Tally, bounds: list[str]
) -> list[tuple[str, str, str]]:
    """Run races in one process; those that are left if it dies."""
    command = [sys.executable, str(HERE.with_name("racer.py")), EPS[ep], *bounds]
    given = "".join(json.dumps(one) + "\n" for one in races)
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryFile("w+") as wanted:
        wanted.write(given)
        wanted.seek(0)
        with subprocess.Popen(
            command, stdin=wanted, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as child:
            assert child.stdout is not None
            begun = 0
            for line in child.stdout:
                told = json.loads(line)
                if told[0] == "race":
                    begun += 1
                else:
                    tally.add((told[0], told[1]), told[2], told[3])
        if not child.returncode:
            return []
        errors.seek(0)
        said = errors.read()[-500:]
    form, mode, _ = races[max(begun - 1, 0)]
    tally.add((form, mode), "died", f"{_ending(child.returncode)} {said}")
    return races[max(begun, 1) :]


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"status {code}"


def _copy(source: Path, target: Path) -> None:
    for name in ("one", "two", "live"):
        (target / name).mkdir(parents=True)
        for file in (source / name).iterdir():
            (target / name / file.name).write_bytes(file.read_bytes())
    os.symlink("one", target / "current")  # noqa: PTH211 - a relative target


if __name__ == "__main__":
    sys.exit(main())
