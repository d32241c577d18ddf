"""What a body on one execution provider captures from a partition of another one."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime

import ort_lite as ort

OPENVINO, CPU = "OpenVINOExecutionProvider", "CPUExecutionProvider"
REVERSED = """<ir_version: 9, opset_import: ["" : 18]>
g (float[h, w] x) => (y)
<int64[1] a = {3}, int64[1] b = {-5}, int64[1] z = {0}, int64[1] m = {-1}, int64 n = {1}> {
  s = Slice (x, a, b, z, m)
  k, y = Loop (n, , x) <body = body (int64 i, bool q, float[h2, w2] c0)
    => (bool q2, float[h2, w2] c1, float[h3, w3] o) {
      q2 = Identity (q)
      e = Softmax (s)
      v = Unsqueeze (c0, z)
      most = ReduceMax <keepdims = 0> (v)
      c1 = Sub (c0, most)
      o = Tanh (e)
    }>
}"""


def test_a_view_with_negative_strides_is_captured_as_it_is() -> None:
    content = onnx.parser.parse_model(REVERSED).SerializeToString()
    feed = {"x": np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)}
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(content, options, providers=[OPENVINO, CPU]) as session:
        ep_of = {n.op_type: n.ep for part in session.explain().partitions for n in part.nodes}
        (found,) = session.run(None, feed)
    assert (ep_of["Slice"], ep_of["Softmax"]) == (CPU, OPENVINO)
    (expected,) = onnxruntime.InferenceSession(content).run(None, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
