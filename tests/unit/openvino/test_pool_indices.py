"""MaxPool with Indices has onnxruntime's numbers on OpenVINO, written out or not."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
WRITTEN = "MaxPool x1 written out as "


def pool(attributes: str, shape: str, opset: int = 17, kind: str = "float") -> bytes:
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]>
    g ({kind}[{shape}] x) => ({kind}[a] y, int64[b] i) {{ y, i = MaxPool<{attributes}>(x) }}"""
    model = onnx.parser.parse_model(text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model.SerializeToString()


def assert_same(model: bytes, x: np.ndarray, *, written: bool) -> None:
    """The numbers of onnxruntime, to the bit; and whether OpenVINO got another form."""
    expected = onnxruntime.InferenceSession(model).run(None, {"x": x})
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, options, providers=[OPENVINO]) as mine:
        mine.disable_fallback()
        found = mine.run(None, {"x": x})
        notes = [note for part in mine.explain().partitions for note in part.notes]
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, right)
    assert any(WRITTEN in note for note in notes) == written


SQUARE = "kernel_shape = [2, 2], strides = [2, 2]"


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        (SQUARE, (1, 3, 8, 10)),
        (SQUARE, (2, 5, 7, 9)),
        (f"{SQUARE}, pads = [0, 0, 0, 0], dilations = [1, 1], ceil_mode = 0", (1, 2, 6, 4)),
        ('kernel_shape = [2, 2], strides = [2, 2], auto_pad = "VALID"', (1, 2, 7, 4)),
        ("kernel_shape = [3, 2], strides = [2, 3]", (2, 3, 9, 11)),
        ("kernel_shape = [3, 3]", (1, 2, 6, 7)),
        ("kernel_shape = [3], strides = [2]", (3, 2, 13)),
        ("kernel_shape = [2, 2, 2], strides = [2, 1, 2]", (2, 2, 4, 5, 6)),
        ("kernel_shape = [1, 1], strides = [2, 2]", (1, 2, 5, 5)),
    ],
    ids=["even", "rest", "defaults", "valid", "apart", "overlap", "line", "volume", "one"],
)
@pytest.mark.parametrize("values", ["all differ", "many are equal"])
def test_the_numbers_are_onnxruntimes(attributes: str, shape: tuple[int, ...], values: str) -> None:
    chance = np.random.default_rng(sum(shape))
    x = chance.standard_normal(shape, np.float32)
    if values == "many are equal":
        x = chance.integers(0, 3, shape).astype(np.float32)
    assert_same(pool(attributes, ", ".join(map(str, shape))), x, written=True)


@pytest.mark.parametrize(
    ("attributes", "shape", "opset"),
    [
        (f"{SQUARE}, pads = [1, 0, 0, 1]", "1, 2, 6, 8", 17),
        (f"{SQUARE}, dilations = [2, 1]", "1, 2, 6, 8", 17),
        (f"{SQUARE}, ceil_mode = 1", "1, 2, 7, 8", 17),
        (f"{SQUARE}, storage_order = 1", "1, 2, 6, 8", 17),
        ('kernel_shape = [2, 2], strides = [2, 2], auto_pad = "SAME_UPPER"', "1, 2, 7, 8", 17),
        ("kernel_shape = [2, 5], strides = [2, 5]", "1, 2, 6, 10", 17),
        (SQUARE, "1, 2, 6, 8", 10),
        (SQUARE, "1, 2, h, 8", 17),
    ],
    ids=["pads", "dilations", "ceil", "columns", "same", "ten", "opset-10", "free"],
)
def test_other_pools_stay(attributes: str, shape: str, opset: int) -> None:
    sizes = [int(size) if size.strip().isdigit() else 6 for size in shape.split(",")]
    x = np.random.default_rng(3).standard_normal(sizes, np.float32)
    model = pool(attributes, shape, opset)
    expected = onnxruntime.InferenceSession(model).run(None, {"x": x})
    with ort.InferenceSession(model, providers=[OPENVINO, "CPUExecutionProvider"]) as mine:
        found = mine.run(None, {"x": x})
        notes = [note for part in mine.explain().partitions for note in part.notes]
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, right)
    assert not any(WRITTEN in note for note in notes)


def test_a_pool_whose_indices_nobody_reads_stays() -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y) {{ y, i = MaxPool<{SQUARE}>(x) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    x = np.random.default_rng(4).standard_normal((1, 2, 4, 4), np.float32)
    assert_same(model, x, written=False)


def test_remainders_of_indices_fit_the_32_bits_that_openvino_has() -> None:
    """As TensorFlow's MaxPoolWithArgmax is exported: an index is below the input's size."""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 3, 8, 8] x) => (int64[1, 3, 4, 4] r) <int64 n = {{64}}>
    {{ y, i = MaxPool<{SQUARE}>(x) r = Mod(i, n) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    x = np.random.default_rng(5).standard_normal((1, 3, 8, 8), np.float32)
    assert_same(model, x, written=True)
