"""int64 arithmetic goes to OpenVINO where its results are known to fit 32 bits, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, parser
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
Feed = dict[str, np.ndarray[Any, Any]]


def run(nodes: str, inputs: str, feed: Feed, placement: str) -> tuple[str, list[str]]:
    """The EPs of a small model's nodes, after its result was compared with the reference's."""
    graph = parser.parse_graph(f"g ({inputs}) => (float y) {{ {nodes} }}")
    graph.output[0].type.tensor_type.ClearField("shape")
    opsets = [helper.make_opsetid("", 18)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", placement)
    with ort.InferenceSession(content, options, providers=[OPENVINO, CPU]) as session:
        (found,) = session.run(None, feed)
        (expected,) = ReferenceEvaluator(content).run(None, feed)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        explanation = session.explain()
        return str(explanation), list(explanation.node_counts())


FITS: dict[str, tuple[str, str, Feed]] = {
    "distances of positions": (
        """s = Shape <start = 1> (x)
        zero = Constant <value_int = 0> ()
        one = Constant <value_int = 1> ()
        axis = Constant <value_ints = [0]> ()
        n = Squeeze (s, axis)
        at = Range (zero, n, one)
        column = Unsqueeze (at, one)
        apart = Sub (at, column)
        back = Neg (apart)
        far = Abs (back)
        y = Cast <to = 1> (far)""",
        "float[1, N] x",
        {"x": np.zeros((1, 5), np.float32)},
    ),
    "a size that is scaled as a float": (
        """s = Shape (x)
        f = Cast <to = 1> (s)
        scale = Constant <value_floats = [1.5, 2.0]> ()
        larger = Mul (f, scale)
        whole = Floor (larger)
        size = Cast <to = 7> (whole)
        two = Constant <value_int = 2> ()
        more = Mul (size, two)
        y = Cast <to = 1> (more)""",
        "float[A, B] x",
        {"x": np.zeros((3, 5), np.float32)},
    ),
    "steps of a logarithm": (
        """l = Log (x)
        base = Constant <value_float = 2.772588722239781> ()
        part = Div (l, base)
        eight = Constant <value_float = 8.0> ()
        scaled = Mul (part, eight)
        step = Cast <to = 7> (scaled)
        more = Add (step, step)
        y = Cast <to = 1> (more)""",
        "float[N] x",
        {"x": np.array([1, 9, 3e38, 1e-38], np.float32)},
    ),
    "counted tokens": (
        """ones = Cast <to = 7> (x)
        axis = Constant <value_int = 1> ()
        at = CumSum (ones, axis)
        masked = Mul (at, ones)
        padding = Constant <value_int = 1> ()
        position = Add (masked, padding)
        y = Cast <to = 1> (position)""",
        "bool[1, N] x",
        {"x": np.array([[True, True, False]])},
    ),
    "narrow numbers": (
        """a = Cast <to = 7> (x)
        c = Constant <value_int = 60000> ()
        b = Mul (a, c)
        y = Cast <to = 1> (b)""",
        "int16[N] x",
        {"x": np.array([-32768, 32767], np.int16)},
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits_32_bits_runs_on_openvino(name: str) -> None:
    explanation, providers = run(*FITS[name], placement="all")
    assert providers == [OPENVINO], explanation


TOO_LARGE: dict[str, tuple[str, str, Feed]] = {
    "products of 32-bit numbers": (
        """a = Cast <to = 7> (x)
        c = Constant <value_int = 1000> ()
        b = Mul (a, c)
        y = Cast <to = 1> (b)""",
        "int32[N] x",
        {"x": np.array([5, 5_000_000, -2_000_000_000], np.int32)},
    ),
    "the negative of the least number": (
        "a = Cast <to = 7> (x)  b = Neg (a)  y = Cast <to = 1> (b)",
        "int32[N] x",
        {"x": np.array([-(1 << 31), 7], np.int32)},
    ),
    "powers": (
        """a = Cast <to = 7> (x)
        c = Constant <value_int = 5> ()
        b = Pow (a, c)
        y = Cast <to = 1> (b)""",
        "uint8[N] x",
        {"x": np.array([255, 2], np.uint8)},
    ),
    "a mixed product of sizes": (
        """s = Shape (x)
        c = Constant <value_int = 2000000000> ()
        b = Mul (s, c)
        y = Cast <to = 1> (b)""",
        "float[A, B] x",
        {"x": np.zeros((3, 5), np.float32)},
    ),
    "a float without a bound": (
        """e = Mul (x, x)
        a = Cast <to = 7> (e)
        y = Cast <to = 1> (a)""",
        "float[N] x",
        {"x": np.array([1e6, 2.0], np.float32)},
    ),
    "a number that is raised to a bound": (
        """a = Cast <to = 7> (x)
        least = Constant <value_int = 2147483000> ()
        b = Clip (a, least)
        c = Add (b, b)
        y = Cast <to = 1> (c)""",
        "bool[N] x",
        {"x": np.array([True, False])},
    ),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_may_exceed_32_bits_runs_on_the_cpu_ep(name: str) -> None:
    explanation, providers = run(*TOO_LARGE[name], placement="pays")
    assert CPU in providers, explanation
    assert "32 bits" in explanation
