from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from unit.cpu.single_node import node_graph, resolver, run_node

from eps.cpu import FACTORY
from eps.cpu.provider import CPUExecutionProvider
from eps.cpu.reference import DENIED, why_not
from ort_lite.ep.interface import GraphView
from ort_lite.ep.kernels import kernel
from ort_lite.kernel_type_str import OpIdentifier
from ort_lite.status import Fail, InvalidArgument

if TYPE_CHECKING:
    from eps.cpu.resolve import Resolution

X = np.array([1.0, 2.0, 3.0], np.float32)


def resolution(op: str, *inputs: Any, opset: int = 18, domain: str = "", **rest: Any) -> Resolution:
    custom = rest.pop("custom", ())
    graph = node_graph(
        op, list(inputs), opset=opset, outputs=1, domain=(domain, 1), attributes=rest
    )
    return resolver(custom).resolve(graph, 0)


@pytest.mark.parametrize(
    ("op", "domain", "opset", "reason"),
    [
        ("Reluu", "", 18,
         "unknown operator Reluu of domain ai.onnx in opset 18; nearest known: Relu"),
        ("Gelu", "", 18,
         "unknown operator Gelu of domain ai.onnx in opset 18; it appears in opset 20"),
        ("Softmax", "com.acme", 1, "unknown operator Softmax of domain com.acme in opset 1; "
         "domain ai.onnx has an operator of that name"),
        ("Qqqqqqqqq", "", 18, "unknown operator Qqqqqqqqq of domain ai.onnx in opset 18"),
    ],
)  # fmt: skip
def test_an_unknown_operator_is_explained(op: str, domain: str, opset: int, reason: str) -> None:
    found = resolution(op, X, opset=opset, domain=domain)
    assert not found.is_supported
    assert found.reason == reason


def test_capability_lists_refusals_with_reasons() -> None:
    graph = node_graph("Reluu", [X], opset=18, outputs=1, domain=("", 1), attributes={})
    capability = CPUExecutionProvider().get_capability(GraphView(graph, frozenset({0})))
    assert capability.supported == frozenset()
    assert "nearest known: Relu" in capability.refused[0]


def test_a_kernel_of_the_user_in_five_lines() -> None:
    scale = kernel("Scale", domain="com.acme", types={"input0": ["tensor(float)"]})(
        lambda info: lambda x: x * np.float32(info.attr("by", 2.0))
    )
    result = run_node("Scale", X, domain="com.acme", custom=[scale], by=3.0)
    np.testing.assert_array_equal(result, X * 3)
    refused = resolution("Scale", X.astype(int), domain="com.acme", opset=1, custom=[scale])
    assert "implemented only for the following types (tensor(float))" in refused.reason


def test_a_users_kernel_comes_before_ours_and_may_decline() -> None:
    def only_for_named(info: Any) -> Any:
        return (lambda x: x * 0) if info.attr("alpha") == 0.5 else None

    mine = kernel("LeakyRelu", since=(16, None))(only_for_named)
    assert run_node("LeakyRelu", X, custom=[mine], alpha=0.5).tolist() == [0, 0, 0]
    assert run_node("LeakyRelu", X, custom=[mine], alpha=0.25).tolist() == [1, 2, 3]


def test_two_kernels_of_a_user_for_one_thing_are_refused() -> None:
    one = kernel("Scale", domain="com.acme")(lambda info: None)
    ep = CPUExecutionProvider()
    ep.register_kernel(one)
    with pytest.raises(Fail, match="Conflicting with a registered kernel"):
        ep.register_kernel(one)


def test_versions_of_an_operator_without_schema_are_those_of_its_kernels() -> None:
    first = kernel("Scale", domain="", since=(1, None))(lambda info: lambda x: x)
    second = kernel("Scale", domain="", since=(5, None))(lambda info: lambda x: x + 1)
    assert run_node("Scale", X, opset=4, custom=[first, second]).tolist() == [1, 2, 3]
    assert run_node("Scale", X, opset=9, custom=[first, second]).tolist() == [2, 3, 4]


def test_ai_onnx_is_the_empty_domain() -> None:
    assert resolution("Relu", X, domain="ai.onnx").op == OpIdentifier("", "Relu", 14)


def test_the_function_of_a_schema_serves_where_no_kernel_does() -> None:
    declining = kernel("Swish", since=(24, None))(lambda info: None)
    found = resolution("FlexAttention", X, X, X, domain="ai.onnx.preview", opset=1)
    assert (found.kernels, found.reference, found.function) == ((), False, True)
    q, k, v = (np.random.default_rng(i).standard_normal((1, 2, 3, 4)) for i in range(3))
    scores = q @ k.swapaxes(2, 3) / 2
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    y = run_node("FlexAttention", q, k, v, domain="ai.onnx.preview", custom=[declining])
    np.testing.assert_allclose(y, weights @ v, rtol=1e-6)  # its body computes in float32


def test_onnx_reference_serves_behind_an_explicit_list() -> None:
    assert why_not(OpIdentifier("ai.onnx.ml", "Imputer", 1)) == ""
    assert why_not(OpIdentifier("", "Loop", 11)).startswith("onnx.reference runs no iteration")
    assert why_not(OpIdentifier("", "Softmax", 11)) == (
        "onnx.reference does not flatten to two dimensions"
    )
    assert why_not(OpIdentifier("", "Softmax", 13)) == ""
    assert why_not(OpIdentifier("", "Nothing", 1)) == "onnx.reference has no class for it"
    assert why_not(OpIdentifier("com.microsoft", "Gelu", 1)) == "onnx.reference has no class for it"


def test_onnx_reference_is_used_with_the_defaults_of_the_right_version() -> None:
    above = run_node("Binarizer", np.array([-1, 2], np.float32), domain="ai.onnx.ml", opset=9)
    assert above.tolist() == [0, 1]  # a threshold of 0 is the default


def test_every_denied_operator_has_a_kernel_of_its_own() -> None:
    known = {name for registry in resolver().registries for _, name in registry.operators()}
    assert set(DENIED) <= known


def test_the_factory_checks_its_options() -> None:
    assert FACTORY.probe().devices[0].kind == "CPU"
    assert FACTORY.create({"use_arena": "1"}).name == "CPUExecutionProvider", "as in onnxruntime"
    with pytest.raises(InvalidArgument, match="intra_op_num_threads is 'two', expected a number"):
        FACTORY.create({"intra_op_num_threads": "two"})
    assert FACTORY.create({"intra_op_num_threads": "1"}).name == "CPUExecutionProvider"
