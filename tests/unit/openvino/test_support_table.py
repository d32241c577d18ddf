"""The table of operators that OpenVINO gets, and the run that makes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from eps.openvino.evidence.make_table import make_table, table_text
from eps.openvino.evidence.tally import Tally
from eps.openvino.support import table as table_module
from eps.openvino.support.conditions import WRONG
from eps.openvino.support.table import TABLES, claimed_versions, load_table

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(21)


def f32(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


CONTRIB: dict[str, tuple[list[Array], list[int], dict[str, Any]]] = {
    "Gelu": ([f32(2, 8)], [], {}),
    "BiasGelu": ([f32(2, 8), f32(8)], [1], {}),
    "FastGelu": ([f32(2, 8), f32(8)], [1], {}),
    "QuickGelu": ([f32(2, 8)], [], {"alpha": 1.702}),
    "FusedMatMul": ([f32(2, 4, 5), f32(2, 5, 3)], [], {"alpha": 0.5}),
    "FusedConv": ([f32(1, 3, 8, 8), f32(4, 3, 3, 3), f32(4)], [1, 2], {"activation": "Relu"}),
    "SkipLayerNormalization": (
        [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8)],
        [2, 3],
        {"epsilon": 1e-5},
    ),
    "SkipSimplifiedLayerNormalization": (
        [f32(2, 3, 8), f32(2, 3, 8), f32(8)],
        [2],
        {"epsilon": 1e-5},
    ),
    "MatMulNBits": (
        [f32(3, 64), u8(6, 2, 16), np.abs(f32(12))],
        [1, 2],
        {"K": 64, "N": 6, "bits": 4, "block_size": 32},
    ),
}
"""Each com.microsoft operator of the table: inputs, which are constants, attributes."""


RELEASES = sorted(file.stem for file in TABLES.glob("*.json"))


def test_the_openvino_that_the_gate_runs_has_a_table() -> None:
    assert load_table("2026.4.1").operators
    assert "2026.4" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_a_table_claims_nothing_that_is_known_to_be_wrong(release: str) -> None:
    claimed = {name for name, _ in load_table(release).claims()}
    assert claimed.isdisjoint(WRONG)
    assert {"Conv", "MatMul", "Softmax", "Reshape"} <= claimed


@pytest.mark.parametrize("release", RELEASES)
def test_every_contrib_operator_of_a_table_is_compared_below(release: str) -> None:
    claimed = {name.partition(":")[2] for name, _ in load_table(release).claims() if ":" in name}
    assert claimed == set(CONTRIB)


def test_an_openvino_without_a_table_gets_nothing_and_says_how_to_make_one() -> None:
    problem = load_table("2031.1.0").problem("", "Add", 14)
    assert "no operator table exists for OpenVINO 2031.1.0" in problem
    assert "python -m eps.openvino.evidence --write" in problem


def test_a_version_of_an_operator_is_claimed_by_its_own_evidence() -> None:
    table = load_table("2026.4.1")
    assert table.problem("", "LpPool", 18) == ""
    assert table.problem("", "LpPool", 12).endswith("computes LpPool-11 correctly")
    assert table.problem("", "Add", 6).endswith("computes Add-6 correctly")
    assert table.problem("", "Add", 13) == ""
    assert table.problem("", "Add", 99).endswith("ends at opset 28")
    assert table.problem("com.example", "Add", 1).endswith("computes com.example:Add correctly")


def test_between_right_versions_one_without_cases_is_right_and_a_wrong_one_not() -> None:
    seen = {"right": 3}
    assert claimed_versions({1: {"right": 0}, 7: seen, 13: {"right": 0}, 14: seen}) == {
        1: False,
        7: True,
        13: True,
        14: True,
    }
    assert not claimed_versions({7: seen, 13: {"right": 4, "wrong": 1}, 14: seen})[13]


@pytest.mark.parametrize("op", CONTRIB)
def test_a_contrib_operator_gives_onnxruntimes_numbers_on_openvino(op: str) -> None:
    inputs, constants, attributes = CONTRIB[op]
    names = [f"i{n}" for n in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)
    feed = {n: x for i, (n, x) in enumerate(zip(names, inputs, strict=True)) if i not in constants}
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in feed.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            helper.make_tensor(
                names[i],
                helper.np_dtype_to_tensor_dtype(inputs[i].dtype),
                inputs[i].shape,
                inputs[i].tobytes(),
                raw=True,
            )
            for i in constants
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(
        None, feed
    )
    with ort.InferenceSession(data, providers=["OpenVINOExecutionProvider"]) as session:
        found = session.run(None, feed)
        assert list(session.explain().node_counts()) == ["OpenVINOExecutionProvider"]
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-4)


def test_a_run_keeps_what_is_right_and_never_what_is_wrong() -> None:
    tallies = {
        ("Add", 14): Tally(right=2, refused=1),
        ("Sub", 14): Tally(right=5, wrong=["test_bad"]),
        ("Mul", 14): Tally(refused=3),
        ("Dropout", 22): Tally(right=9),
    }
    table = make_table("2026.4.1", tallies, {})
    assert table["operators"]["Add"]["14"] == {"right": 2, "refused": 1}
    assert {"Sub", "Mul", "Dropout"}.isdisjoint(table["operators"])
    assert table["operators"]["com.microsoft:Gelu"]["1"]["right"]
    assert json.loads(table_text(table)) == table


def test_a_run_without_the_older_cases_keeps_what_an_earlier_one_saw_of_them() -> None:
    stored = {"Add": {"7": {"right": 12}, "14": {"right": 1}}}
    table = make_table("2026.4.1", {("Add", 14): Tally(right=2)}, stored)
    assert table["operators"]["Add"]["7"] == {"right": 12}
    assert table["operators"]["Add"]["14"] == {"right": 2}


@pytest.mark.parametrize("release", RELEASES)
def test_a_stored_table_has_its_evidence(release: str) -> None:
    path = Path(table_module.__file__).with_name("tables") / f"{release}.json"
    table = json.loads(path.read_text("utf-8"))
    assert table["onnx"]
    assert table["openvino"].startswith(f"{release}.")
    elsewhere = {
        name
        for name, versions in table["operators"].items()
        if any(seen["right"] < 0 for seen in versions.values()) and ":" not in name
    }
    assert elsewhere == {"Cast", "CastLike"}
