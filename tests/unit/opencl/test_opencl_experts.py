"""MoE and QMoE on OpenCL devices, against onnxruntime."""

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
from golden_kernels import CPU
from opencl_devices import first_working_device
from system_limits import WINDOWS

import ort_lite as ort
from benchmarks.decoders.make_decoder import make_decoder
from eps.opencl.compile.capability import capability
from ort_lite.ep import GraphView
from ort_lite.model import loader

if TYPE_CHECKING:
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

OPENCL = ["OpenCLExecutionProvider"]
NO_POCL = pytest.mark.skipif(WINDOWS, reason="PyPI has no PoCL for Windows")
OPTIONS = ({}, pytest.param({"platform": "portable"}, marks=NO_POCL), {"templates": "gpu"})
"""The first device, PoCL's, and kernels of work-groups."""


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("tokens", [1, 7, 40])
def test_the_best_experts_of_each_token(options: dict[str, str], tokens: int) -> None:
    """One token, few rows of each expert, and many."""
    nodes = NodeSet()
    sizes = (tokens, 5, 64, 96)
    for bits, block, zeros in ((4, 0, False), (4, 32, True), (8, 0, True), (4, 16, False)):
        inputs = draw_experts(sizes, bits=bits, block=block, zeros=zeros, bias=True)
        common = {"expert_weight_bits": bits, "activation_type": "silu"}
        add_blocks(nodes, block, inputs, k=2, **common)
    add_blocks(nodes, 32, draw_experts(sizes, block=32, doubled=True), k=3, **GATED)
    check(nodes, options)


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalises", [0, 1])
def test_activations_and_shares(kind: str, normalises: int) -> None:
    nodes = NodeSet()
    common = {"activation_type": kind, "normalize_routing_weights": normalises}
    for top in (1, 2, 5):
        add(nodes, draw_experts(mixing=top == 2), k=top, **common)
    check(nodes, {})


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sizes_that_no_panel_or_block_divides(options: dict[str, str]) -> None:
    """Odd widths, depths of several parts, and depths that blocks of 16 do not divide."""
    nodes = NodeSet()
    for tokens in (1, 30):
        for hidden, inner in ((40, 70), (1100, 24), (8, 1042)):
            inputs = draw_experts((tokens, 3, hidden, inner), bias=True, zeros=True)
            add(nodes, inputs, k=2, activation_type="relu")
        inputs = draw_experts((tokens, 3, 36, 20), bits=8, bias=True)
        add(nodes, inputs, k=2, activation_type="relu", expert_weight_bits=8)
    check(nodes, options)


def test_blocks_of_8_bits() -> None:
    """onnxruntime's CPU quantises their inputs to 8 bits, and not those of weights by columns."""
    nodes = NodeSet()
    inputs = draw_experts(bits=8, block=32, zeros=True, bias=True)
    add(nodes, inputs, k=2, expert_weight_bits=8, activation_type="silu", block_size=32)
    (mine,), (theirs,) = nodes.run_with({}), nodes.run_elsewhere()
    assert float(np.abs(mine - theirs).max()) < 2e-2 * float(np.abs(theirs).max())
    inputs = draw_experts((1, 5, 64, 64), bits=8, zeros=True)
    right = NodeSet()
    add(right, inputs, k=2, expert_weight_bits=8, activation_type="silu")
    for at, zeros in ((3, 11), (6, 12)):  # the same scale for both blocks of a column
        scales, steps = inputs[at], inputs[zeros]
        assert scales is not None
        assert steps is not None
        inputs[at], inputs[zeros] = (np.stack([one, one], 2) for one in (scales, steps))
    blocks = NodeSet()
    add(blocks, inputs, k=2, expert_weight_bits=8, activation_type="silu", block_size=32)
    np.testing.assert_allclose(*blocks.run_with({}), *right.run_elsewhere(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tokens", [2, 24])
def test_of_equal_scores_the_last_expert_is_taken(tokens: int) -> None:
    """As by onnxruntime."""
    nodes = NodeSet()
    scores = RANDOM.integers(0, 2, (tokens, 5)).astype(np.float32)
    for top in (1, 3):
        inputs = draw_experts((tokens, 5, 64, 96))
        inputs[1] = scores
        add(nodes, inputs, k=top, activation_type="relu")
    weights = [f32(5, 96, 64) / 8, f32(5, 64, 96) / 8]
    inputs = [f32(tokens, 64), scores, weights[0], None, weights[1]]
    nodes.add("MoE", inputs, (2, 4), k=2, activation_type="relu", domain=CONTRIB)
    check(nodes, {})


@pytest.mark.parametrize("provider", ["OpenCLExecutionProvider", "CPUExecutionProvider"])
@pytest.mark.parametrize("tokens", [4, 24])
def test_experts_without_a_positive_share_are_left_out(tokens: int, provider: str) -> None:
    """As by onnxruntime: shares that are 0, negative or NaN, of the input or of their softmax."""
    nodes = NodeSet()
    for normalises in (0, 1):
        inputs = draw_experts((tokens, 5, 64, 96), mixing=True)
        shares, common = inputs[14], {"k": 3, "activation_type": "relu"}
        assert shares is not None
        shares[0], shares[1], shares[2, ::2], shares[3, 1] = 0, np.nan, -0.5, -0.0
        add(nodes, inputs, normalize_routing_weights=normalises, **common)
        inputs = draw_experts((tokens, 5, 64, 96))
        for row, score in enumerate((np.nan, np.inf, -np.inf)):
            inputs[1][row] = score
        add(nodes, inputs, normalize_routing_weights=normalises, **common)
    session = ort.InferenceSession(nodes.model.SerializeToString(), providers=[provider])
    assert {node.ep for part in session.explain().partitions for node in part.nodes} == {provider}
    found = session.run(None, nodes.feeds)
    for mine, theirs in zip(found, nodes.run_elsewhere(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("tokens", [1, 24])
def test_only_the_weights_of_chosen_experts_are_read(tokens: int) -> None:
    """Those of the others are NaN, which the sums would be, too."""
    nodes = NodeSet()
    inputs = draw_experts((tokens, 5, 64, 96), block=32, bias=True)
    scores = np.tile(np.array([3, 9, 1, 8, 2], np.float32), (tokens, 1))
    inputs[1] = scores
    whole = inputs[3], inputs[4], inputs[6], inputs[7]
    for value in whole:
        assert value is not None
        value[[0, 2, 4]] = np.nan
    add(nodes, inputs, k=2, activation_type="relu", block_size=32)
    (mine,) = nodes.run_with({})
    assert np.isfinite(mine).all()
    check(nodes, {})


def test_an_expert_of_all_tokens_and_one_of_none() -> None:
    nodes = NodeSet()
    inputs = draw_experts((40, 4, 64, 96), bias=True)
    inputs[1] = np.tile(np.array([0, 9, 0, 5], np.float32), (40, 1))
    add(nodes, inputs, k=1, activation_type="relu")
    check(nodes, {})


@pytest.mark.parametrize("normalises", [0, 1])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_experts_of_floats(normalises: int, options: dict[str, str]) -> None:
    nodes = NodeSet()
    for tokens, hidden, inner in ((1, 64, 96), (30, 64, 96), (2, 36, 20), (30, 36, 20)):
        weights = [f32(4, 2 * inner, hidden) / 8, f32(4, hidden, inner) / 8]
        inputs = [f32(tokens, hidden), f32(tokens, 4), weights[0], f32(4, 2 * inner), weights[1]]
        common = {"k": 2, "normalize_routing_weights": normalises, "domain": CONTRIB}
        nodes.add("MoE", inputs, (2, 3, 4), **GATED, **common)
    check(nodes, options)


DECLINED = [
    ({"expert_weight_bits": 2}, {}, "weights of 2 bits"),
    ({"activation_type": "tanh"}, {}, "activation tanh"),
    ({"quant_type": "fp4"}, {}, "weights of type fp4"),
    ({"use_sparse_mixer": 1}, {}, "a sparse mixer"),
    ({"weights_prepacked": 1}, {}, "weights in another order"),
    ({"k": 9}, {}, "the best 9 of 5 experts"),
    ({"k": "two"}, {}, "attribute k is 'two'"),
    ({"use_sparse_mixer": "yes"}, {}, "attribute use_sparse_mixer is 'yes'"),
    ({"activation_type": 3}, {}, "attribute activation_type is 3"),
    ({"activation_type": "swiglu"}, {}, "swiglu_fusion 0 of 96 columns"),
    ({}, {8: 2}, "experts of three projections"),
    ({}, {15: 3}, "scales of weights that are floats"),
]


@pytest.mark.parametrize(("attributes", "more", "reason"), DECLINED, ids=str)
def test_other_forms_are_declined_with_a_reason(
    attributes: dict[str, Any], more: dict[int, int], reason: str
) -> None:
    inputs = [*draw_experts(), *[None] * 10]
    for to, source in more.items():
        inputs[to] = inputs[source]
    while inputs[-1] is None:
        inputs.pop()
    nodes = NodeSet()
    add(nodes, inputs, **{"k": 2, "activation_type": "relu", **attributes})
    assert reason in refusal_of(nodes)


def test_experts_without_inner_columns_are_declined() -> None:
    nodes = NodeSet()
    inputs = [f32(7, 64), f32(7, 5), f32(5, 0, 64), None, f32(5, 64, 0)]
    nodes.add("MoE", inputs, (2, 4), k=2, activation_type="relu", domain=CONTRIB)
    assert "no inner columns" in refusal_of(nodes)


def refusal_of(nodes: NodeSet) -> str:
    """Why OpenCL declines the node; in a session, the CPU EP may refuse it, too."""
    loaded = loader.load(nodes.model.SerializeToString(), ort.SessionOptions())
    graph = loader.resolve(loaded.model, {})
    (reason,) = capability(GraphView(graph, frozenset({0})), CPU).refused.values()
    return reason


@pytest.mark.parametrize("half", [False, True])
def test_a_decoder_with_experts_is_one_partition(tmp_path: Path, *, half: bool) -> None:
    shape = replace(DECODER, half=half)
    path = make_decoder(tmp_path, shape)
    with ort.InferenceSession(path, providers=OPENCL) as session:
        (partition,) = session.explain().partitions
        assert {node.ep for node in partition.nodes} == set(OPENCL)
        assert "QMoE" in {node.op_type for node in partition.nodes}
        assert_close(run_steps(session, shape), run_in_onnxruntime(path, shape))


@pytest.mark.parametrize("tokens", [1, 12])
def test_a_reloaded_decoder_with_experts_gives_the_same_bits(tokens: int, tmp_path: Path) -> None:
    path = make_decoder(tmp_path, DECODER)
    options = fix_sizes(ort.SessionOptions(), tokens)
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "context.onnx"))
    with ort.InferenceSession(path, options, OPENCL) as compiled:
        before = run_steps(compiled, DECODER, (tokens, tokens))
    packed = sum(file.stat().st_size for file in tmp_path.glob("context*"))
    if first_working_device().kind == "CPU":  # a GPU's programs may be larger than these weights
        assert packed < 1.5 * (tmp_path / "model.onnx.data").stat().st_size, "weights stay packed"
    with ort.InferenceSession(tmp_path / "context.onnx", providers=OPENCL) as reloaded:
        after = run_steps(reloaded, DECODER, (tokens, tokens))
    for first, second in zip(before, after, strict=True):
        for name, value in first.items():
            np.testing.assert_array_equal(second[name], value)
