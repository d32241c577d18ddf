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
from eps.openvino.conditions import WRONG
from eps.openvino.evidence import Tally, table_of
from eps.openvino.support import load_table

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


def test_the_table_is_of_the_openvino_that_the_gate_runs() -> None:
    assert load_table().openvino == "2026.4.1"


def test_the_table_claims_nothing_that_is_known_to_be_wrong() -> None:
    assert load_table().operators.isdisjoint(WRONG)


def test_every_contrib_operator_of_the_table_is_compared_below() -> None:
    claimed = {name.partition(":")[2] for name in load_table().operators if ":" in name}
    assert claimed == set(CONTRIB)


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


def test_a_run_claims_what_is_right_and_never_wrong() -> None:
    tallies = {
        "Good": Tally(right=2, refused=1),
        "Bad": Tally(right=5, wrong=["test_bad"]),
        "Unseen": Tally(refused=3),
    }
    table = table_of(tallies, ["com.microsoft:Gelu"])
    assert table["operators"]["Good"] == {"right": 2, "refused": 1}
    assert "Bad" not in table["operators"]
    assert "Unseen" not in table["operators"]
    assert "com.microsoft:Gelu" in table["operators"]


def test_the_stored_table_has_its_evidence() -> None:
    path = Path(__file__).parents[3] / "eps" / "openvino" / "support_table.json"
    table = json.loads(path.read_text("utf-8"))
    assert table["onnx"]
    unseen = [n for n, e in table["operators"].items() if not e["right"] and ":" not in n]
    assert unseen == ["Cast", "CastLike"]
