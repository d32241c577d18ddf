"""Loads and runs a model whose files another process changes; prints what came of each load.

    python racer.py EP LOADS SECONDS < RACES

RACES are lines of JSON: [form, mode, folder]. Each is run until there were LOADS loads and SECONDS
have passed. A line of JSON is printed for each load, [form, mode, outcome, detail], and
"race" for each race that is done, so that a process that dies says where.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1])]

import numpy as np  # noqa: E402 - the path comes first
from races.meddler import LINK  # noqa: E402 - as above
from races.versions import ANSWERS, CURRENT, FEED, FORMS  # noqa: E402 - as above

import ort_lite as ort  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 2
HELD = 2
"""Sessions that stay open while the files go on changing under them."""
UNREADABLE = (ort.InvalidProtobuf, ort.InvalidArgument, ort.NoSuchFile)
"""A model file that is cut off is no model; with a folder's link, it may be gone."""


def main(ep: str, loads: int, seconds: float) -> None:
    """Run the races of the input."""
    for line in sys.stdin:
        form, mode, folder = json.loads(line)
        _say("race", form, mode)
        with meddled(Path(folder), mode):
            _race(ep, form, mode, Path(folder), loads, seconds)


@contextmanager
def meddled(folder: Path, mode: str) -> Iterator[None]:
    command = [sys.executable, "-S", str(HERE.with_name("meddler.py")), str(folder), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        if not child.stdout.readline():
            raise RuntimeError(f"the process that changes {folder} could not begin")
        try:
            yield
        finally:
            child.stdin.close()
    if child.returncode:
        raise RuntimeError(f"the process that changes {folder} ended with {child.returncode}")


def _race(ep: str, form: str, mode: str, folder: Path, loads: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    held: list[tuple[ort.InferenceSession, float]] = []
    count = 0
    while count < loads or time.monotonic() < end:
        count += 1
        for session, answer in held:
            if answer_of(session) != answer:
                _say(form, mode, "wrong", f"{answer} became {answer_of(session)} under a session")
        outcome, detail, session = load_once(ep, form, mode, folder)
        _say(form, mode, outcome, detail)
        if session is not None:
            held.append((session, float(detail)))
            if len(held) > HELD:
                held.pop(0)[0].close()
    for session, _ in held:
        session.close()


def load_once(
    ep: str, form: str, mode: str, folder: Path
) -> tuple[str, str, ort.InferenceSession | None]:
    kind = FORMS[form]
    path = folder / (CURRENT if mode == LINK else "live") / kind.model
    options = ort.SessionOptions()
    if kind.cached:
        options.add_session_config_entry("session.ep_context_cache", "1")
        options.add_session_config_entry("session.ep_context_cache_dir", str(folder / "cache"))
    try:
        session = ort.InferenceSession(path, options, providers=[ep])
    except ort.InvalidGraph as exc:
        return "refused", type(exc).__name__, None
    except ort.OrtLiteError as exc:
        allowed = not kind.compiled or isinstance(exc, UNREADABLE)
        return "refused" if allowed else "finding", _named(exc), None
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding
        return "finding", traceback.format_exc(limit=-3), None
    answers = {answer_of(session) for _ in range(RUNS)}
    if len(answers) == 1 and answers <= set(ANSWERS.values()):
        return "right", str(answers.pop()), session
    with suppress(ort.OrtLiteError):
        session.close()
    return "wrong", f"{sorted(answers)}, expected one of {sorted(ANSWERS.values())}", None


def answer_of(session: ort.InferenceSession) -> float:
    """The number that all elements of the answer are; a mixture has several."""
    (found,) = session.run(None, FEED)
    numbers = np.unique(found)
    return float(numbers[0]) if len(numbers) == 1 else float("nan")


def _named(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}"


def _say(*told: str) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
