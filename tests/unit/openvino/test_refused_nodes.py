"""Nodes that Intel's NPU compiler refuses go to the next execution provider, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from npu_compiler import OPENVINO, CoreWithCompiler, npu_providers
from onnx import TensorProto, helper

import ort_lite as ort
from eps.openvino.compile.refused_nodes import MAX_COMPILES, find_refused
from eps.openvino.sdk.binding import ov

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WORDS = "Compilation failed: [NPU_VCL] strides can't be processed"
CHAIN = ("Relu", "Tanh", "Sigmoid", "Relu", "Exp", "Relu", "Sigmoid", "Relu")
CPU = "CPUExecutionProvider"


class Refusing:
    """A compiler that refuses any set of nodes with a bad one, or with all of `together`."""

    def __init__(self, bad: set[int], together: set[int]) -> None:
        self._bad, self._together = bad, together
        self.compiles = 0

    def __call__(self, indices: Sequence[int]) -> str:
        self.compiles += 1
        found = set(indices)
        return WORDS if found & self._bad or (self._together and self._together <= found) else ""


@given(count=st.integers(1, 400), data=st.data())
def test_a_single_bad_node_is_found(count: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, count - 1))
    compiler = Refusing({bad}, set())
    assert find_refused(count, WORDS, compiler) == {bad: WORDS}
    assert compiler.compiles <= 2 * count.bit_length()


@given(count=st.integers(2, 400), data=st.data())
def test_neighbours_that_fail_together_are_found(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 2))
    compiler = Refusing(set(), {first, first + 1})
    found = find_refused(count, WORDS, compiler)
    assert set(found) == {first, first + 1}
    assert compiler.compiles <= MAX_COMPILES


@given(count=st.integers(1, 300), bad=st.sets(st.integers(0, 299), min_size=1))
def test_compiles_are_bounded_and_what_is_left_compiles(count: int, bad: set[int]) -> None:
    bad = {index % count for index in bad}
    compiler = Refusing(bad, set())
    found = find_refused(count, WORDS, compiler)
    assert compiler.compiles <= MAX_COMPILES
    assert bad <= found.keys()
    if not compiler.compiles >= MAX_COMPILES - 1:
        assert bad == found.keys()


class CompilerWithoutTanh(CoreWithCompiler):
    """Refuses Tanh, and Exp next to Sigmoid in one model is fine."""

    refused: tuple[str, ...] = ("Tanh",)

    def compile_model(self, model: Any, device: str, config: dict[str, Any]) -> Any:
        kinds = {operation.get_type_name() for operation in model.get_ordered_ops()}
        if kinds & set(self.refused):
            self.asked.append(config)
            raise RuntimeError(f"Exception from src/x.cpp:1:\n{WORDS}")
        return super().compile_model(model, device, config)


def chain() -> onnx.ModelProto:
    nodes = [
        helper.make_node(kind, [f"v{i}"], [f"v{i + 1}"], name=f"n{i}")
        for i, kind in enumerate(CHAIN)
    ]
    x = helper.make_tensor_value_info("v0", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info(f"v{len(CHAIN)}", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(nodes, "chain", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def context_options(path: Path) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(path))
    return options


def test_a_node_that_the_npu_compiler_refuses_goes_to_the_next_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ov, "Core", CompilerWithoutTanh)
    path = tmp_path / "c.onnx"
    with ort.InferenceSession(
        chain().SerializeToString(), context_options(path), providers=npu_providers("4000")
    ) as session:
        report = session.explain()
    placed = {node.name: node.ep for part in report.partitions for node in part.nodes}
    assert {name for name, ep in placed.items() if ep == CPU} == {"n1"}
    assert sum(ep == OPENVINO for ep in placed.values()) == len(CHAIN) - 1
    (refused,) = [n for part in report.partitions for n in part.nodes if n.name == "n1"]
    assert "Intel's NPU compiler refuses it" in refused.refusals[OPENVINO]
    assert "strides can't be processed" in refused.refusals[OPENVINO]
    kept = [node.op_type for node in onnx.load(path).graph.node]
    assert kept == ["EPContext", "Tanh", "EPContext"]


def test_a_session_that_must_not_use_the_cpu_says_what_was_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ov, "Core", CompilerWithoutTanh)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with pytest.raises(ort.Fail, match="fallback to CPU EP has been explicitly disabled"):
        ort.InferenceSession(chain().SerializeToString(), options, providers=npu_providers("4000"))


@pytest.mark.parametrize(
    "words",
    ["ZE_RESULT_ERROR_DEVICE_LOST", "ZE_RESULT_ERROR_NOT_AVAILABLE", "std::bad_alloc"],
)
def test_a_failure_of_the_device_is_not_taken_for_a_refusal(
    words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(CoreWithCompiler):
        def compile_model(self, model: object, device: str, config: dict[str, Any]) -> Any:
            self.asked.append(config)
            raise RuntimeError(words)

    monkeypatch.setattr(ov, "Core", Failing)
    with pytest.raises(ort.OrtLiteError) as failed:
        ort.InferenceSession(
            chain().SerializeToString(), providers=npu_providers("4000"), enable_fallback=0
        )
    assert words in str(failed.value)
    assert len(Failing.asked) == 1
