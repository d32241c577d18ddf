"""Integer sums in float32 on OpenVINO are ONNX's to the bit, and only where that is certain."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite
from eps.openvino.compile.int8_sums import sums_saturate
from eps.openvino.sdk.binding import ov

OPENVINO = "OpenVINOExecutionProvider"
NUMBERS = np.random.default_rng(5)
WEIGHTS = {
    "k": NUMBERS.integers(-127, 128, (8, 4, 3, 3), np.int8),
    "kz": np.array(3, np.int8),
    "b": NUMBERS.integers(0, 256, (16, 8), np.uint8),
    "bz": np.array(130, np.uint8),
    "signed": NUMBERS.integers(-127, 128, (16, 8), np.int8),
    "moved": NUMBERS.integers(-20, 21, (16, 8), np.int8),
    "mz": NUMBERS.integers(-9, 10, 8).astype(np.int8),
    "low": NUMBERS.integers(0, 127, (16, 8), np.uint8),
    "lz": np.array([5], np.uint8),
    "iz": np.array(-3, np.int8),
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
    "weights with signs": """q, s, z = DynamicQuantizeLinear (x)
        sum = MatMulInteger (q, signed, z) y = Cast <to = 1> (sum)""",
    "weights with signs and zero points": """q, s, z = DynamicQuantizeLinear (x)
        sum = MatMulInteger (q, moved, z, mz) y = Cast <to = 1> (sum)""",
    "weights near their zero point": """q, s, z = DynamicQuantizeLinear (x)
        sum = MatMulInteger (q, low, z, lz) y = Cast <to = 1> (sum)""",
    "rows with signs": """u = Cast <to = 3> (x)
        sum = MatMulInteger (u, signed, iz) y = Cast <to = 1> (sum)""",
    "rows and weights without zero points": f"""{ROWS}
        sum = MatMulInteger (u, b) y = Cast <to = 1> (sum)""",
    "rows that two products read": """q, s, z = DynamicQuantizeLinear (x)
        n = MatMulInteger (q, b, z, bz) f = Cast <to = 1> (n)
        m = MatMulInteger (q, signed, z) g = Cast <to = 1> (m) y = Sub (f, g)""",
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
    session = open_session(model_of(nodes))
    return session, str(session.explain())


def open_session(model: bytes) -> ort_lite.InferenceSession:
    """Everything on OpenVINO, in float32 also on CPUs that have bfloat16."""
    options = ort_lite.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return ort_lite.InferenceSession(model, options, providers=[OPENVINO])


@pytest.mark.parametrize("name", [*WRITTEN, *KEPT])
def test_sums_are_those_of_the_reference(name: str) -> None:
    nodes = {**WRITTEN, **KEPT}[name]
    session, explained = explain(nodes)
    assert session.explain().node_counts().keys() == {OPENVINO}
    assert ("by way of int32" in explained) == (name in WRITTEN)
    reference = ReferenceEvaluator(onnx.load_model_from_string(model_of(nodes)))
    shape = session.get_inputs()[0].shape
    for least, most in ((0, 1), (0, 250), (-100, 27)):
        if least < 0 and "<to = 2> (x)" in nodes:
            continue  # ONNX leaves casts of negative numbers to uint8 undefined
        if most > 127 and "<to = 3> (x)" in nodes:
            continue
        x = NUMBERS.uniform(least, most, shape).astype(np.float32)
        (expected,) = reference.run(None, {"x": x})
        (answer,) = session.run(None, {"x": x})
        # OpenVINO 2026.4.1 itself adds an int32 bias to a convolution in float32.
        apart = 2e-7 if name == "a bias that float32 does not hold" else 0
        np.testing.assert_allclose(answer, expected, rtol=apart)


@pytest.mark.parametrize("depth", [1, 3, 64, 517])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("shape", [[2, 5], [2, 3, 5], [5], ["n", "rows", 5]])
def test_products_of_bytes_are_exact(shape: list[Any], kind: type, depth: int) -> None:
    """Up to the depth whose largest sum float32 holds; free and known shapes.

    onnxruntime's sums saturate on CPUs without VNNI.
    """
    limits = np.iinfo(kind)
    weights = NUMBERS.integers(limits.min, limits.max, (depth, 7), kind, endpoint=True)
    zeros = NUMBERS.integers(limits.min // 8, limits.max, 7, kind)
    sizes = [*shape[:-1], depth]
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "products",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(zeros, "wz")],
    )
    opset = helper.make_opsetid("", 13)
    model = helper.make_model(graph, ir_version=8, opset_imports=[opset])
    session = open_session(model.SerializeToString())
    reference = ReferenceEvaluator(model)
    real = [4 if isinstance(size, str) else size for size in sizes]
    for shift in (0, 3, -40):
        x = (NUMBERS.standard_normal(real) + shift).astype(np.float32)
        (expected,) = reference.run(None, {"x": x})
        (answer,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(answer, expected)


def test_eight_bit_kernels_compute_products_where_their_sums_are_exact() -> None:
    _, explained = explain(WRITTEN["weights with signs"])
    exact = not sums_saturate(ov.Core())
    assert ("DequantizeLinear" in explained) == exact


def test_a_zero_point_for_each_row_is_left_as_it_is() -> None:
    """It is no number for each column, which is how a difference would broadcast it."""
    _, explained = explain(f"{ROWS} sum = MatMulInteger (u, b, rows, bz) y = Cast <to = 1> (sum)")
    assert "by way of int32" not in explained
