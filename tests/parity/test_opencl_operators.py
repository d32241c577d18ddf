"""Every operator with OpenCL kernels, at random shapes, types and attributes, on every platform.

One case of each; five with ORT_LITE_WHOLE_SUITE=1.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from contrib_operator_cases import CONTRIB_WRITERS
from device_models import OPSETS, NodeSet
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from opencl_devices import device_names
from operator_cases import WRITERS
from operator_chance import Chance

Array = np.ndarray[Any, np.dtype[Any]]

WHOLE_SUITE = "ORT_LITE_WHOLE_SUITE"
DEVICES = device_names()
OPSET_OF = {
    "Upsample": 9, "Scatter": 10, "Attention": 23, "RMSNormalization": 23, "RotaryEmbedding": 23,
    "Swish": 24, "CumProd": 26,
}  # fmt: skip
"""Where it is not the usual one: the last or the first that has the operator."""

WITHOUT_REFERENCE = {
    "SimplifiedLayerNormalization", "GlobalLpPool", "Scatter", "LSTM", "GRU", "RNN",
    "ConvTranspose", "LRN",
}  # fmt: skip
"""onnx.reference (1.23) lacks the first three, two directions at once in the next and groups in
ConvTranspose, and normalises as many channels in LRN as there are images: onnxruntime judges."""

SEEDS = range(5 if os.environ.get(WHOLE_SUITE) else 1)


def sets(names: set[str], seeds: range = SEEDS) -> list[NodeSet]:
    """Cases of these operators, one set for each opset; those without a reference apart."""
    found: dict[tuple[int, bool], NodeSet] = {}
    for name in sorted(names):
        opset = OPSET_OF.get(name, OPSETS[""])
        nodes = found.setdefault((opset, name in WITHOUT_REFERENCE), NodeSet(opset))
        for seed in seeds:
            WRITERS[name](Chance(nodes, name, "", seed))
    return list(found.values())


def with_strides(nodes: NodeSet, answers: list[Any]) -> tuple[NodeSet, list[Array]]:
    """The nodes with inputs that are transposed before, and outputs that are joined to ones.

    Args:
        nodes: Independent nodes.
        answers: What they give, which other tests compare with the reference.

    Returns:
        The new nodes, and what they have to give.
    """
    strided, expected = NodeSet(), []
    strided.model.CopyFrom(nodes.model)
    graph = strided.model.graph
    transposed = []
    for info in graph.input:
        name, value = info.name, nodes.feeds[info.name]
        if value.ndim > 1:
            info.name = f"{name}.transposed"
            for dim, size in zip(info.type.tensor_type.shape.dim, value.T.shape, strict=True):
                dim.dim_value = size
            perm = list(reversed(range(value.ndim)))
            transposed.append(helper.make_node("Transpose", [info.name], [name], perm=perm))
        strided.feeds[info.name] = np.ascontiguousarray(value.T)
    inner = [*transposed, *graph.node]
    del graph.node[:]
    graph.node.extend(inner)
    for info, answer in zip(graph.output, answers, strict=True):
        if answer.ndim > 1 and answer.dtype != np.bool_:
            ones = np.ones((*answer.shape[:-1], 3), answer.dtype)
            graph.initializer.append(numpy_helper.from_array(ones, f"{info.name}.ones"))
            parts = [info.name, f"{info.name}.ones"]
            info.name += ".joined"
            graph.node.append(helper.make_node("Concat", parts, [info.name], axis=-1))
            expected.append(np.concatenate([answer, ones], -1))
        else:
            expected.append(answer)
    return strided, expected


def test_every_operator_that_is_claimed_has_a_random_case() -> None:
    from eps.opencl.compile.lower import LOWERINGS  # noqa: PLC0415 - needs no device, but the package

    written = {("", name) for name in WRITERS} | {("com.microsoft", n) for n in CONTRIB_WRITERS}
    assert set(LOWERINGS) == written


@pytest.mark.filterwarnings("ignore")  # the reference divides by zero and overflows on purpose
@pytest.mark.parametrize("device", DEVICES)
def test_operators_give_the_references_numbers(device: str) -> None:
    for nodes in sets(set(WRITERS) - WITHOUT_REFERENCE):
        right = ReferenceEvaluator(nodes.model).run(None, nodes.feeds)
        found = nodes.run_on(device)
        wrong = [
            f"{info.name}: {mine.dtype}{mine.shape} {theirs.dtype}{np.shape(theirs)}"
            for info, mine, theirs in zip(nodes.model.graph.output, found, right, strict=True)
            if mine.shape != np.shape(theirs)
            or not np.allclose(mine, theirs, 1e-4, 2e-5, equal_nan=True)
        ]
        assert wrong == []


@pytest.mark.parametrize("device", DEVICES)
def test_operators_without_a_reference_give_onnxruntimes_numbers(device: str) -> None:
    nodes = NodeSet()
    for seed in SEEDS:
        for name, write in CONTRIB_WRITERS.items():
            if name == "BiasAdd":  # onnxruntime has no kernel for CPUs
                continue
            write(Chance(nodes, name, "com.microsoft", seed))
    for one in (nodes, *sets(WITHOUT_REFERENCE)):
        one.check(device=device, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES[:1])  # layouts are the same on all devices
def test_layouts_of_inputs_and_outputs_change_no_number(device: str) -> None:
    """Inputs come out of a Transpose, and outputs go into a Concat, where a kernel must see both.

    LayerNormalization wrote its rows one after another whatever its output's strides were.
    """
    contrib = NodeSet()
    for name, write in CONTRIB_WRITERS.items():
        write(Chance(contrib, name, "com.microsoft", 0))
    for one in (contrib, *sets(set(WRITERS), range(1))):
        strided, answers = with_strides(one, one.run_on(device))
        found = strided.run_on(device)
        wrong = [
            info.name
            for info, mine, theirs in zip(strided.model.graph.output, found, answers, strict=True)
            if mine.shape != theirs.shape
            or not np.allclose(mine, theirs, 1e-4, 2e-5, equal_nan=True)
        ]
        assert wrong == []


@pytest.mark.parametrize("device", DEVICES)
def test_a_bias_and_a_skip_are_added(device: str) -> None:
    nodes = NodeSet()
    CONTRIB_WRITERS["BiasAdd"](Chance(nodes, "BiasAdd", "com.microsoft", 0))
    (found,) = nodes.run_on(device)
    np.testing.assert_allclose(found, sum(nodes.feeds.values()), rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_gives_the_same_bits_every_time(device: str) -> None:
    """In one session, and in another one that was compiled anew."""
    for nodes in sets({"Conv", "MatMul", "Softmax", "ReduceSum", "LayerNormalization", "LSTM"}):
        first, second = nodes.run_on(device, times=3), nodes.run_on(device)
        for mine, theirs in zip(first, second, strict=True):
            np.testing.assert_array_equal(mine, theirs)
