"""x * HardSigmoid(x) is one HardSwish for OpenVINO, with the answers of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import ort_lite as ort

OPENVINO = "OpenVINOExecutionProvider"
HEAD = '<ir_version: 8, opset_import: ["" : {opset}]>\ng ({kind}[n, 3, 6, 7] x) => ({outputs})'
WEIGHTS = "<float[4, 3, 1, 1] w = {0.5, -1, 2, 0.25, 1.5, -0.5, 3, 1, -2, 0.125, 1, 4}>"
GATE = "HardSigmoid <alpha = 0.16666667, beta = 0.5>"
JOINED = "HardSigmoid x1, Mul x1 written out as HardSwish x1"


def run(body: str, *, opset: int = 17, outputs: str = "y", ieee: str = "0") -> list[str]:
    """Notes of the partition, once the answers agree."""
    named = ", ".join(f"float[n, c, h, v] {name}" for name in outputs.split())
    head = HEAD.format(opset=opset, kind="float", outputs=named)
    model = onnx.parser.parse_model(f"{head} {WEIGHTS} {{ {body} }}").SerializeToString()
    x = np.random.default_rng(2).normal(0, 2, (2, 3, 6, 7)).astype(np.float32)
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    provider = (OPENVINO, {"ieee_semantics": ieee, "load_config": CONFIG})
    with ort.InferenceSession(model, providers=[provider, "CPUExecutionProvider"]) as ours:
        for mine, expected in zip(
            ours.run(None, {"x": x}), theirs.run(None, {"x": x}), strict=True
        ):
            np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-5)
        return [note for part in ours.explain().partitions for note in part.notes]


CONFIG = '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'


@pytest.mark.parametrize("order", ["c, h", "h, c"])
def test_a_pair_is_joined(order: str) -> None:
    notes = run(f"c = Conv(x, w) h = {GATE}(c) y = Mul({order})")
    assert any(note.startswith(JOINED) for note in notes)


@pytest.mark.parametrize(
    "body",
    [
        f"c = Conv(x, w) h = {GATE}(c) d = Relu(c) y = Mul(d, h)",
        "c = Conv(x, w) h = HardSigmoid(c) y = Mul(c, h)",
        "c = Conv(x, w) h = HardSigmoid <alpha = 0.16666667, beta = 0.4>(c) y = Mul(c, h)",
        f"c = Conv(x, w) h = {GATE}(c) y = Mul(h, h)",
    ],
    ids=["of another value", "alpha", "beta", "a square"],
)
def test_other_products_stay(body: str) -> None:
    assert not any("HardSwish" in note for note in run(body))


def test_a_gate_that_is_read_elsewhere_stays() -> None:
    body = f"c = Conv(x, w) h = {GATE}(c) m = Mul(c, h) s = Sqrt(h) y = Add(m, s)"
    assert not any("HardSwish" in note for note in run(body))
    body = f"c = Conv(x, w) h = {GATE}(c) y = Mul(c, h)"
    assert not any("HardSwish" in note for note in run(body, outputs="y h"))


def test_before_the_operator_existed_and_with_special_values_they_stay() -> None:
    body = f"c = Conv(x, w) h = {GATE}(c) y = Mul(c, h)"
    assert not any("HardSwish" in note for note in run(body, opset=13))
    assert not any("HardSwish" in note for note in run(body, ieee="1"))
