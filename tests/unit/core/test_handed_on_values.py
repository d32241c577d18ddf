"""Bodies with outputs that no node makes: inputs and initializers that are handed on."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

LOOP = """
  z, kept, copies = Loop <body = body (int64 i, bool going, float[2] v, float[2, 2] m)
    => (bool going, float[2] w, {kept} m, {copies} k) <float[3] k = {{1, 2, 3}}> {{
      w = MatMul (m, v)
    }}> (count, go, x, scale)
  y = Neg (kept)
  n = Neg (copies)
"""
SCAN = """
  kept, rows = Scan <num_scan_inputs = 1, body = body (float[2] s, float[2] row)
    => ({kept} s, {copies} t) {{
      t = Add (s, row)
    }}> (x, scale)
  y = Neg (kept)
  n = Neg (rows)
  z = Identity (x)
"""
IF = """
  z = If <
    then_branch = then () => ({copies} k) <float[2] k = {{1, 2}}> {{}},
    else_branch = otherwise () => (float[2] w) {{ w = Abs (x) }}
  > (go)
  y = Neg (scale)
  n = Exp (z)
"""
FEED = {"count": np.array(3), "go": np.array(1, bool), "x": np.array([1, -2], np.float32)}


@pytest.mark.parametrize("providers", [["CPUExecutionProvider"], None], ids=["cpu", "default"])
@pytest.mark.parametrize(
    ("body", "kept", "copies"),
    [
        (LOOP, "float[2, 2]", "float[3]"),
        (LOOP, "float", "float"),
        (LOOP, "float[a, b]", "float[c]"),
        (SCAN, "float[2]", "float[2]"),
        (SCAN, "float[n]", "float[n]"),
        (IF, "", "float[2]"),
    ],
)
def test_a_value_that_is_handed_on_arrives(
    body: str, kept: str, copies: str, providers: list[str] | None
) -> None:
    text = f"""
    <ir_version: 8, opset_import: ["": 17]>
    main (int64 count, bool go, float[2] x) => (float[k, l] y, float[2] z, float[o, p] n)
    <float[2, 2] scale = {{0.1, 0.2, 0.3, 0.4}}> {{{body.format(kept=kept, copies=copies)}}}
    """  # onnxruntime 1.31.1 returns memory that nobody wrote for such a state of a Scan
    proto = parser.parse_model(text)
    for info in proto.graph.output:  # of any rank
        info.type.tensor_type.ClearField("shape")
    data = proto.SerializeToString()
    with ort.InferenceSession(data, providers=providers) as session:
        mine = session.run(None, FEED)
    for found, right in zip(mine, ReferenceEvaluator(proto).run(None, FEED), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6)
