"""Nodes that announce more than the machine holds, or loops without end, are refused at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from unit.cpu.single_node import run_node

import ort_lite
from eps.cpu import arrays
from ort_lite.status import OrtLiteError, RuntimeException

FAR, WIDE = 1 << 40, 1 << 18
"""Elements that no machine holds, and a length whose square none holds."""


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def one(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


U8 = np.ones((1, 1, 2, 2), np.uint8)
ROW, COLUMN = f(1, WIDE), f(WIDE, 1)
POOL = {"kernel_shape": [2, 2], "pads": [WIDE] * 4}
SQUARE = {"kernel_shape": [WIDE, WIDE], "pads": [WIDE] * 4}
GRAMS = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
         "ngram_counts": [0], "pool_int64s": [1]}  # fmt: skip
LEAF = {"nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_values": [0.0],
        "nodes_modes": ["LEAF"], "nodes_truenodeids": [0], "nodes_falsenodeids": [0],
        "target_treeids": [0], "target_nodeids": [0], "target_ids": [0],
        "target_weights": [1.0]}  # fmt: skip
ML, MS = {"domain": "ai.onnx.ml"}, {"domain": "com.microsoft"}

TOO_LARGE: list[tuple[str, list[Any], dict[str, Any]]] = [
    # sizes that are values
    ("ConstantOfShape", [i(FAR, FAR)], {}),
    ("Expand", [f(1), i(FAR)], {}),
    ("Tile", [f(4, 4), i(WIDE, WIDE)], {}),
    ("Tile", [f(1), one(FAR, np.int64), one(0, np.int64)], {"opset": 1}),
    *(("Pad", [f(3), i(0, FAR)], {"mode": m}) for m in ("constant", "edge", "reflect", "wrap")),
    ("Pad", [f(1)], {"opset": 2, "pads": [0, FAR]}),
    ("Resize", [f(1, 1), None, None, i(FAR, 1)], {}),
    ("Resize", [f(1, 1), None, f(2) * 1e9], {}),
    ("Resize", [f(1, 1, 4, 4), None, None, i(1, 1, WIDE, WIDE)], {"mode": "cubic"}),
    ("Upsample", [f(1, 1, 4, 4), np.array([1, 1, 1e9, 1e9], np.float32)], {"opset": 9}),
    ("Range", [one(0, np.int64), one(FAR, np.int64), one(1, np.int64)], {}),
    ("Range", [one(0), one(1), one(1e-30)], {}),
    ("OneHot", [i(1), i(FAR), f(2)], {}),
    ("HannWindow", [one(FAR, np.int64)], {}),
    ("MelWeightMatrix", [*(one(FAR, np.int64),) * 3, one(0.0), one(8000.0)], {}),
    ("RandomNormal", [], {"shape": [FAR]}),
    ("RandomUniform", [], {"shape": [FAR, FAR]}),
    ("Multinomial", [f(1, 4)], {"sample_size": FAR}),
    ("CenterCropPad", [f(2, 2), i(WIDE * 8, WIDE * 8)], {}),
    ("AffineGrid", [f(1, 2, 3), i(1, 1, WIDE, WIDE)], {}),
    ("DFT", [f(1, 4, 1), one(FAR, np.int64)], {}),
    ("MaxUnpool", [f(1, 1, 2, 2), np.zeros((1, 1, 2, 2), np.int64), i(1, 1, WIDE, WIDE)],
     {"kernel_shape": [2, 2]}),
    # sizes that are attributes
    ("MaxUnpool", [f(1, 1, 2, 2), np.zeros((1, 1, 2, 2), np.int64)], {"kernel_shape": [FAR, 2]}),
    *(("ConvTranspose", [f(1, 1, 2, 2), f(1, 1, 2, 2)], {name: [WIDE] * count})
      for name, count in (("output_shape", 2), ("strides", 2), ("dilations", 2))),
    ("Conv", [f(1, 1, 2, 2), f(1, 1, 2, 2)], {"pads": [WIDE] * 4}),
    *((op, [f(1, 1, 2, 2)], POOL) for op in ("AveragePool", "LpPool", "MaxPool")),
    ("MaxPool", [f(1, 1, 2, 2)], SQUARE),
    ("NhwcMaxPool", [U8.reshape(1, 2, 2, 1)], {**SQUARE, **MS}),
    ("RoiAlign", [f(1, 1, 4, 4), f(1, 4), i(0)], {"output_height": WIDE, "output_width": WIDE}),
    ("MaxRoiPool", [f(1, 1, 4, 4), f(1, 5) * 0], {"pooled_shape": [WIDE, WIDE]}),
    ("TfIdfVectorizer", [i(1, 2)], {**GRAMS, "ngram_indexes": [FAR]}),
    ("CastMap", [{3: 1.0}], {"map_form": "SPARSE", "max_map": FAR, **ML}),
    ("TreeEnsembleRegressor", [f(1, 1)], {"n_targets": FAR, **LEAF, **ML}),
    # two axes that meet
    *((op, [COLUMN, ROW], {}) for op in ("Add", "Mul", "Div", "Max", "Less", "Pow", "MatMul")),
    ("Gemm", [COLUMN, ROW], {}),
    ("Gemm", [COLUMN, COLUMN], {"transB": 1, "alpha": 2.0}),
    ("MatMul", [COLUMN[None], ROW[None]], {}),
    *(("Einsum", [f(WIDE), f(WIDE)], {"equation": e}) for e in ("i,j->ij", "i,j", "...,j->j...")),
    ("Einsum", [f(WIDE)] * 3, {"equation": "i, j, k -> j k"}),
    ("Mod", [i(WIDE)[:, None] + np.zeros((WIDE, 1), np.int64), np.ones(WIDE, np.int64)], {}),
    ("Mean", [COLUMN, ROW], {}),
    ("PRelu", [COLUMN, ROW], {}),
    ("LayerNormalization", [COLUMN, f(WIDE)], {}),
    *((op, [f(WIDE, 1, 1), f(1, n * WIDE, 1), f(1, n, 1)], {"hidden_size": 1})
      for op, n in (("RNN", 1), ("GRU", 3), ("LSTM", 4))),
    ("RNN", [f(WIDE, 1, 1), f(1, WIDE, 1), f(1, 1, 1)], {"clip": 1.0}),
    # attention: scores of every query and key
    ("Attention", [f(1, 1, WIDE, 1)] * 3, {}),
    ("Attention", [f(0, 1, WIDE, 1)] * 3, {"is_causal": 1}),
    ("Attention", [f(1, WIDE, 1), f(1, 3), f(3)], {"num_heads": 1, **MS}),
    ("Attention", [f(1, WIDE, 1), f(1, 3 * WIDE), f(3 * WIDE)], {"num_heads": 1, **MS}),
    ("QAttention", [np.ones((1, WIDE, 1), np.uint8), np.ones((1, 3), np.int8), f(3), f(1), f(1)],
     {"num_heads": 1, **MS}),
    ("MultiHeadAttention", [f(1, WIDE, 1)] * 3, {"num_heads": 1, **MS}),
    ("MultiHeadAttention", [f(1, 1, WIDE, 1)] * 3 + [f(3 * WIDE)], {"num_heads": WIDE, **MS}),
    ("GroupQueryAttention", [f(1, WIDE, 1), f(1, WIDE, 1), f(1, WIDE, 1), None, None,
     np.array([WIDE - 1], np.int32), np.array([WIDE], np.int32)],
     {"num_heads": 1, "kv_num_heads": 1, **MS}),
    ("GroupQueryAttention", [f(1, 1, 4096), f(1, 1, 4096), f(1, 1, 4096), None, None,
     np.array([4], np.int32), np.array([(1 << 31) - 1], np.int32)],
     {"num_heads": 1, "kv_num_heads": 1, **MS}),
    ("LinearAttention", [f(1, 1, WIDE)] * 3,
     {"q_num_heads": 1, "kv_num_heads": 1, "update_rule": "linear", "outputs": 2}),
    # other products of com.microsoft
    ("CDist", [COLUMN, COLUMN], MS),
    ("FusedMatMul", [COLUMN, COLUMN], {"transB": 1, **MS}),
    ("BiasGelu", [COLUMN, f(WIDE)], MS),
    ("SkipLayerNormalization", [COLUMN, ROW, f(1)], MS),
    ("SimplifiedLayerNormalization", [COLUMN, f(WIDE)], MS),
    ("DynamicQuantizeMatMul", [COLUMN, np.ones((1, WIDE), np.int8), one(0.1)], MS),
    ("MatMulInteger16", [np.ones((WIDE, 1), np.int16), np.ones((1, WIDE), np.int16)], MS),
    ("QLinearAdd", [np.ones((WIDE, 1), np.uint8), one(1), one(0, np.uint8),
     np.ones((1, WIDE), np.uint8), one(1), one(0, np.uint8), one(1)], MS),
    ("Range", [one(0, np.int64), one(FAR, np.int64)], MS),
    ("MatMulNBits", [f(WIDE, 2), np.ones((WIDE, 1, 1), np.uint8), f(WIDE)],
     {"K": 2, "N": WIDE, "block_size": 16, **MS}),
    ("MatMulBnb4", [f(1, 2), np.ones(1, np.uint8), f(1)],
     {"K": 2, "N": 1, "block_size": FAR, "quant_type": 0, **MS}),
    ("GatherBlockQuantized", [np.ones((1, WIDE), np.uint8), np.zeros(WIDE, np.int64), f(1, 1)],
     {"block_size": 1 << 30, "bits": 8, **MS}),
    ("DequantizeLinear", [np.ones(4, np.uint8), f(1)], {"axis": 0, "block_size": FAR}),
    ("Where", [COLUMN > 0, ROW, f(1)], {}),
    ("MatMulInteger", [np.ones((WIDE, 1), np.uint8), np.ones((1, WIDE), np.uint8)], {}),
    ("Gather", [f(1, WIDE), np.zeros(WIDE, np.int64)], {}),
    ("GatherND", [f(1, WIDE), np.zeros((WIDE, 1), np.int64)], {}),
    ("ConcatFromSequence", [[np.broadcast_to(f(1), (1 << 30,))] * 64], {"axis": 0}),
    ("Concat", [np.broadcast_to(f(1), (1 << 30,))] * 64, {"axis": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "options"), TOO_LARGE)
def test_a_result_that_does_not_fit_is_refused_before_it_is_made(
    op: str, inputs: list[Any], options: dict[str, Any]
) -> None:
    with pytest.raises(OrtLiteError, match=r"would take \d+ bytes, \d+ are available"):
        run_node(op, *inputs, **options)


ENDLESS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("LRN", [f(1, 4, 4, 4)], {"size": FAR}),
    ("TfIdfVectorizer", [i(1, 2)], {**GRAMS, "max_skip_count": FAR, "ngram_indexes": [0]}),
    ("TopK", [f(8), i(8)], {"outputs": 2}),
    ("NonMaxSuppression", [f(1, 4, 4), f(1, 1, 4), i(FAR)], {}),
    ("Slice", [f(8), i(0), i(FAR), i(0), i(1 - (1 << 63))], {}),
    ("Trilu", [f(4, 4), one((1 << 63) - 1, np.int64)], {}),
    ("EyeLike", [f(1, 1)], {"k": FAR}),
    ("ReverseSequence", [f(4, 2), i(FAR, FAR)], {}),
]


@pytest.mark.parametrize(("op", "inputs", "options"), ENDLESS)
def test_a_number_that_only_bounds_costs_nothing(
    op: str, inputs: list[Any], options: dict[str, Any]
) -> None:
    run_node(op, *inputs, **options)


SENSELESS: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("RoiAlign", [f(1, 1, 4, 4), f(1, 4) * [0, 0, 1e9, 1e9], i(0)], {}, "samples in each of"),
    ("Conv", [f(1, 1, 4, 4), f(1, 1, 2, 2)], {"pads": [-1] * 4}, "padding -1, -1 is negative"),
    ("MelWeightMatrix", [i(4), i(400), i(0), one(0.0), one(8000.0)], {}, "of 0 samples a second"),
    ("MelWeightMatrix", [i(40), i(40), i(100), one(0.0), one(9e4)], {}, "edges 0.0 and 90000.0 Hz"),
    ("SVMClassifier", [f(1, 1)], {"outputs": 2, "vectors_per_class": [1] + [0] * 30_000,
     "support_vectors": [1.0], "coefficients": [1.0], "rho": [1.0], "classlabels_ints": [0, 1],
     **ML}, "do not fit"),
    ("SVMClassifier", [f(1, 1)], {"outputs": 2, "vectors_per_class": [FAR, FAR],
     "support_vectors": [1.0], "coefficients": [1.0], "rho": [1.0], "classlabels_ints": [0, 1],
     **ML}, "do not fit"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "options", "says"), SENSELESS)
def test_numbers_that_mean_nothing_are_refused(
    op: str, inputs: list[Any], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(OrtLiteError, match=says):
        run_node(op, *inputs, **options)


HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
COLLECTING = """g (int64 n, float[1] x) => (float[s,r] y) {{
  c = Constant<value = bool {{1}}>()
  size = Constant<value_ints = [{size}]>()
  large = Expand(x, size)
  y = Loop(n, c) <body = b (int64 i, bool on) => (bool go, float[r] out) {{
    go = Identity(on) out = Identity(large) }}>
}}"""
DOUBLING = """g (int64 n, float[1] x) => (float[r] y) {
  c = Constant<value = bool {1}>()
  y = Loop(n, c, x) <body = b (int64 i, bool on, float[d] h) => (bool go, float[e] next) {
    go = Identity(on) next = Concat<axis = 0>(h, h) }>
}"""


@pytest.mark.parametrize("text", [COLLECTING.format(size=1 << 26), DOUBLING])
def test_a_loop_stops_before_its_results_fill_the_memory(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "_system", lambda: 1 << 27)  # a machine with 128 MiB left
    model = onnx.parser.parse_model(HEAD + text).SerializeToString()
    session = ort_lite.InferenceSession(model, providers=["CPUExecutionProvider"])
    feed = {"n": one(1 << 62, np.int64), "x": f(1)}
    with pytest.raises(RuntimeException, match=r"would take \d+ bytes, 134217728 are available"):
        session.run(None, feed)


def test_a_container_has_less_memory_than_its_machine(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "limit").write_text("1048576\n")
    whole = arrays.available_memory()
    assert whole > 1 << 20
    monkeypatch.setattr(arrays, "_LIMITS", (tmp_path / "max", tmp_path / "none"))
    unlimited = arrays.available_memory()
    assert unlimited > 1 << 20
    monkeypatch.setattr(arrays, "_LIMITS", (tmp_path / "max", tmp_path / "limit"))
    assert arrays.available_memory() == 1 << 20


def test_memory_is_known_without_the_file_of_linux(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "_MEMINFO", tmp_path / "none")
    assert 1 << 24 < arrays.available_memory() <= arrays.UNKNOWN
