"""Tables of the operators that Intel's NPU compiler accepts, and the offers that follow them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from npu_compiler import OPENVINO, PLATFORMS, CoreWithCompiler, npu_providers
from onnx import helper
from small_models import model

import ort_lite as ort
from eps.openvino.sdk.binding import ov
from eps.openvino.support import npu_table
from eps.openvino.support.npu_table import TABLES, NpuTable, load_npu_table


@pytest.mark.parametrize("file", sorted(TABLES.glob("*.json")), ids=lambda file: file.stem)
def test_a_table_counts_cases_of_each_platform(file) -> None:
    operators = json.loads(file.read_text("utf-8"))["operators"]
    assert operators
    for counts in operators.values():
        assert counts.keys() <= set(PLATFORMS)
        assert all(0 <= compiled <= total and total for compiled, total in counts.values())


def test_an_operator_is_refused_where_no_case_compiled() -> None:
    table = NpuTable("4000", {"RNN": (0, 6), "Upsample": (0, 1), "Pad": (1, 4)})
    assert "refuses all 6 cases of RNN for NPU 4000" in table.problem("", "RNN")
    assert "refuses the only case of Upsample" in table.problem("", "Upsample")
    assert not table.problem("", "Pad")
    assert not table.problem("com.microsoft", "RNN")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_operators_with_constant_scales_are_offered(platform: str) -> None:
    table = load_npu_table("2026.4.1", platform)
    assert not table.problem("", "Upsample")
    assert not table.problem("", "Resize")
    assert table.problem("", "Unique")


def test_releases_and_platforms_that_were_not_asked_refuse_nothing() -> None:
    assert load_npu_table("2026.4.9", "4000").problem("", "RNN")
    assert not load_npu_table("2031.1.0", "4000").counts
    assert not load_npu_table("2026.4.1", "9999").counts


def test_a_table_of_another_format_is_ignored(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npu_table, "TABLES", tmp_path)
    (tmp_path / "2026.4.json").write_text('{"format": 2}', "utf-8")
    assert not load_npu_table("2026.4.1", "4000").counts


def test_a_refused_operator_goes_to_the_next_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    weights = {
        "w": np.ones((1, 2, 3), np.float32), "r": np.ones((1, 2, 2), np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("RNN", ["x", "w", "r"], ["h"], hidden_size=2),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    proto = model(nodes, [("x", [4, 1, 3])], [("y", None)], weights).SerializeToString()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(proto, options, providers=npu_providers("4000")) as made:
        assert "RNN x1: Intel's NPU compiler refuses all 6 cases of RNN" in str(made.explain())
        assert made.explain().node_counts() == {OPENVINO: 1, "CPUExecutionProvider": 1}


def test_element_types_of_which_no_case_compiled_are_refused() -> None:
    table = NpuTable("4000", {"Add": (2, 3)}, {"Add": {"INT16,INT16"}})
    assert "refuses Add of INT16,INT16 for NPU 4000" in table.problem("", "Add", "INT16,INT16")
    assert not table.problem("", "Add", "FLOAT,FLOAT")
    for platform in PLATFORMS:
        recorded = load_npu_table("2026.4.1", platform)
        assert recorded.problem("", "Add", "INT16,INT16")
        assert not recorded.problem("", "Add", "FLOAT,FLOAT")


def test_a_node_of_refused_types_goes_to_the_next_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    table = NpuTable("4000", {"Relu": (1, 2)}, {"Relu": {"FLOAT"}})
    monkeypatch.setattr("eps.openvino.support.npu_table.load_npu_table", lambda *_: table)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="refused"),
        helper.make_node("Sigmoid", ["r"], ["y"], name="taken"),
    ]
    proto = model(nodes, [("x", [2, 3])], [("y", None)], {}).SerializeToString()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(proto, options, providers=npu_providers("4000")) as made:
        found = {n.name: n for part in made.explain().partitions for n in part.nodes}
    assert found["taken"].ep == OPENVINO
    assert found["refused"].ep != OPENVINO
    assert found["refused"].refusals[OPENVINO].endswith("refuses Relu of FLOAT for NPU 4000")
