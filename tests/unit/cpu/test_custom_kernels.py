"""A user's kernels in sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from ort_lite.ep.kernels import kernel
from ort_lite.providers import provider_list

X = np.array([1.0, 2.0], np.float32)
CPU = ["CPUExecutionProvider"]


def model(*nodes: Any) -> bytes:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(list(nodes), "g", infos[:1], infos[1:])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def node(op: str, name: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, ["x"], [name], name="n", domain="com.acme", **attributes)


def options(*kernels: Any) -> ort.SessionOptions:
    made = ort.SessionOptions()
    for definition in kernels:
        made.register_custom_kernel(definition)
    return made


def run(data: bytes, *kernels: Any) -> list[float]:
    with ort.InferenceSession(data, options(*kernels), providers=CPU) as session:
        return session.run(None, {"x": X})[0].tolist()


twice = kernel("Twice", domain="com.acme")(lambda info: lambda x: x * 2)


def test_an_operator_nobody_knows_runs_with_a_users_kernel() -> None:
    assert run(model(node("Twice")), twice) == [2, 4]


def test_a_users_kernel_comes_before_the_cpu_eps_own() -> None:
    negate = kernel("Exp", since=(13, 13))(lambda info: lambda x: -x)
    assert run(model(helper.make_node("Exp", ["x"], ["y"])), negate) == [-1, -2]


def test_a_users_kernel_that_declines_leaves_the_node_to_the_cpu_ep() -> None:
    declining = kernel("Neg", since=(13, 13))(lambda info: None)
    assert run(model(helper.make_node("Neg", ["x"], ["y"])), declining) == [-1, -2]


def test_the_factory_is_called_once_for_a_node_however_often_it_runs() -> None:
    calls = []

    def factory(info: Any) -> Any:
        calls.append(info.op_type)
        return lambda x: x

    counted = kernel("Same", domain="com.acme")(factory)
    with ort.InferenceSession(model(node("Same")), options(counted), providers=CPU) as session:
        for _ in range(3):
            session.run(None, {"x": X})
    assert calls == ["Same"]


def test_kernels_registered_later_do_not_reach_a_session_that_is_there() -> None:
    made = options(twice)
    session = ort.InferenceSession(model(node("Twice")), made, providers=CPU)
    made.register_custom_kernel(kernel("Other", domain="com.acme")(lambda info: None))
    assert session.run(None, {"x": X})[0].tolist() == [2, 4]


def test_two_kernels_for_the_same_are_refused() -> None:
    with pytest.raises(ort.Fail, match=r"Failed to add kernel for Twice com\.acme SessionOptions"):
        options(twice, twice)


def test_an_exception_of_a_kernel_names_the_node_and_what_it_was_given() -> None:
    def factory(info: Any) -> Any:
        def fail(x: Any) -> Any:
            raise ValueError("no way")

        return fail

    broken = kernel("Broken", domain="com.acme")(factory)
    with pytest.raises(ort.RuntimeException) as caught:
        run(model(node("Broken")), broken)
    assert "running Broken node. Name:'n' Status Message: no way" in caught.value.message
    assert "tensor(float) [2]" in caught.value.message


def test_without_the_kernel_the_nearest_operator_is_named() -> None:
    with pytest.raises(ort.NotImplemented, match=r"unknown operator Negg .*; nearest known: Neg"):
        run(model(node("Negg")))


def test_kernels_that_no_provider_runs_are_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match="no execution provider runs them"):
        provider_list._register([twice], [])
