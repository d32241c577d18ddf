"""Attention is right on OpenVINO whatever the first run's number of keys was."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import ort_lite as ort
from eps.openvino.compile.rewrite import rewrite_partition
from ort_lite.model import loader

OPENVINO = "OpenVINOExecutionProvider"
HEAD = """<ir_version: 8, opset_import: ["" : 17]>
g ({kind}[b, h, i, {depth}] q, {kind}[b, h, j, {depth}] k, {kind}[b, h, j, {depth}] v) =>
  ({kind}[b, h, i, {depth}] y) {{
  t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t) {scores}
  a = Softmax <axis = -1> (c) y = MatMul(a, v) }}"""
FACTOR = "f = Constant <value_float = 0.5> ()"
SIZES = ((1, 5, 1), (1, 2, 2), (2, 16, 16), (1, 33, 33), (1, 5, 70), (3, 33, 5), (1, 1, 33))
"""Batch, queries and keys of runs of one session, in this order."""


@pytest.mark.parametrize("first", [(1, 1, 1), (1, 5, 1), (2, 9, 1)], ids=str)
@pytest.mark.parametrize(
    "scores",
    [
        "c = Identity(s)",
        f"{FACTOR} c = Mul(s, f)",
        f"{FACTOR} c = Div(s, f)",
        "n = Constant <value_float = -3.0> () c = Clip(s, n)",
        "c = Tanh(s)",
        f"{FACTOR} c = Sub(s, f)",
    ],
    ids=["plain", "a factor", "a divisor", "clipped", "tanh", "a summand"],
)
@pytest.mark.parametrize(("heads", "depth"), [(4, 4), (12, 32), (1, 64)])
def test_lengths_after_a_single_key(
    scores: str, heads: int, depth: int, first: tuple[int, int, int]
) -> None:
    check(HEAD.format(kind="float", depth=depth, scores=scores), heads, depth, first)


def test_halves_after_a_single_key() -> None:
    text = HEAD.format(kind="float16", depth=16, scores="c = Identity(s)")
    check(text, 4, 16, (1, 5, 1), np.float16)


@pytest.mark.parametrize("scale", ["c = Identity(s)", f"{FACTOR} c = Mul(s, f)"])
def test_scores_by_einsum_after_a_single_key(scale: str) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[b, 4, i, 16] q, float[b, 4, j, 16] k, float[b, 4, j, 16] v) =>
      (float[b, 4, i, 16] y) {{
      s = Einsum <equation = "bhid,bhjd->bhij"> (q, k) {scale} a = Softmax <axis = -1> (c)
      y = Einsum <equation = "bhij,bhjd->bhid"> (a, v) }}"""
    check(text, 4, 16, (1, 5, 1))


@pytest.mark.parametrize(
    "attributes", ["", "<scale = 0.3>", "<softcap = 2.0>", "<is_causal = 1>"], ids=str
)
def test_attention_in_one_node(attributes: str) -> None:
    text = f"""<ir_version: 11, opset_import: ["" : 23]>
    g (float[b, 4, i, 16] q, float[b, 4, j, 16] k, float[b, 4, j, 16] v) =>
      (float[b, 4, i, 16] y) {{ y = Attention {attributes} (q, k, v) }}"""
    check(text, 4, 16, (1, 5, 1))


def check(
    text: str,
    heads: int,
    depth: int,
    first: tuple[int, int, int],
    dtype: type[np.floating] = np.float32,
) -> None:
    """Compare the answers of a session with those of onnx.reference."""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(3)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    reference = ReferenceEvaluator(model)
    with ort.InferenceSession(model.SerializeToString(), options, providers=[OPENVINO]) as session:
        session.disable_fallback()
        (partition,) = session.explain().partitions
        assert partition.ep == OPENVINO
        for batch, queries, keys in (first, *SIZES):
            lengths = {"q": queries, "k": keys, "v": keys}
            feeds = {
                name: rng.normal(size=(batch, heads, length, depth)).astype(dtype)
                for name, length in lengths.items()
            }
            (right,) = reference.run(None, feeds)
            (result,) = session.run(None, feeds)
            accuracy = 1e-5 if dtype is np.float32 else 4e-3
            np.testing.assert_allclose(result, right, accuracy, accuracy, strict=True)


@pytest.mark.parametrize(
    ("keys", "scores", "added"),
    [
        ("j", "c = Identity(s)", True),
        ("5", "c = Identity(s)", False),
        ("j", "c = Add(s, m)", False),
        ("j", "c = Where(e, s, m)", False),
        ("j", "c = Mul(s, m)", False),
    ],
    ids=["free", "a known number", "a mask", "a mask of truth values", "factors"],
)
def test_nothing_is_added_where_it_is_not_needed(keys: str, scores: str, *, added: bool) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[b, h, i, 8] q, float[b, h, 8, {keys}] t, float[b, h, {keys}, 8] v,
       float[{keys}] m, bool[{keys}] e) => (float[b, h, i, 8] y) {{
      s = MatMul(q, t) {scores} a = Softmax <axis = -1> (c) y = MatMul(a, v) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    graph = loader.resolve(loader.load(model, ort.SessionOptions()).model, {})
    nodes = rewrite_partition(graph, kind="CPU").definition.nodes
    assert (len(nodes) > len(graph.nodes)) is added


@pytest.mark.parametrize(
    ("keys", "past", "added"), [("j", "", True), ("5", "", False), ("1", "p", True)]
)
def test_a_mask_is_given_where_the_number_of_keys_is_free(
    keys: str, past: str, *, added: bool
) -> None:
    cache, names = ("float[1, 2, p, 8] c,", ", , c, c") if past else ("", "")
    text = f"""<ir_version: 11, opset_import: ["" : 23]>
    g ({cache} float[1, 2, 3, 8] q, float[1, 2, {keys}, 8] k) => (float[1, 2, 3, 8] y) {{
      y = Attention(q, k, k{names}) }}"""
    model = onnx.parser.parse_model(text).SerializeToString()
    graph = loader.resolve(loader.load(model, ort.SessionOptions()).model, {})
    (node,) = rewrite_partition(graph, kind="CPU").definition.nodes
    assert any(node.inputs[3:4]) is added
