"""Recorded cases: recurrent operators, attention, fused operators, signals and text."""

from __future__ import annotations

import numpy as np
from parity.realistic.case import RecordedCase, node
from parity.realistic.drawn import floats, ints, normal, one, texts, uniform, whole

MS = "com.microsoft"


def _recurrent() -> list[RecordedCase]:
    cases = []
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = (normal(1, gates * 64, 40, scale=0.2), normal(1, gates * 64, 64, scale=0.1))
        both = (
            normal(2, gates * 24, 16, scale=0.2),
            normal(2, gates * 24, 24, scale=0.2),
            normal(2, 2 * gates * 24),
        )
        count = 3 if op == "LSTM" else 2
        lengths = np.array([9, 20, 4], np.int32)
        state = (normal(2, 3, 24),) * (2 if op == "LSTM" else 1)
        cases += [
            node(op, normal(48, 1, 40), *weights, hidden_size=64, outputs=count, rtol=1e-5),
            node(
                op,
                normal(20, 3, 16),
                *both,
                lengths,
                *state,
                what="both ways",
                direction="bidirectional",
                hidden_size=24,
                outputs=count,
                rtol=1e-5,
            ),
            node(
                op,
                normal(20, 3, 40),
                *weights,
                what="backwards",
                direction="reverse",
                hidden_size=64,
                outputs=count,
                rtol=1e-5,
            ),
        ]
    return [
        *cases,
        node(
            "GRU",
            normal(20, 3, 40),
            normal(1, 96, 40, scale=0.2),
            normal(1, 96, 32, scale=0.2),
            normal(1, 192),
            what="reset after",
            linear_before_reset=1,
            hidden_size=32,
            outputs=2,
            rtol=1e-5,
        ),
        node(
            "LSTM",
            normal(20, 3, 16),
            normal(1, 96, 16, scale=0.2),
            normal(1, 96, 24, scale=0.2),
            None,
            None,
            None,
            None,
            normal(1, 72),
            what="peepholes",
            hidden_size=24,
            outputs=3,
            rtol=1e-5,
        ),
    ]


def _attention() -> list[RecordedCase]:
    q = normal(1, 8, 64, 32)
    return [
        node("Attention", q, q, q, opset=23, rtol=1e-5),
        node(
            "Attention",
            q,
            normal(1, 4, 80, 32),
            normal(1, 4, 80, 32),
            what="grouped",
            opset=23,
            is_causal=1,
            rtol=1e-5,
        ),
        node(
            "Attention",
            normal(1, 40, 64),
            normal(1, 50, 64),
            normal(1, 50, 64),
            normal(40, 50),
            what="three axes",
            opset=23,
            q_num_heads=4,
            kv_num_heads=4,
            rtol=1e-5,
        ),
        node(
            "RotaryEmbedding",
            normal(2, 8, 40, 32),
            normal(60, 16),
            normal(60, 16),
            whole(0, 60, 2, 40),
            opset=23,
            rtol=1e-5,
        ),
        *_contrib_attention(),
    ]


def _contrib_attention() -> list[RecordedCase]:
    hidden = 96
    x, w, b = normal(2, 40, 64), normal(64, 3 * hidden, scale=0.1), normal(3 * hidden, scale=0.1)
    mask = np.array([[1] * 40, [1] * 25 + [0] * 15], np.int32)
    qkv = (normal(2, 40, hidden), normal(2, 50, hidden), normal(2, 50, hidden))
    grouped = (normal(1, 20, 128), normal(1, 20, 64), normal(1, 20, 64))
    past = (
        normal(1, 2, 0, 32),
        normal(1, 2, 0, 32),
        np.array([19], np.int32),
        np.array(20, np.int32),
    )
    caches = (normal(64, 16), normal(64, 16))
    ms = {"domain": MS, "rtol": 2e-5}
    return [
        node("Attention", x, w, b, mask, num_heads=4, **ms),
        node("Attention", x, w, b, what="causal", num_heads=4, unidirectional=1, **ms),
        node("MultiHeadAttention", *qkv, normal(3 * hidden), num_heads=4, **ms),
        node("GroupQueryAttention", *grouped, *past, num_heads=4, kv_num_heads=2, outputs=3, **ms),
        node(
            "GroupQueryAttention",
            *grouped,
            *past,
            *caches,
            what="rotary",
            num_heads=4,
            kv_num_heads=2,
            do_rotary=1,
            outputs=3,
            **ms,
        ),
        node(
            "RotaryEmbedding", normal(2, 40, 128), whole(0, 64, 2, 40), *caches, num_heads=4, **ms
        ),
    ]


def _fused() -> list[RecordedCase]:
    hidden = normal(2, 40, 256)
    row, bias = uniform(0.5, 2, 256), normal(256)
    ids, kinds = whole(0, 300, 2, 40, dtype=np.int32), whole(0, 2, 2, 40, dtype=np.int32)
    tables = (normal(300, 64), normal(50, 64), normal(2, 64), uniform(0.5, 2, 64), normal(64))
    conv = (normal(1, 16, 28, 28), normal(24, 16, 3, 3, scale=0.1), normal(24))
    ms = {"domain": MS, "rtol": 1e-5}
    return [
        node("Gelu", hidden, **ms),
        node("BiasGelu", hidden, bias, **ms),
        node("FastGelu", hidden, bias, **ms),
        node("QuickGelu", hidden, alpha=1.702, **ms),
        node("FusedMatMul", normal(2, 60, 40), normal(2, 50, 40), alpha=0.125, transB=1, **ms),
        node("TransposeMatMul", normal(2, 60, 40), normal(2, 50, 40), transB=1, **ms),
        node(
            "FusedGemm",
            normal(30, 50),
            normal(40, 50),
            normal(40),
            transB=1,
            activation="Relu",
            **ms,
        ),
        node(
            "FusedConv", *conv, pads=[1] * 4, activation="LeakyRelu", activation_params=[0.2], **ms
        ),
        node(
            "FusedConv",
            *conv,
            normal(1, 24, 28, 28),
            what="sum",
            pads=[1] * 4,
            activation="Relu",
            **ms,
        ),
        node("SkipLayerNormalization", hidden, hidden, row, bias, bias, epsilon=1e-5, **ms),
        node("SkipSimplifiedLayerNormalization", hidden, hidden, row, epsilon=1e-6, **ms),
        node(
            "EmbedLayerNormalization",
            ids,
            kinds,
            *tables,
            whole(0, 2, 2, 40, dtype=np.int32),
            epsilon=1e-5,
            outputs=2,
            **ms,
        ),
        node("CDist", normal(40, 64), normal(50, 64), metric="euclidean", **{**ms, "rtol": 1e-4}),
        node("Inverse", _regular(), **{**ms, "rtol": 1e-4}),
        node("NGramRepeatBlock", whole(0, 9, 4, 60), normal(4, 200), ngram_size=2, **ms),
        node("Trilu", normal(60, 50), one(2, np.int64), domain=MS, upper=0, rtol=0),
        node("ExpandDims", normal(60, 50), one(-1, np.int32), domain=MS, rtol=0),
        node("Pad", normal(60, 50), ints(1, 0, 2, 3), one(7), domain=MS, rtol=0),
        node("GatherND", normal(60, 50), whole(0, 50, 99, 2), domain=MS, rtol=0),
        node("Range", one(1), one(99), one(0.5), domain=MS, rtol=0),
        node("Unique", whole(0, 99, 999, dtype=np.float32), domain=MS, outputs=3, rtol=0),
    ]


def _regular() -> np.ndarray:
    waves = np.sin(np.arange(4 * 12 * 12).reshape(4, 12, 12)) + 6 * np.eye(12)
    return waves.astype(np.float32)


def _signals() -> list[RecordedCase]:
    return [
        node("DFT", normal(4, 400, 1), None, one(1, np.int64), opset=20, rtol=2e-5),
        node(
            "DFT",
            normal(4, 256, 2),
            None,
            one(1, np.int64),
            what="inverse",
            opset=20,
            inverse=1,
            rtol=2e-5,
        ),
        node("DFT", normal(4, 400, 1), what="old", opset=17, axis=1, onesided=1, rtol=2e-5),
        node(
            "STFT",
            normal(2, 1600, 1),
            one(160, np.int64),
            uniform(0.1, 1, 400),
            opset=17,
            rtol=2e-5,
        ),
        *(
            node(f"{name}Window", one(400, np.int64), opset=17)
            for name in ("Hann", "Hamming", "Blackman")
        ),
        node(
            "MelWeightMatrix",
            one(80, np.int64),
            one(400, np.int64),
            one(16000, np.int64),
            one(0),
            one(8000),
            opset=17,
        ),
    ]


def _texts() -> list[RecordedCase]:
    words = texts("alpha", "Beta", "", "gamma delta", "x,y,,z", "12.5")
    return [
        node("StringConcat", words, texts("!"), opset=20),
        # No empty text here: onnxruntime splits it into none, onnx.reference into one.
        node(
            "StringSplit",
            texts("alpha", "x,y,,z", ",a,"),
            what="on commas",
            opset=20,
            delimiter=",",
            outputs=2,
        ),
        node("StringSplit", words, opset=20, outputs=2),
        node("RegexFullMatch", words, opset=20, pattern="[a-z]+( [a-z]+)?"),
        node(
            "StringNormalizer",
            texts("alpha", "Beta", "gamma"),
            case_change_action="NONE",
            is_case_sensitive=1,
            stopwords=["Beta"],
        ),
        node(
            "TfIdfVectorizer",
            whole(0, 9, 12, 40),
            mode="TF",
            min_gram_length=1,
            max_gram_length=2,
            max_skip_count=1,
            ngram_counts=[0, 4],
            ngram_indexes=list(range(9)),
            pool_int64s=[1, 3, 5, 7, 1, 2, 3, 4, 5, 6, 7, 8, 2, 2],
            rtol=0,
        ),
        node("Cast", texts("1.5", "-2", "1e3"), what="from text", to=1, rtol=0),
        node("Equal", words, texts("Beta"), what="text"),
        node("Gather", words, whole(0, 6, 20), what="text"),
        node("Where", np.array([True, False] * 3), words, texts("no"), what="text"),
        node("IsNaN", floats(np.nan, np.inf, 0), what="unusual"),
    ]


CASES = (
    *_recurrent(),
    *_attention(),
    *_fused(),
    *_signals(),
    *_texts(),
)
