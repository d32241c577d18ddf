"""The short form of tests/races/race.py, and that its judgement is real."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from onnx import TensorProto, numpy_helper
from races import race as races
from races.meddler import LINK, MODES
from races.racer import Held, answer_of, is_mapped, load_once, run_held
from races.versions import ANSWERS, FORMS, make_versions, proto

import ort_lite as ort
from ctx_formats.copied_file import COPY_LIMIT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is in use")
CPU = "CPUExecutionProvider"
SHORT = {
    "cpu": ("plain", "plain_external", "compiler"),
    "openvino": ("plain_external", "external", "shared", "compiler", "check_shared"),
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


def test_a_session_that_maps_its_payload_may_stop_and_no_other(tmp_path: Path) -> None:
    require("openvino")
    folder = tmp_path / "race"
    make_versions(folder, "external", races.EPS["openvino"])
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_map", "1")
    path = folder / "live" / FORMS["external"].model
    with ort.InferenceSession(path, options, providers=[races.EPS["openvino"]]) as session:
        held = Held(session, answer_of(session))
        assert run_held(held, may_stop=False)[0] == "right"
        assert run_held(Held(session, 0.0), may_stop=True)[0] == "wrong"
        (payload,) = (folder / "live").glob("*.bin")
        payload.write_bytes((folder / "two" / payload.name).read_bytes())
        assert run_held(held, may_stop=True)[0] == "stopped"
        assert run_held(held, may_stop=False)[0] == "finding"
    assert not is_mapped("external", folder)
    with (folder / "one" / payload.name).open("r+b") as file:
        file.truncate(COPY_LIMIT + 1)
    assert is_mapped("external", folder)
    assert not is_mapped("plain_external", folder)


def test_the_verdict_on_files_of_two_versions_is_a_refusal(tmp_path: Path) -> None:
    """Both versions are fit to run, and neither with the payload of the other."""
    require("openvino")
    ep = races.EPS["openvino"]
    for form in ("check", "check_shared"):
        folder = tmp_path / form
        make_versions(folder, form, ep)
        assert load_once(ep, form, "overwrite", folder)[0] == "right"
        for payload in (folder / "two").glob("*.bin"):
            (folder / "live" / payload.name).write_bytes(payload.read_bytes())
        outcome, verdict, _ = load_once(ep, form, "overwrite", folder)
        assert outcome == "refused"
        assert "integrity" in verdict


def test_a_compiled_model_that_no_session_loads_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_versions(tmp_path / "race", "compiler", CPU)
    assert load_once(CPU, "compiler", "overwrite", tmp_path / "race")[0] == "right"
    monkeypatch.setattr(ort.ModelCompiler, "compile_to_bytes", lambda _: b"damaged")
    assert load_once(CPU, "compiler", "overwrite", tmp_path / "race")[0] == "finding"
