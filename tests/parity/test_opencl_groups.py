"""Operators and models with the kernels that GPUs get, on the CPU platforms that are here.

Everything on the first platform, what has kernels of its own in the family on the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from operator_cases import WRITERS
from test_opencl_models import assert_near, options_for
from test_opencl_operators import DEVICES, WITHOUT_REFERENCE, sets

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Values = dict[str, np.ndarray[Any, Any]]

OWN = {
    "Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "MaxPool", "Pad", "Gather", "Softmax",
    "LayerNormalization", "ReduceSum", "ReduceMax", "ArgMax",
}  # fmt: skip
CASES = [
    *((device, "gpu", set(WRITERS) if i == 0 else OWN) for i, device in enumerate(DEVICES)),
    *((device, "gpu-registers", {"Conv", "ConvTranspose", "Gemm", "MatMul"}) for device in DEVICES),
]


@pytest.mark.filterwarnings("ignore")  # the reference divides by zero and overflows on purpose
@pytest.mark.parametrize(
    ("device", "templates", "names"), CASES, ids=[f"{d}-{t}" for d, t, _ in CASES]
)
def test_operators_give_the_references_numbers(
    device: str, templates: str, names: set[str]
) -> None:
    for nodes in sets(names - WITHOUT_REFERENCE):
        right = ReferenceEvaluator(nodes.model).run(None, nodes.feeds)
        found = nodes.run_with({"device": device, "templates": templates}, times=2)
        wrong = [
            f"{info.name}: {mine.dtype}{mine.shape} {theirs.dtype}{np.shape(theirs)}"
            for info, mine, theirs in zip(nodes.model.graph.output, found, right, strict=True)
            if mine.shape != np.shape(theirs)
            or not np.allclose(mine, theirs, 1e-4, 2e-5, equal_nan=True)
        ]
        assert wrong == []


@pytest.mark.parametrize("device", DEVICES[:1])
def test_operators_without_a_reference_give_what_kernels_for_cpus_give(device: str) -> None:
    for nodes in sets(WITHOUT_REFERENCE):
        found = nodes.run_with({"device": device, "templates": "gpu"})
        right = nodes.run_with({"device": device, "templates": "cpu"})
        for mine, theirs in zip(found, right, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("device", DEVICES[:1])
@pytest.mark.parametrize("name", ["squeezenet_rw", "minilm_l6_w8"])
def test_a_model_gives_onnxruntimes_numbers_also_when_reloaded_as_it_was_compiled(
    name: str,
    device: str,
    tmp_path: Path,
    model_path: Callable[[str], Path],
    example_inputs: Callable[[str], Values],
) -> None:
    path, values, context = model_path(name), example_inputs(name), tmp_path / "c.onnx"
    options = options_for(path, values, context)
    ours = ("OpenCLExecutionProvider", {"device": device, "templates": "gpu"})
    with ort.InferenceSession(path, options, providers=[ours]) as session:
        plain = session.run(None, values)
    right = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_near(plain, right.run(None, values))
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_model_compile", "1")
    by_device = ("OpenCLExecutionProvider", {"device": device})
    with ort.InferenceSession(context, options, providers=[by_device]) as reloaded:
        for mine, first in zip(reloaded.run(None, values), plain, strict=True):
            np.testing.assert_array_equal(mine, first)
