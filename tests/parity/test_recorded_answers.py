"""The CPU EP gives what onnxruntime gave when it was recorded, at realistic sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from parity.realistic.cases import all_cases
from parity.realistic.drawn import normal, order, whole
from parity.realistic.summary import Summary, inputs_digest, summaries

import ort_lite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from parity.realistic.case import RecordedCase

RECORD = Path(__file__).parents[1] / "golden" / "onnxruntime_1.31.1" / "answers.json"
CASES = {case.name: case for case in all_cases()}
OPERATORS = 240
"""Of ai.onnx, ai.onnx.ml and com.microsoft; onnxruntime has CPU kernels for about 290."""


@pytest.fixture(scope="module")
def recorded() -> Mapping[str, Any]:
    rows: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))["cases"]
    return rows


def test_every_case_has_a_record_and_every_record_a_case(recorded: Mapping[str, Any]) -> None:
    assert set(recorded) == set(CASES)
    assert len({(case.domain, case.op) for case in CASES.values()}) >= OPERATORS


@pytest.mark.parametrize("name", CASES)
def test_the_results_are_near_the_recorded_ones(name: str, recorded: Mapping[str, Any]) -> None:
    case, row = CASES[name], recorded[name]
    inputs = case.drawn()
    assert inputs_digest(inputs) == row["inputs"], "these are not the inputs that were recorded"
    model, feed = case.model_and_feed(inputs)
    with ort_lite.InferenceSession(model, providers=["CPUExecutionProvider"]) as session:
        found = summaries(case, session.run(None, feed))
    wanted = [Summary.read(one) for one in row["outputs"]]
    assert len(found) == len(wanted)
    assert not [text for a, b in zip(wanted, found, strict=True) if (text := a.difference(b, case))]


def near(case: RecordedCase, one: np.ndarray, other: np.ndarray) -> bool:
    (a,), (b,) = summaries(case, [one]), summaries(case, [other])
    return not a.difference(b, case)


def test_a_summary_tells_wrong_results_from_near_ones() -> None:
    case = CASES["Softplus-21"]
    assert case.rtol == 2e-6
    x = normal(40, 500).array("x")
    block = x.copy()
    block[3] *= 1.01
    assert near(case, x, x)
    assert near(case, x, x * np.float32(1 + 1e-6))
    for wrong in (x * np.float32(1.0001), x[::-1], x.T, x.astype(np.float64), block):
        assert not near(case, x, wrong)
    nan = x.copy()
    nan[7, 7] = np.nan
    assert not near(case, x, nan)
    assert near(case, nan, nan)


def test_whole_numbers_are_equal_unless_steps_are_allowed() -> None:
    exact, stepping = CASES["ArgMax-21"], CASES["com.microsoft.QLinearAdd-1"]
    x = whole(0, 200, 40, 500, dtype=np.uint8).array("x")
    other = x.copy()
    other[0, 0] += 1
    assert near(stepping, x, other)
    assert not near(exact, x, other)
    assert not near(stepping, x, x + np.uint8(1))
    assert not near(stepping, x, x[::-1])


def test_drawn_numbers_are_the_same_everywhere() -> None:
    # Philox's stream, which numpy promises to keep; computed with numpy 2.4.6.
    assert whole(0, 1000, 4).array("here").tolist() == [945, 994, 47, 894]
    assert sorted(order(2, 50).array("x")[1].tolist()) == list(range(50))
    assert abs(float(normal(100_000, dtype=np.float64).array("x").std()) - 1) < 0.01
