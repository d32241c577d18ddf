"""Attention, rotary embedding and what ONNX Runtime's optimizer fuses, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_models import NodeSet
from merged_cases import check, merge, node_cases

import ort_lite as ort

CONTRIB = "com.microsoft"
BATCH, LENGTH, HEADS, SIZE = 2, 19, 4, 8
WIDTH = HEADS * SIZE
LEFT = ("16", "qk_matmul", "padded", "nonpad", "local_window", "bidirectional_window")
"""Parts of names of cases that are refused: other types, scores as outputs, bounded windows."""


def add_fused_nodes(nodes: NodeSet, random: np.random.Generator) -> None:
    def floats(*shape: int) -> np.ndarray[Any, Any]:
        return random.standard_normal(shape).astype(np.float32)

    x, skip, bias = floats(BATCH, LENGTH, WIDTH), floats(BATCH, LENGTH, WIDTH), floats(WIDTH)
    nodes.add("BiasGelu", [x, bias], domain=CONTRIB)
    nodes.add("FastGelu", [x, bias], domain=CONTRIB)
    nodes.add("FastGelu", [x], domain=CONTRIB)
    gamma, beta = floats(WIDTH), floats(WIDTH)
    norm = [x, skip, gamma, beta, bias]
    nodes.add("SkipLayerNormalization", norm, (2, 3), [0, 3], domain=CONTRIB, epsilon=1e-6)
    nodes.add("SkipLayerNormalization", [x, floats(LENGTH, WIDTH), gamma], (2,), domain=CONTRIB)
    rms = [x, skip, gamma, bias]
    nodes.add("SkipSimplifiedLayerNormalization", rms, (2,), [0, 3], domain=CONTRIB)
    ids = random.integers(0, 50, (BATCH, LENGTH)).astype(np.int32)
    tables = floats(50, WIDTH), floats(LENGTH + 3, WIDTH), floats(2, WIDTH)
    mask = (ids > 9).astype(np.int32)
    embedded = [ids, ids % 2, *tables, gamma, beta, mask]
    nodes.add("EmbedLayerNormalization", embedded, (2, 3, 4, 5, 6), 2, domain=CONTRIB)
    image, weights, offsets = floats(1, 3, 9, 9), floats(8, 3, 3, 3), floats(8)
    for activation, values in {
        "HardSigmoid": [0.3, 0.4],
        "LeakyRelu": [0.2],
        "Clip": [-0.5, 0.7],
    }.items():
        nodes.add(
            "FusedConv", [image, weights, offsets, floats(1, 8, 9, 9)], (1, 2), domain=CONTRIB,
            activation=activation, activation_params=values, pads=[1, 1, 1, 1],
        )  # fmt: skip
    gemm = [floats(5, 6), floats(7, 6), floats(7)]
    nodes.add("FusedGemm", gemm, (1,), domain=CONTRIB, transB=1, activation="Tanh")


def add_attention_nodes(nodes: NodeSet, random: np.random.Generator) -> None:
    def floats(*shape: int) -> np.ndarray[Any, Any]:
        return random.standard_normal(shape).astype(np.float32)

    x = floats(BATCH, LENGTH, WIDTH)
    weights, bias = floats(WIDTH, 3 * WIDTH) / 4, floats(3 * WIDTH)
    seen = np.ones((BATCH, LENGTH), np.int32)
    seen[1, 11:] = 0
    counts = np.array([LENGTH, 7], np.int32)
    added = floats(1, HEADS, LENGTH, LENGTH)
    common = {"num_heads": HEADS, "domain": CONTRIB}
    nodes.add("Attention", [x, weights, bias], (1, 2), **common)
    nodes.add("Attention", [x, weights, bias, seen], (1, 2), **common)
    nodes.add("Attention", [x, weights, bias, counts], (1, 2), **common)
    nodes.add("Attention", [x, weights, bias], (1, 2), unidirectional=1, **common)
    nodes.add("Attention", [x, weights, bias, None, None, added], (1, 2), scale=0.2, **common)
    keys, values = floats(BATCH, 23, WIDTH), floats(BATCH, 23, WIDTH)
    nodes.add("MultiHeadAttention", [x, keys, values], **common)
    nodes.add("MultiHeadAttention", [x, x, x, bias, seen], (3,), **common)
    heads = floats(BATCH, HEADS, 23, SIZE), floats(BATCH, HEADS, 23, SIZE)
    nodes.add("MultiHeadAttention", [x, *heads], **common)
    caches = [np.cos(a).astype(np.float32) for a in (floats(64, SIZE // 2), floats(64, SIZE // 2))]
    places = random.integers(0, 64, (BATCH, LENGTH))
    for interleaved in (0, 1):
        turned = {"interleaved": interleaved, "domain": CONTRIB, "num_heads": HEADS}
        nodes.add("RotaryEmbedding", [x, places, *caches], (2, 3), **turned)
        nodes.add("RotaryEmbedding", [x, np.array([5]), *caches], (2, 3), **turned)


@pytest.mark.parametrize("platform", ["", "portable"])
def test_fused_operators_agree_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_fused_nodes(nodes, np.random.default_rng(3))
    nodes.check(platform=platform, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("platform", ["", "portable"])
def test_attention_of_onnxruntime_agrees_with_it(platform: str) -> None:
    nodes = NodeSet()
    add_attention_nodes(nodes, np.random.default_rng(4))
    nodes.check(platform=platform, rtol=2e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # making the cases overflows on purpose
def test_onnx_cases_of_attention_are_right_on_the_device() -> None:
    cases = node_cases(("Attention", "RotaryEmbedding"))
    taken = [c for c in cases if not any(part in c.name for part in LEFT)]
    taken = taken[::3]  # every third: each is several kernels
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = ["OpenCLExecutionProvider", "CPUExecutionProvider"]
    for merged in merge(taken, {}):
        data = merged.model.SerializeToString()
        with ort.InferenceSession(data, options, providers=providers) as session:
            nodes = [n for p in session.explain().partitions for n in p.nodes]
            assert [(n.name, n.refusals) for n in nodes if n.ep != providers[0]] == []
            names = [info.name for info in session.get_outputs()]
            check(merged, dict(zip(names, session.run(None, merged.feeds), strict=True)))


def test_attention_that_no_kernel_fits_is_refused_with_the_reason() -> None:
    x, q = np.ones((1, 4, 8), np.float32), np.ones((1, 2, 4, 4), np.float32)
    weights = np.ones((8, 24), np.float32)
    nodes, common = NodeSet(23), {"num_heads": 2, "domain": CONTRIB}
    past = np.ones((2, 1, 2, 4, 4), np.float32)
    mask = np.ones((1, 1, 4, 3), np.float32)
    asked = {
        nodes.add("Attention", [x, weights, None, None, past], **common): "with past keys",
        nodes.add("Attention", [x, weights, None, mask], **common): "a mask of float32",
        nodes.add("MultiHeadAttention", [x], **common): "packed into one",
        nodes.add("Attention", [q, q, q, mask]): "for 4 keys",
        nodes.add("Attention", [q, q, q], outputs=[0, 3]): "scores as an output",
        nodes.add("Attention", [x, x, x]): "input 0 of rank 3",
        nodes.add("SkipLayerNormalization", [x, x, x[0, 0]], domain=CONTRIB): "not known",
    }
    found = nodes.refusals()
    for name, reason in asked.items():
        assert reason in found[name.split("/")[0]]
