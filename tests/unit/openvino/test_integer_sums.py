"""Integer sums in float32 on OpenVINO are ONNX's to the bit, and only where that is certain."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite

OPENVINO = "OpenVINOExecutionProvider"
NUMBERS = np.random.default_rng(5)
WEIGHTS = {
    "k": NUMBERS.integers(-127, 128, (8, 4, 3, 3), np.int8),
    "kz": np.array(3, np.int8),
    "b": NUMBERS.integers(0, 256, (16, 8), np.uint8),
    "bz": np.array(130, np.uint8),
    "columns": NUMBERS.integers(100, 140, 8).astype(np.uint8),
    "small": NUMBERS.integers(-(1 << 24), 1 << 24, (1, 8, 1, 1)).astype(np.int32),
    "large": np.full((1, 8, 1, 1), (1 << 24) + 1, np.int32),
    "bias": NUMBERS.standard_normal(8).astype(np.float32),
    "shape": np.array([1, -1, 1, 1]),
    "scale": np.array(0.01, np.float32),
    "az": np.array(7, np.uint8),
    "rows": np.array([7, 9, 11, 13, 15], np.uint8),
}
QUANTIZED_CONV = """
    q, s, z = DynamicQuantizeLinear (x)
    sum = ConvInteger <pads = [1, 1, 1, 1]> (q, k, z, kz)
"""
ROWS = "u = Cast <to = 2> (x)"
WRITTEN = {
    "a sum that is cast": f"{QUANTIZED_CONV} f = Cast <to = 1> (sum) y = Mul (f, s)",
    "a bias of the data's scale": f"""{QUANTIZED_CONV}
        t = Mul (s, scale) d = Div (bias, t) w = Floor (d) i = Cast <to = 6> (w)
        r = Reshape (i, shape) a = Add (sum, r) f = Cast <to = 1> (a) y = Mul (f, t)""",
    "a constant bias": f"{QUANTIZED_CONV} a = Add (small, sum) y = Cast <to = 1> (a)",
    "bytes from outside": f"{ROWS} sum = ConvInteger (u, k, az) y = Cast <to = 1> (sum)",
    "no zero points": f"{ROWS} sum = ConvInteger (u, k) y = Cast <to = 1> (sum)",
    "a zero point for each column": f"""{ROWS}
        sum = MatMulInteger (u, b, az, columns) y = Cast <to = 1> (sum)""",
    "quantised rows": """q, s, z = DynamicQuantizeLinear (x)
        sum = MatMulInteger (q, b, z, bz) y = Cast <to = 1> (sum)""",
}
KEPT = {
    "a bias that float32 does not hold": f"""{QUANTIZED_CONV}
        a = Add (sum, large) y = Cast <to = 1> (a)""",
    "a sum that others read": f"""{QUANTIZED_CONV}
        f = Cast <to = 1> (sum) n = Neg (sum) g = Cast <to = 1> (n) y = Sub (f, g)""",
    "a cast to whole numbers": f"""{QUANTIZED_CONV}
        l = Cast <to = 7> (sum) y = Cast <to = 1> (l)""",
}


def model_of(nodes: str) -> bytes:
    """`nodes` from x, an image or rows of it, to y."""
    rows = "MatMulInteger" in nodes
    shape = "5,16" if rows else "1,4,9,7"
    text = (
        '<ir_version: 8, opset_import: ["": 17]>\n'
        f"main (float[{shape}] x) => (float[{'5,8' if rows else 'n,c,h,w'}] y) {{ {nodes} }}"
    )
    model = onnx.parser.parse_model(text)
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in WEIGHTS.items() if name in used
    )
    return bytes(model.SerializeToString())


def explain(nodes: str) -> tuple[ort_lite.InferenceSession, str]:
    """A session on OpenVINO, and what it did to the sums."""
    options = ort_lite.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    session = ort_lite.InferenceSession(model_of(nodes), options, providers=[OPENVINO])
    return session, str(session.explain())


@pytest.mark.parametrize("name", [*WRITTEN, *KEPT])
def test_sums_are_those_of_the_reference(name: str) -> None:
    nodes = {**WRITTEN, **KEPT}[name]
    session, explained = explain(nodes)
    assert session.explain().node_counts().keys() == {OPENVINO}
    assert ("by way of int32" in explained) == (name in WRITTEN)
    reference = ReferenceEvaluator(onnx.load_model_from_string(model_of(nodes)))
    shape = session.get_inputs()[0].shape
    for most in (1, 250):
        x = (NUMBERS.random(shape) * most).astype(np.float32)
        (expected,) = reference.run(None, {"x": x})
        (answer,) = session.run(None, {"x": x})
        # OpenVINO 2026.4.1 itself adds an int32 bias to a convolution in float32.
        least = 2e-7 if name == "a bias that float32 does not hold" else 0
        np.testing.assert_allclose(answer, expected, rtol=least)


def test_a_zero_point_for_each_row_is_left_as_it_is() -> None:
    """It is no number for each column, which is how a difference would broadcast it."""
    _, explained = explain(f"{ROWS} sum = MatMulInteger (u, b, rows, bz) y = Cast <to = 1> (sum)")
    assert "by way of int32" not in explained
