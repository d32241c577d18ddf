"""Attention and rotary embedding agree with onnxruntime at transformer sizes."""

from __future__ import annotations

import numpy as np
import pytest
from parity.against_onnxruntime import agree
from parity.node_cases import NodeCase, normal, whole

Q, K, V = (normal(1, 12, 128, 32, seed=i) for i in range(3))
FLAT = [normal(2, 64, 96, seed=i) for i in range(3)]
GROUPED = [normal(1, 8, 33, 16), normal(1, 2, 33, 16, seed=1), normal(1, 2, 33, 16, seed=2)]
PAST = [normal(1, 2, 7, 16, seed=3), normal(1, 2, 7, 16, seed=4)]
ANGLES = np.outer(np.arange(64), 1 / 10 ** np.linspace(0, 3, 8)).astype(np.float32)


def attention(name: str, *inputs, outputs: int = 1, **attributes) -> NodeCase:
    return NodeCase(
        name=name,
        op="Attention",
        inputs=inputs,
        attributes=attributes,
        opset=23,
        outputs=outputs,
        rtol=2e-5,
    )


CASES = [
    attention("plain", Q, K, V),
    attention("causal", Q, K, V, is_causal=1),
    attention("scale and cap", Q, K, V, scale=0.3, softcap=2.0),
    attention("boolean mask", Q, K, V, normal(128, 128) > -1),
    attention("float mask", Q, K, V, normal(1, 12, 128, 128)),
    attention("heads in columns", *FLAT, q_num_heads=6, kv_num_heads=6),
    attention("grouped", *GROUPED),
    attention("past", *GROUPED, None, *PAST, outputs=3),
    attention("past causal", *GROUPED, None, *PAST, outputs=3, is_causal=1),
    NodeCase(
        name="half",
        op="Attention",
        opset=23,
        rtol=3e-3,
        inputs=[x.astype(np.float16) for x in (Q, K, V)],
    ),
    NodeCase(
        name="positions",
        op="RotaryEmbedding",
        opset=23,
        inputs=[normal(2, 4, 20, 16), np.cos(ANGLES), np.sin(ANGLES), whole(0, 64, 2, 20)],
    ),
    NodeCase(
        name="interleaved",
        op="RotaryEmbedding",
        opset=23,
        inputs=[normal(2, 4, 20, 16), np.cos(ANGLES), np.sin(ANGLES), whole(0, 64, 2, 20)],
        attributes={"interleaved": 1},
    ),
    NodeCase(
        name="heads in columns",
        op="RotaryEmbedding",
        opset=23,
        inputs=[
            normal(2, 20, 64),
            np.cos(ANGLES[:, :4]),
            np.sin(ANGLES[:, :4]),
            whole(0, 64, 2, 20),
        ],
        attributes={"num_heads": 4, "rotary_embedding_dim": 8},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.op} {c.name}")
def test_a_node_agrees_with_onnxruntime(case: NodeCase) -> None:
    agree(case)
