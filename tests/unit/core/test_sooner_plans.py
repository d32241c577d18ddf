"""Plans for shapes that come again are made sooner where runs take long."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import ort_lite as ort
from ort_lite.start.load_request import LoadClock

MODEL = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, size] x) => (float[n] z) <int64[1] all = {-1}> {
    s = Shape(x) d = Cast <to = 1> (s) n = ReduceProd <keepdims = 0> (d)
    y = Div(x, n) z = Reshape(y, all)
}""").SerializeToString()
X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("load", "run", "runs"),
    [
        (0.4, 0.004, 256),  # short
        (0.4, 0.010, 80),
        (2.5, 0.100, 50),
        (0.4, 0.300, 32),  # at least
        (9.0, 0.005, 256),  # at most
    ],
)
def test_as_many_runs_as_take_twice_as_long_as_the_load(load: float, run: float, runs: int) -> None:
    clock = LoadClock(total=load)
    clock.note_first_run(run)
    assert clock.runs_worth_a_load(256) == runs


def plans_after(
    runs: int, monkeypatch: pytest.MonkeyPatch, *, first_run: float, setting: str = ""
) -> str:
    """Lines of `explain()` on plans, after runs of which the first seems to take `first_run`."""
    note = LoadClock.note_first_run

    def note_other_times(self: LoadClock, _seconds: float) -> None:
        self.total = 1.0
        note(self, first_run)

    monkeypatch.setattr(LoadClock, "note_first_run", note_other_times)
    options = ort.SessionOptions()
    if setting:
        options.add_session_config_entry("session.specialize_after_runs", setting)
    with ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"]) as session:
        for _ in range(runs):
            session.run(None, {"x": X})
        session.background_compile(timeout=None)
        return "".join(line for line in str(session.explain()).splitlines() if "plan for" in line)


def test_long_runs_are_counted_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not plans_after(39, monkeypatch, first_run=0.05)
    assert plans_after(41, monkeypatch, first_run=0.05)


def test_short_runs_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not plans_after(200, monkeypatch, first_run=0.004)


@pytest.mark.parametrize("setting", ["0", "100"])
def test_a_number_that_is_set_holds(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not plans_after(60, monkeypatch, first_run=0.05, setting=setting)
