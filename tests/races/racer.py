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
from typing import TYPE_CHECKING, NamedTuple

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1])]

import numpy as np  # noqa: E402 - the path comes first
from races.meddler import LINK  # noqa: E402 - as above
from races.versions import ANSWERS, CURRENT, FEED, FORMS  # noqa: E402 - as above

import ort_lite as ort  # noqa: E402 - as above
from ctx_formats.copied_file import COPY_LIMIT  # noqa: E402 - as above
from ctx_formats.errors import Reason  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 2
HELD = 2
"""Sessions that stay open while the files go on changing under them."""
UNREADABLE = (ort.InvalidProtobuf, ort.InvalidArgument, ort.NoSuchFile)
"""A model file that is cut off is no model; with a folder's link, it may be gone."""
MIDWAY = {Reason.INTEGRITY, Reason.FORMAT, Reason.MISSING_PAYLOAD}
"""Reasons of a verdict on a payload file that is being changed."""


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
    held: list[Held] = []
    count = 0
    while count < loads or time.monotonic() < end:
        count += 1
        for one in tuple(held):
            outcome, detail = run_held(one, may_stop=is_mapped(form, folder))
            if outcome != "right":
                _say(form, mode, outcome, detail)
                one.session.close()
                held.remove(one)
        outcome, detail, session = load_once(ep, form, mode, folder)
        _say(form, mode, outcome, detail)
        if session is not None:
            held.append(Held(session, float(detail)))
            if len(held) > HELD:
                held.pop(0).session.close()
    for one in held:
        one.session.close()


class Held(NamedTuple):
    """A session that stays open while its files go on changing, and its first answer."""

    session: ort.InferenceSession
    answer: float


def run_held(held: Held, *, may_stop: bool) -> tuple[str, str]:
    """Outcome and detail of one more run.

    A session that maps its payload file may stop with InvalidGraph; all others have their own copy.
    """
    try:
        answer = answer_of(held.session)
    except ort.InvalidGraph as exc:
        is_change = exc.reason == Reason.INTEGRITY
        return "stopped" if may_stop and is_change else "finding", f"under a session: {_named(exc)}"
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding
        return "finding", f"under a session: {traceback.format_exc(limit=-3)}"
    if answer != held.answer:
        return "wrong", f"{held.answer} became {answer} under a session"
    return "right", str(answer)


def is_mapped(form: str, folder: Path) -> bool:
    """Whether sessions map a payload file of the form rather than copy it (ADR 33)."""
    sizes = [file.stat().st_size for file in (folder / "one").iterdir() if file.suffix == ".bin"]
    return FORMS[form].compiled and any(size > COPY_LIMIT for size in sizes)


def load_once(
    ep: str, form: str, mode: str, folder: Path
) -> tuple[str, str, ort.InferenceSession | None]:
    """Outcome and detail of one use of the form; a session that stays open."""
    kind = FORMS[form]
    path: Path | bytes = folder / (CURRENT if mode == LINK else "live") / kind.model
    try:
        if kind.use == "check":
            return *_check(ep, path), None
        if kind.use == "compile":
            path = _compile(ep, path)
        session = ort.InferenceSession(path, _options(form, folder), providers=[ep])
    except ort.OrtLiteError as exc:
        return "refused" if _is_refusal(exc, form, path) else "finding", _named(exc), None
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding
        return "finding", traceback.format_exc(limit=-3), None
    answers = {answer_of(session) for _ in range(RUNS)}
    if len(answers) == 1 and answers <= set(ANSWERS.values()):
        return "right", str(answers.pop()), session
    with suppress(ort.OrtLiteError):
        session.close()
    return "wrong", f"{sorted(answers)}, expected one of {sorted(ANSWERS.values())}", None


def _is_refusal(exc: ort.OrtLiteError, form: str, model: Path | bytes) -> bool:
    """Whether the error may come of changing files; a compiled model in memory does not change."""
    if isinstance(model, bytes):
        return False
    return not FORMS[form].compiled or isinstance(exc, (ort.InvalidGraph, *UNREADABLE))


def _compile(ep: str, path: Path) -> bytes:
    options = ort.SessionOptions()
    options.add_provider(ep)
    return ort.ModelCompiler(options, path, embed_compiled_data_into_model=True).compile_to_bytes()


def _check(ep: str, path: Path) -> tuple[str, str]:
    """Outcome and detail of the verdict on a context model.

    Each version is fit to run, so that only a file caught in the middle of a change is refused.
    """
    verdicts = ort.check_compatibility(path, providers=[ep])
    reasons = {verdict.reason for verdict in verdicts} - {None}
    if verdicts and not reasons:
        optimal = ort.OrtCompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
        is_right = all(verdict.verdict.value == optimal.value for verdict in verdicts)
        return "right" if is_right else "wrong", str(verdicts)
    return "refused" if verdicts and reasons <= MIDWAY else "finding", str(verdicts)


def _options(form: str, folder: Path) -> ort.SessionOptions:
    options = ort.SessionOptions()
    if FORMS[form].cached:
        options.add_session_config_entry("session.ep_context_cache", "1")
        options.add_session_config_entry("session.ep_context_cache_dir", str(folder / "cache"))
    return options


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
