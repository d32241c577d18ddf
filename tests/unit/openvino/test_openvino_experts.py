"""MoE and QMoE on OpenVINO, against onnxruntime: a product for each expert."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from decoder_runs import assert_close, fix_sizes, run_in_onnxruntime, run_steps
from device_models import NodeSet
from expert_nodes import (
    CONTRIB,
    DECODER,
    GATED,
    RANDOM,
    add,
    add_blocks,
    check,
    draw_experts,
    f32,
)

import ort_lite as ort
from benchmarks.decoders.make_decoder import make_decoder
from eps.openvino.compile.rewrite import rewrite_partition
from eps.openvino.support.offer import capability
from eps.openvino.support.table import load_table
from ort_lite.ep import GraphView
from ort_lite.model import loader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ort_lite.ep import Capability

    Array = np.ndarray[Any, np.dtype[Any]]

OPENVINO = "OpenVINOExecutionProvider"


def node_set(opset: int = 21) -> NodeSet:
    return NodeSet(opset, OPENVINO)


@pytest.mark.parametrize("tokens", [1, 7, 40])
def test_the_best_experts_of_each_token(tokens: int) -> None:
    """By columns and by blocks, an odd number of them too, with and without zero points."""
    nodes = node_set()
    sizes = (tokens, 5, 64, 96)
    for bits, block, zeros in ((4, 0, True), (4, 32, True), (8, 0, True), (4, 16, False)):
        inputs = draw_experts(sizes, bits=bits, block=block, zeros=zeros, bias=True)
        common = {"expert_weight_bits": bits, "activation_type": "silu"}
        add_blocks(nodes, block, inputs, k=2, **common)
    add_blocks(nodes, 32, draw_experts(sizes, block=32, doubled=True), k=3, **GATED)
    check(nodes, {})


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalises", [0, 1])
def test_activations_and_shares(kind: str, normalises: int) -> None:
    nodes = node_set()
    common = {"activation_type": kind, "normalize_routing_weights": normalises}
    for top in (1, 2, 5):
        add(nodes, draw_experts(mixing=top == 2), k=top, **common)
    check(nodes, {})


def test_halves_of_gated_experts_are_neighbours_in_another_order() -> None:
    """onnxruntime's CPU computes neighbours alone (swiglu_fusion 1)."""
    inputs = draw_experts(block=32, doubled=True, bias=True, zeros=True)
    right, nodes = node_set(), node_set()
    add_blocks(right, 32, inputs, k=2, **GATED)
    for at in (2, 3, 4, 11):
        value = inputs[at]
        assert value is not None
        inputs[at] = np.concatenate([value[:, 0::2], value[:, 1::2]], 1)
    add_blocks(nodes, 32, inputs, k=2, **{**GATED, "swiglu_fusion": 2})
    np.testing.assert_allclose(*nodes.run_with({}), *right.run_elsewhere(), rtol=1e-4, atol=1e-4)


def test_gates_without_limits() -> None:
    nodes = node_set()
    inputs = draw_experts(block=32, doubled=True, bias=True)
    add_blocks(nodes, 32, inputs, k=2, activation_type="swiglu", swiglu_fusion=1)
    check(nodes, {})


def test_blocks_of_8_bits() -> None:
    """onnxruntime's CPU quantises their inputs to 8 bits, and not those of weights by columns."""
    right, blocks = node_set(), node_set()
    inputs = draw_experts((1, 5, 64, 64), bits=8, zeros=True)
    common = {"k": 2, "expert_weight_bits": 8, "activation_type": "silu"}
    add(right, inputs, **common)
    for at in (3, 6, 11, 12):  # the same scale and zero point for both blocks of a column
        value = inputs[at]
        assert value is not None
        inputs[at] = np.stack([value, value], 2)
    add(blocks, inputs, block_size=32, **common)
    np.testing.assert_allclose(*blocks.run_with({}), *right.run_elsewhere(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tokens", [2, 24])
def test_of_equal_scores_the_last_expert_is_taken(tokens: int) -> None:
    """As by onnxruntime."""
    nodes = node_set()
    for experts in (5, 40):
        scores = RANDOM.integers(0, 2, (tokens, experts)).astype(np.float32)
        for top in (1, 3):
            inputs = draw_experts((tokens, experts, 64, 96))
            inputs[1] = scores
            add(nodes, inputs, k=top, activation_type="relu")
    check(nodes, {})


@pytest.mark.parametrize("tokens", [4, 24])
def test_experts_without_a_positive_share_are_left_out(tokens: int) -> None:
    """As by onnxruntime: shares that are 0, negative or NaN, of the input or of their softmax."""
    nodes = node_set()
    for normalises in (0, 1):
        inputs = draw_experts((tokens, 5, 64, 96), mixing=True)
        shares = inputs[14]
        assert shares is not None
        shares[0], shares[1], shares[2, ::2], shares[3, 1] = 0, np.nan, -0.5, -0.0
        common = {"normalize_routing_weights": normalises, "activation_type": "relu"}
        add(nodes, inputs, k=3, **common)
        inputs = draw_experts((tokens, 5, 64, 96))
        for row, score in enumerate((np.nan, np.inf, -np.inf)):
            inputs[1][row] = score  # type: ignore[index] # the scores are there
        inputs[1][3, 2] = np.nan  # type: ignore[index] # as above
        add(nodes, inputs, k=3, **common)
    check(nodes, {})


@pytest.mark.parametrize("tokens", [1, 24])
def test_only_the_weights_of_chosen_experts_are_read(tokens: int) -> None:
    """Those of the others are NaN, which the sums would be, too."""
    nodes = node_set()
    inputs = draw_experts((tokens, 5, 64, 96), block=32, bias=True)
    inputs[1] = np.tile(np.array([3, 9, 1, 8, 2], np.float32), (tokens, 1))
    for value in (inputs[3], inputs[4], inputs[6], inputs[7]):
        assert value is not None
        value[[0, 2, 4]] = np.nan
    add(nodes, inputs, k=2, activation_type="relu", block_size=32)
    (mine,) = nodes.run_with({})
    assert np.isfinite(mine).all()
    check(nodes, {})


def test_experts_in_float16() -> None:
    """Computed in float32, as onnxruntime does, and rounded once."""
    nodes = node_set()
    for bits, block, mixing in ((4, 32, False), (8, 0, True)):
        inputs = draw_experts(bits=bits, block=block, bias=True, zeros=True, mixing=mixing)
        halves = [
            value.astype(np.float16) if value is not None and value.dtype == np.float32 else value
            for value in inputs
        ]
        add_blocks(nodes, block, halves, k=2, expert_weight_bits=bits, activation_type="silu")
    for mine, theirs in zip(nodes.run_with({}), nodes.run_elsewhere(), strict=True):
        assert mine.dtype == np.float16
        np.testing.assert_allclose(mine, theirs, rtol=2e-3, atol=2e-3)


def test_an_expert_of_all_tokens_and_one_of_none() -> None:
    nodes = node_set()
    inputs = draw_experts((40, 4, 64, 96), bias=True)
    inputs[1] = np.tile(np.array([0, 9, 0, 5], np.float32), (40, 1))
    add(nodes, inputs, k=1, activation_type="relu")
    check(nodes, {})


@pytest.mark.parametrize("normalises", [0, 1])
def test_experts_of_floats(normalises: int) -> None:
    nodes = node_set(13)
    for tokens, hidden, inner in ((1, 64, 96), (30, 64, 96), (30, 36, 20)):
        weights = [f32(4, 2 * inner, hidden) / 8, f32(4, hidden, inner) / 8]
        inputs = [f32(tokens, hidden), f32(tokens, 4), weights[0], f32(4, 2 * inner), weights[1]]
        common = {"k": 2, "normalize_routing_weights": normalises, "domain": CONTRIB}
        nodes.add("MoE", inputs, (2, 3, 4), **GATED, **common)
    check(nodes, {})


def test_weights_of_experts_are_not_stored_twice() -> None:
    """The partition that is converted has those of the products alone, in as many bytes."""
    nodes = node_set()
    inputs = draw_experts(block=32)
    add(nodes, inputs, k=2, block_size=32, activation_type="relu")
    loaded = loader.load(nodes.model.SerializeToString(), ort.SessionOptions())
    rewritten = rewrite_partition(loader.resolve(loaded.model, {}), kind="CPU").definition
    packed = sum(value.nbytes for value in (inputs[2], inputs[5]) if value is not None)
    stored = [t for t in rewritten.initializers.values() if t.data_type == 2]
    assert sum(len(t.data) for t in stored) == packed
    assert {node.op_type for node in rewritten.nodes if node.domain} == {"MatMulNBits"}


DECLINED = [
    ({"expert_weight_bits": 2}, {}, (), "weights of 2 bits"),
    ({"activation_type": "tanh"}, {}, (), "the activation tanh"),
    ({"quant_type": "fp4"}, {}, (), "this form of QMoE"),
    ({"use_sparse_mixer": 1}, {}, (), "this form of QMoE"),
    ({"weights_prepacked": 1}, {}, (), "this form of QMoE"),
    ({"k": 9}, {}, (), "the best 9 of 5 experts"),
    ({"activation_type": "swiglu"}, {}, (), "gates that are a third projection"),
    ({"activation_type": "swiglu", "swiglu_fusion": 1}, {}, (), "do not fit each other"),
    ({}, {8: 2}, (), "three projections"),
    ({}, {15: 3}, (), "with scales of floats"),
    ({}, {}, (2,), "input 2 of QMoE is not a constant of uint8"),
    ({}, {}, (6,), "input 6 of QMoE is not a constant of float or float16"),
]


@pytest.mark.parametrize(("attributes", "more", "runtime", "reason"), DECLINED, ids=str)
def test_other_forms_are_declined_with_a_reason(
    attributes: dict[str, Any], more: dict[int, int], runtime: tuple[int, ...], reason: str
) -> None:
    inputs = [*draw_experts(), *[None] * 10]
    for to, source in more.items():
        inputs[to] = inputs[source]
    while inputs[-1] is None:
        inputs.pop()
    fixed = [at for at in range(2, len(inputs)) if at not in runtime]
    fields = {"k": 2, "activation_type": "relu", **attributes}
    assert reason in refusal_of(inputs, fixed, **fields)


def test_blocks_that_matmulnbits_does_not_have_are_declined() -> None:
    for inputs, reason in (
        (draw_experts((7, 5, 40, 96)), "1 blocks of 40 weights"),
        (draw_experts((7, 5, 96, 96), block=48), "2 blocks of 96 weights"),
    ):
        assert reason in refusal_of(inputs, range(2, 7), k=2, activation_type="relu")


def refusal_of(inputs: list[Array | None], fixed: Sequence[int], **attributes: Any) -> str:
    """Why OpenVINO declines a QMoE."""
    nodes = node_set()
    nodes.add("QMoE", inputs, fixed, domain=CONTRIB, **attributes)
    return "".join(offer(nodes).refused.values())


def offer(nodes: NodeSet, *, exact: bool = True) -> Capability:
    loaded = loader.load(nodes.model.SerializeToString(), ort.SessionOptions())
    graph = loader.resolve(loaded.model, {})
    candidates = frozenset(range(len(graph.nodes)))
    return capability(GraphView(graph, candidates), load_table("2026.4.1"), exact=exact)


def test_devices_other_than_cpus_decline_it() -> None:
    nodes = node_set()
    add(nodes, draw_experts(), k=2, activation_type="relu")
    assert offer(nodes).refused == {}
    assert "written out for CPUs alone" in offer(nodes, exact=False).refused[0]


@pytest.mark.parametrize("half", [False, True])
def test_a_decoder_with_experts_is_one_partition(tmp_path: Path, *, half: bool) -> None:
    shape = replace(DECODER, half=half)
    path = make_decoder(tmp_path, shape)
    with ort.InferenceSession(path, providers=[OPENVINO]) as session:
        (partition,) = session.explain().partitions
        assert {node.ep for node in partition.nodes} == {OPENVINO}
        assert "QMoE" in {node.op_type for node in partition.nodes}
        assert_close(run_steps(session, shape), run_in_onnxruntime(path, shape))


@pytest.mark.parametrize("tokens", [1, 12])
def test_a_reloaded_decoder_with_experts_gives_the_same_bits(tokens: int, tmp_path: Path) -> None:
    path = make_decoder(tmp_path, DECODER)
    options = fix_sizes(ort.SessionOptions(), tokens)
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "context.onnx"))
    with ort.InferenceSession(path, options, [OPENVINO]) as compiled:
        before = run_steps(compiled, DECODER, (tokens, tokens))
    with ort.InferenceSession(tmp_path / "context.onnx", providers=[OPENVINO]) as reloaded:
        after = run_steps(reloaded, DECODER, (tokens, tokens))
    for first, second in zip(before, after, strict=True):
        for name, value in first.items():
            np.testing.assert_array_equal(second[name], value)
