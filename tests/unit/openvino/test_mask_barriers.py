"""Masks keep their summands in partitions with quantised products; answers are onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
LOWEST = np.finfo(np.float32).min
WEIGHTS = ", ".join(str(n % 5 - 2) for n in range(64))
CONSTANTS = f"""int8[8, 8] w = {{{WEIGHTS}}}, float step = {{0.0625}}, int8 middle = {{0}},
    float zero = {{0}}, float one = {{1}}, float half = {{0.5}}, float low = {{{LOWEST}}},
    float small = {{1e-35}}, int64[1] none = {{0}}, int64[1] two = {{2}}"""
INTEGERS = """q, s, z = DynamicQuantizeLinear(x) p = MatMulInteger(q, w, z)
    f = Cast <to = 1> (p) y = Mul(f, s)"""
STEPS = """q = QuantizeLinear(x, step, middle) d = DequantizeLinear(q, step, middle)
    v = DequantizeLinear(w, step) y = MatMul(d, v)"""
EITHER = pytest.mark.parametrize("product", [INTEGERS, STEPS], ids=["integers", "steps"])
FEED: dict[str, Any] = {
    "x": np.random.default_rng(1).integers(-9, 9, (2, 5, 8)).astype(np.float32) / 16
}


def compare(product: str, mask: str) -> None:
    """`mask` makes t."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n, s, 8] x) => (y, t) <{CONSTANTS}> {{ {product} {mask} }}"""
    ).SerializeToString()
    theirs = onnxruntime.InferenceSession(model, providers=[CPU]).run(None, FEED)
    config = ort.SessionOptions()
    config.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model, config, providers=[OPENVINO]) as session:
        assert set(session.explain().node_counts()) == {OPENVINO}
        for mine, right in zip(session.run(None, FEED), theirs, strict=True):
            np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-2)


@EITHER
@pytest.mark.parametrize(
    "masked",
    [
        "Mul(m, low)",
        "Mul(low, m)",
        "Mul(m, small)",
        "Mul(m, zero)",
        "Div(m, small)",
        "Mul(m, half)",
    ],
)
def test_a_sum_behind_a_mask_keeps_its_summand(product: str, masked: str) -> None:
    compare(
        product,
        f"""b = Greater(x, zero) m = Cast <to = 1> (b) n = {masked} a = Add(n, one)
        e = Equal(a, one) t = Where(e, a, zero)""",
    )


@EITHER
def test_scores_that_a_mask_is_added_to(product: str) -> None:
    """As BERT's: (1 - mask) * lowest."""
    compare(
        product,
        """b = Greater(x, zero) c = Cast <to = 1> (b) m = Sub(one, c) n = Mul(m, low)
        a = Add(y, n) t = Softmax(a)""",
    )


@EITHER
def test_the_mask_of_t5(product: str) -> None:
    """Lowest floats of a shape that is computed, times truth values; then ones are added."""
    compare(
        product,
        """h = Shape(x) i = Slice(h, none, two) ones = ConstantOfShape <value = float[1] {1}> (i)
        lows = Mul(ones, low) j = ReduceMean <axes = [2], keepdims = 0> (x) k = Greater(j, zero)
        c = Cast <to = 1> (k) m = Mul(lows, c) a = Add(m, ones) e = Equal(a, zero)
        t = Where(e, low, m)""",
    )
