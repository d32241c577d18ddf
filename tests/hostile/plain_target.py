"""Plain models, damaged field by field or grown beyond reason, on the CPU EP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx.parser
from hostile import model_mutations
from hostile.fuzz_target import Outcome, Target
from hostile.growing_models import GROWING
from small_models import mlp, sandwich, tied

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

HEAD = '<ir_version: 8, opset_import: ["" : 18, "l" : 1]>\n'
TEXTS = (
    """g (float[n,4] x) => (float[m] y) {
      s = Shape(x)  first = Constant<value_ints = [0]>()  n = Gather(s, first)
      minus = Constant<value_ints = [-1]>()  y = Reshape(x, minus) }""",
    """g (bool c, float[2,2] x) => (float[p,q] y) {
      y = If(c) <then_branch = t () => (float[p,q] a) { a = Relu(x) },
                 else_branch = e () => (float[p,q] b) { z = Transpose(x) b = Neg(z) }> }""",
    """g (int64 n, float[2] x) => (float[2] y, float[k,2] all) {
      on = Constant<value = bool {1}>()
      y, all = Loop(n, on, x) <body = b (int64 i, bool go, float[2] v) =>
                                      (bool more, float[2] w, float[2] o) {
        more = Identity(go) w = Add(v, x) o = Mul(w, w) }> }""",
    """g (float[2,8] x) => (float[2,8] y) {
      s = Constant<value = float {0.1}>()  z = Constant<value = uint8 {3}>()
      q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }""",
    """g (float[1,3,8,8] x) => (float[1,3,16,16] y) {
      scales = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()  e = Identity(x)
      y = Resize<mode = "nearest">(e, , scales) }""",
    """g (float[2] x) => (float[2] y) { t = l.f<k = 2.0>(x) y = l.f<k = 3.0>(t) }
    <opset_import: ["" : 18], domain: "l">
    f <k>(a) => (b) { c = Constant<value_float: float = @k>() d = Mul(a, c) b = Relu(d) }""",
)


class PlainTarget(Target):
    """Models with shapes of free dimensions, bodies, functions and constants."""

    name = "plain"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        made = [onnx.parser.parse_model(HEAD + text) for text in TEXTS]
        self.bases = [m.SerializeToString() for m in (*made, mlp(), sandwich(), tied(width=8))]

    def run(self, random: Random) -> Outcome:
        base = random.choice(self.bases)
        grown = random.random() < 0.15
        if grown:
            self.last = random.choice(GROWING)(random)
        else:
            self.last = model_mutations.damaged(base, random)
        if self.last == base:
            return Outcome("unchanged")
        try:
            with ort.InferenceSession(self.last, providers=["CPUExecutionProvider"]) as session:
                if not grown:
                    _run(session)
        except ort.OrtLiteError as exc:
            return Outcome("refused", exc.code.name)
        except ValueError as exc:  # onnxruntime's class for a feed that does not fit the model
            if "Required inputs" not in str(exc) and "input feed" not in str(exc):
                raise
            return Outcome("another model", "inputs")
        return Outcome("right", "grown" if grown else "runs")


SIZES = 64
"""Elements of a feed: a damaged shape may be any size."""


def _run(session: ort.InferenceSession) -> None:
    """Once, where its inputs are small tensors of numbers."""
    feed = {}
    for arg in session.get_inputs():
        shape = [dim if isinstance(dim, int) else 2 for dim in arg.shape or ()]
        kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
        if arg.type not in kinds or np.prod([max(d, 1) for d in shape], dtype=float) > SIZES * 4:
            return
        feed[arg.name] = np.ones([max(dim, 0) for dim in shape], kinds[arg.type])
    session.run(None, feed)
