"""Operators that find, pick and place by index, norms and Einsum, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from device_models import NodeSet

from ort_lite.status import InvalidArgument

EQUATIONS = {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "bij,bkj->bik": ((2, 3, 4), (2, 5, 4)),
    "bhqd,bhkd->bhqk": ((2, 3, 4, 8), (2, 3, 5, 8)),
    "...ij,...jk->...ik": ((2, 3, 4), (2, 4, 5)),
    "ij,ij->": ((3, 4), (3, 4)),
    "i,j->ji": ((3,), (4,)),
    "ijk,j->ki": ((2, 3, 4), (3,)),
    "ijk,lk->il": ((2, 3, 4), (5, 4)),
    "ij->ji": ((3, 4),),
    "ijk->j": ((2, 3, 4),),
    "ij,jk": ((3, 4), (4, 5)),
}


def add_index_nodes(nodes: NodeSet, random: np.random.Generator) -> None:
    x = random.standard_normal((2, 5, 3, 7)).astype(np.float32)
    ties = random.integers(0, 4, (6, 40)).astype(np.float32)
    moved = nodes.add("Transpose", [x], perm=[0, 2, 3, 1])  # strides are not those of the shape
    for axis in (0, 1, -1):
        nodes.add("ArgMax", [moved], axis=axis)
        nodes.add("ArgMin", [x], axis=axis, keepdims=0)
        nodes.add("CumSum", [moved, np.array(axis)], (1,), reverse=1)
        nodes.add("TopK", [moved, np.array([2])], (1,), 2, axis=axis)
    nodes.add("ArgMax", [ties], axis=1, select_last_index=1)
    nodes.add("ArgMin", [ties.astype(np.int32)], axis=1)
    nodes.add("TopK", [ties, np.array([7])], (1,), 2, largest=0)
    nodes.add("CumSum", [ties.astype(np.int64), np.array(1)], (1,), exclusive=1)
    picks = random.integers(-3, 3, (2, 3, 2, 5))
    nodes.add("GatherElements", [moved, picks], axis=1)
    places = np.argsort(random.random((2, 2, 7, 5)), axis=2)[:, :, :6].copy()
    updates = random.standard_normal(places.shape).astype(np.float32)
    nodes.add("ScatterElements", [moved, places, updates], axis=2)
    for kind in ("add", "mul", "max", "min"):
        repeated = random.integers(-7, 7, places.shape)
        nodes.add("ScatterElements", [moved, repeated, updates], axis=2, reduction=kind)
        tuples = random.integers(-2, 2, (9, 2))
        slices = random.standard_normal((9, 7, 5)).astype(np.float32)
        nodes.add("ScatterND", [moved, tuples, slices], reduction=kind)
    nodes.add("ScatterND", [ties > 1, np.array([[3], [1]]), ties[:2] > 2])
    hot = random.integers(-5, 7, (3, 4))
    nodes.add("OneHot", [hot, np.array(5), np.array([2, 9])], (1, 2), axis=1)
    nodes.add("Trilu", [x, np.array(-1)], (1,), upper=0)
    nodes.add("Hardmax", [moved], axis=1)
    lengths = np.array([5, 1, 3], np.int64)
    nodes.add("ReverseSequence", [x[0].transpose(0, 1, 2), lengths], time_axis=0, batch_axis=1)


def add_norm_nodes(nodes: NodeSet, random: np.random.Generator) -> None:
    x = random.standard_normal((2, 6, 5, 7)).astype(np.float32)
    nodes.add("LRN", [x], size=5, alpha=0.3, beta=0.6, bias=1.5)
    nodes.add("LpPool", [x], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], p=3)
    nodes.add("GlobalLpPool", [x], p=3)
    nodes.add("LpNormalization", [x], p=1, axis=1)
    weights = random.standard_normal((2, 6)).astype(np.float32)
    nodes.add("GroupNormalization", [x, *weights], num_groups=3)
    nodes.add("MeanVarianceNormalization", [x])
    large = np.where(x > 1, np.float32(200), x)
    nodes.add("ReduceLogSumExp", [large, np.array([1, -1])], (1,))
    nodes.add("ReduceLogSumExp", [np.full((2, 3), -np.inf, np.float32)], keepdims=0)
    nodes.add("Dropout", [x], (), 2)
    for equation, shapes in EQUATIONS.items():
        operands = [random.standard_normal(s).astype(np.float32) for s in shapes]
        nodes.add("Einsum", operands, equation=equation)


@pytest.mark.parametrize("platform", ["", "portable"])
def test_index_operators_agree_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_index_nodes(nodes, np.random.default_rng(1))
    nodes.check(platform=platform)


@pytest.mark.parametrize("platform", ["", "portable"])
def test_norms_and_einsum_agree_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_norm_nodes(nodes, np.random.default_rng(2))
    nodes.check(platform=platform, rtol=2e-5, atol=2e-6)


def test_what_has_no_kernel_is_refused_with_the_reason() -> None:
    x, i = np.ones((2, 3), np.float32), np.zeros((2, 3), np.int64)
    nodes = NodeSet()
    asked = {
        nodes.add("TopK", [x, np.array([2])], (), 2): "k is not known before the run",
        nodes.add("CumSum", [x, np.array(1)]): "the axis is not known",
        nodes.add("Einsum", [x.astype(np.float64)], equation="ij->i"): "Einsum of float64",
        nodes.add("Einsum", [x, x, x], equation="ij,ij,ij->i"): "3 operands",
        nodes.add("Einsum", [np.eye(3, dtype=np.float32)], equation="ii->i"): "Einsum of 'ii->i'",
        nodes.add("OneHot", [i, np.array(3), np.array([0, 1])]): "the depth is not known",
        nodes.add("LpPool", [x[None]], kernel_shape=[2], ceil_mode=1): "ceil_mode",
        nodes.add("LRN", [x], size=3): "LRN of rank 2",
        nodes.add("ScatterElements", [x > 1, i, x > 1], reduction="max"): "of bool",
    }
    found = nodes.refusals()
    for name, reason in asked.items():
        assert reason in found[name.split("/")[0]]


def test_an_index_out_of_range_is_an_error() -> None:
    nodes = NodeSet()
    nodes.add("GatherElements", [np.ones((2, 3), np.float32), np.full((1, 3), 2)])
    with pytest.raises(InvalidArgument, match="out of the range"):
        nodes.run()
