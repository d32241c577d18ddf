"""The short form of tests/races/race.py, and that its judgement is real."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from onnx import TensorProto, numpy_helper
from races import race as races
from races.meddler import LINK, MODES
from races.racer import answer_of, load_once
from races.versions import ANSWERS, FORMS, make_versions, proto

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files in use cannot be changed there")
CPU = "CPUExecutionProvider"
SHORT = {
    "cpu": ("plain", "plain_external"),
    "openvino": ("plain_external", "external", "shared"),
    "opencl": ("external", "shared"),
}
"""Forms for each EP, few enough for two seconds; `make races` has all of them."""


def require(ep: str) -> None:
    if races.EPS[ep] not in ort.get_available_providers():
        pytest.skip(f"{ep} has no device here")


@pytest.mark.parametrize("ep", sorted(SHORT))
def test_sessions_compute_right_or_are_refused_while_files_change(ep: str) -> None:
    require(ep)
    modes = [*MODES, LINK]
    tally = races.race(ep, SHORT[ep], modes, loads=1, seconds=0)
    assert not tally.details
    assert set(tally.counts) == {(form, mode) for form in SHORT[ep] for mode in modes}


def test_a_mixture_of_two_versions_would_be_found(tmp_path: Path) -> None:
    for name in ("w", "b"):
        mixed = proto(1.0)
        other = {tensor.name: tensor for tensor in proto(2.0).graph.initializer}
        for tensor in mixed.graph.initializer:
            if tensor.name == name:
                tensor.CopyFrom(other[name])
        assert answer(mixed.SerializeToString()) not in ANSWERS.values()
    torn = proto(1.0)
    for tensor in torn.graph.initializer:
        if tensor.name == "w":
            values = numpy_helper.to_array(tensor).copy()
            values.reshape(-1)[: values.size // 3] = 2.0
            tensor.raw_data = values.tobytes()
            assert tensor.data_type == TensorProto.FLOAT
    assert answer(torn.SerializeToString()) not in ANSWERS.values()
    make_versions(tmp_path / "race", "plain", CPU)
    (tmp_path / "race" / "live" / "m.onnx").write_bytes(torn.SerializeToString())
    assert load_once(CPU, "plain", "overwrite", tmp_path / "race")[0] == "wrong"


def answer(model: bytes | Path) -> float:
    with ort.InferenceSession(model, providers=[CPU]) as session:
        return answer_of(session)


def test_both_versions_compute_what_they_say(tmp_path: Path) -> None:
    for form in races.forms_of("cpu"):
        make_versions(tmp_path / form, form, CPU)
        for name, expected in ANSWERS.items():
            path = tmp_path / form / name / FORMS[form].model
            assert answer(path.read_bytes() if form == "plain" else path) == expected


def test_a_process_that_dies_is_a_finding_and_another_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A racer that has no time to say anything but in which race it is."""
    dying = tmp_path / "racer.py"
    dying.write_text(
        "import json, os, signal, sys\n"
        "line = json.loads(sys.stdin.readline())\n"
        "print(json.dumps(['race', *line[:2]]), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGBUS)\n"
    )
    monkeypatch.setattr(races, "HERE", tmp_path / "race.py")
    tally = races.race("cpu", ["plain"], ["copy", "rename"], loads=1, seconds=0)
    assert [line.split(": ")[:3] for line in tally.details] == [
        ["plain copy", "died", "SIGBUS "],
        ["plain rename", "died", "SIGBUS "],
    ]
