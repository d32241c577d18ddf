"""Weights of 4 bits with signs: OpenVINO's own numbers for those without, to the bit."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import openvino as ov
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from eps.openvino.compile import compile_partition
from eps.openvino.compile.signed_weights import sign_weights

if TYPE_CHECKING:
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

CONTRIB = "com.microsoft"
DEPTH, WIDTH, BLOCK = 64, 48, 32
BLOCKS = DEPTH // BLOCK
F32, U8 = TensorProto.FLOAT, TensorProto.UINT8
X = np.random.default_rng(1).standard_normal((3, DEPTH)).astype(np.float32)


def decoder_ends(*, zeros: int | None = None, bits: int = 4) -> bytes:
    """Two products with the same weights, and rows of a table; zero points of a value, or none."""
    random = np.random.default_rng(2)
    weights = {
        "w": random.integers(0, 256, (WIDTH, BLOCKS, BLOCK * bits // 8), np.uint8),
        "scales": random.uniform(0.01, 0.1, WIDTH * BLOCKS).astype(np.float32),
        "rows": random.integers(0, 256, (WIDTH, DEPTH * bits // 8), np.uint8),
        "steps": random.uniform(0.01, 0.1, (WIDTH, BLOCKS)).astype(np.float32),
    }
    inputs = ["w", "scales"]
    if zeros is not None:
        packed = zeros * 0x11 if bits == 4 else zeros
        weights["zeros"] = np.full(WIDTH * (BLOCKS * bits // 8), packed, np.uint8)
        inputs.append("zeros")
    sizes = {"K": DEPTH, "N": WIDTH, "bits": bits, "block_size": BLOCK}
    table = {"bits": bits, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
    make = helper.make_node
    nodes = [
        make("MatMulNBits", ["x", *inputs], ["y"], domain=CONTRIB, **sizes),
        make("Neg", ["x"], ["minus"]),
        make("MatMulNBits", ["minus", *inputs], ["z"], domain=CONTRIB, **sizes),
        make("GatherBlockQuantized", ["rows", "i", "steps"], ["r"], domain=CONTRIB, **table),
    ]
    graph = helper.make_graph(
        nodes,
        "ends",
        [
            helper.make_tensor_value_info("x", F32, X.shape),
            helper.make_tensor_value_info("i", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info(name, F32, None) for name in ("y", "z", "r")],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString()


def read(model: bytes, folder: Path) -> ov.Model:
    """By OpenVINO's front end alone."""
    path = folder / "model.onnx"
    path.write_bytes(model)
    return ov.Core().read_model(str(path))


def nibbles(model: ov.Model) -> Counter[str]:
    """Constants of 4 bits of more than one element, by their type."""
    constants = [op for op in model.get_ordered_ops() if op.get_type_name() == "Constant"]
    kinds = [op.get_element_type().to_string() for op in constants if op.shape != ov.Shape([1])]
    return Counter(kind for kind in kinds if kind in ("u4", "i4"))


def run(model: ov.Model) -> list[Array]:
    config = {"INFERENCE_PRECISION_HINT": "f32"}
    results = ov.Core().compile_model(model, "CPU", config)({"x": X, "i": np.array([0, 47])})
    return [np.array(results[i]) for i in range(3)]


def test_weights_of_products_have_signs_and_the_same_numbers(tmp_path: Path) -> None:
    model = read(decoder_ends(), tmp_path)
    before = nibbles(model)
    right = run(model)
    sign_weights(model)
    assert (before, nibbles(model)) == ({"u4": 3}, {"i4": 2, "u4": 1})  # the table stays
    for mine, theirs in zip(run(model), right, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("form", [{"zeros": 7}, {"bits": 8}, {"bits": 8, "zeros": 8}], ids=str)
def test_other_weights_stay_as_they_are(form: dict[str, int], tmp_path: Path) -> None:
    model = read(decoder_ends(**form), tmp_path)
    before = nibbles(model)
    sign_weights(model)
    assert nibbles(model) == before


@pytest.mark.parametrize("form", [{}, {"zeros": 7}, {"zeros": 8}, {"bits": 8}], ids=str)
def test_sessions_give_onnxruntimes_numbers(
    form: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Counter[str]] = []

    def sign(model: ov.Model) -> None:
        sign_weights(model)
        compiled.append(nibbles(model))

    monkeypatch.setattr(compile_partition, "sign_weights", sign)
    content, context = decoder_ends(**form), tmp_path / "context.onnx"
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(context))
    feed = {"x": X, "i": np.array([0, 47])}
    right = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    openvino = ["OpenVINOExecutionProvider"]
    with ort.InferenceSession(content, options, openvino) as session:
        made = session.run(None, feed)
    with ort.InferenceSession(context, providers=openvino) as session:
        reloaded = session.run(None, feed)
    for mine, again, theirs in zip(made, reloaded, right.run(None, feed), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(again, mine)
    (kinds,) = compiled
    assert kinds["i4"] == (0 if form else 2)
