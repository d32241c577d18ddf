"""Rotary embeddings on OpenVINO, compiled and out of a context: what onnx.reference computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

OPENVINO = "OpenVINOExecutionProvider"
HEAD = '<ir_version: 10, opset_import: ["": 23]>'
TABLES = "float[1, 1, 6, 8] cos, float[1, 1, 6, 8] sin"
HALVES = """
  zero = Constant <value = int64[1] {0}> ()
  half = Constant <value = int64[1] {8}> ()
  whole = Constant <value = int64[1] {16}> ()
  axis = Constant <value = int64[1] {3}> ()
  x1 = Slice (x, zero, half, axis)
  x2 = Slice (x, half, whole, axis)
  a = Mul (x1, cos)
  b = Mul (x2, sin)
  c = Mul (x2, cos)
  d = Mul (x1, sin)
  right = Add (c, d)
"""
ROTATIONS = {
    "difference": "left = Sub (a, b) y = Concat <axis = 3> (left, right)",
    "negated product": "n = Neg (b) left = Add (a, n) y = Concat <axis = 3> (left, right)",
    "negated first": "n = Neg (b) left = Add (n, a) y = Concat <axis = 3> (left, right)",
    "product with -1": """
      m = Constant <value = float {-1.0}> ()
      n = Mul (b, m)
      left = Add (a, n)
      y = Concat <axis = 3> (left, right)
    """,
    "other axis": "left = Sub (a, b) y = Concat <axis = 2> (left, right)",
}


def models() -> dict[str, onnx.ModelProto]:
    texts = {
        name: f"main (float[1, 4, 6, 16] x, {TABLES}) => (float[1, 4, N, M] y) {{{HALVES}{body}}}"
        for name, body in ROTATIONS.items()
    }
    for interleaved in (0, 1):
        for shape, more in (("1, 4, 6, 16", ""), ("1, 6, 64", ", num_heads = 4")):
            texts[f"RotaryEmbedding-23 {interleaved} [{shape}]"] = (
                f"main (float[{shape}] x, float[1, 6, 8] cos, float[1, 6, 8] sin)"
                f" => (float[{shape}] y)"
                f" {{ y = RotaryEmbedding <interleaved = {interleaved}{more}> (x, cos, sin) }}"
            )
    return {name: parser.parse_model(f"{HEAD}\n{text}") for name, text in texts.items()}


MODELS = models()


def feed_of(proto: onnx.ModelProto) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return {
        info.name: random.standard_normal(
            [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for info in proto.graph.input
    }


@pytest.mark.parametrize("name", MODELS)
def test_a_rotation_out_of_a_context_is_the_one_that_was_compiled(
    tmp_path: Path, name: str
) -> None:
    proto = MODELS[name]
    feed = feed_of(proto)
    (expected,) = ReferenceEvaluator(proto).run(None, feed)
    config = ort.SessionOptions()
    config.add_session_config_entry("session.placement", "all")
    config.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(tmp_path / "m_ctx.onnx"))
    with ort.InferenceSession(proto.SerializeToString(), config, providers=[OPENVINO]) as compiled:
        (found,) = compiled.run(None, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    with ort.InferenceSession(tmp_path / "m_ctx.onnx", providers=[OPENVINO]) as reloaded:
        (again,) = reloaded.run(None, feed)
    np.testing.assert_array_equal(again, found)
