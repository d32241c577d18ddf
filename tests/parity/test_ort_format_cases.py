"""A sample of the command that puts ONNX's node cases through the ORT format."""

from __future__ import annotations

from collections import Counter

import numpy as np
import parity.ort_format_cases as command
import pytest
from onnx import helper
from parity.ort_format_cases import check_case, load_cases

EVERY = 41


# onnx computes its cases where they are collected, infinities and invalid values included.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_node_cases_compute_the_same_from_both_formats() -> None:
    tally: Counter[str] = Counter()
    for name, proto, feed in load_cases(EVERY):
        result = check_case(name, proto, feed)
        assert not result.misses, f"{name}: {result.misses}"
        tally[result.outcome] += 1
    assert tally["equal"] > 15


def test_a_case_whose_numbers_differ_would_be_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    info = [helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", info[:1], info[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wrong = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    wrong.graph.node[0].op_type = "Abs"

    save = command.save_by_onnxruntime
    monkeypatch.setattr(command, "save_by_onnxruntime", lambda _: save(wrong))
    result = check_case("neg", proto, {"x": np.array([2], np.float32)})
    assert result.outcome == "miss"
    assert [miss.way for miss in result.misses] == ["saved there"]
