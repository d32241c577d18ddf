"""Compiling for an NPU that is not in the machine: what is checked, written and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from npu_compiler import OPENVINO, CoreWithCompiler, npu_providers
from onnx import helper
from small_models import mlp, model

import ort_lite as ort
from ctx_formats.model_reader import read_model
from eps.openvino.options import parse_options
from eps.openvino.sdk.binding import ov

if TYPE_CHECKING:
    from pathlib import Path

OFFLINE = npu_providers("4000")


def context_options(path: Path) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(path))
    return options


def everything() -> ort.SessionOptions:
    """OpenVINO gets every node that it supports, as where a context model is written."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    return options


@pytest.mark.parametrize(
    "platform", ["40", "lunarlake", "4000;", "40000", "\u0664\u0660\u0660\u0660"]
)
def test_a_platform_is_four_digits(platform: str) -> None:
    with pytest.raises(ort.InvalidArgument, match="expected four digits such as 4000"):
        parse_options({"device_type": "NPU", "npu_platform": platform})


def test_a_platform_may_have_its_prefix() -> None:
    assert parse_options({"device_type": "NPU", "npu_platform": "NPU4000"}).npu_platform == "4000"


@pytest.mark.parametrize("device", ["CPU", "GPU", "AUTO:NPU,CPU", "NPU.3720"])
def test_a_platform_is_for_the_npu_alone(device: str) -> None:
    with pytest.raises(ort.InvalidArgument, match="device_type"):
        parse_options({"device_type": device, "npu_platform": "4000"})


def test_without_intels_compiler_the_error_names_the_library() -> None:
    try:
        ov.Core().get_property("NPU", "NPU_COMPILER_VERSION")
    except RuntimeError:
        with pytest.raises(ort.EPFail, match=r"platform 4000.*NPU compiler library, which"):
            ort.InferenceSession(mlp().SerializeToString(), providers=OFFLINE, enable_fallback=0)
    else:
        with ort.InferenceSession(mlp().SerializeToString(), providers=OFFLINE) as made:
            assert made.explain().partitions[0].identity["architecture"] == "4000"


def test_a_context_for_another_machine_names_its_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    path = tmp_path / "c.onnx"
    content = mlp().SerializeToString()
    with ort.InferenceSession(content, context_options(path), providers=OFFLINE) as made:
        assert CoreWithCompiler.asked[0]["NPU_PLATFORM"] == "4000"
        assert CoreWithCompiler.asked[0]["NPU_COMPILER_TYPE"] == "PLUGIN"
        (note,) = made.explain().partitions[0].notes
        assert note.startswith("compiled for NPU 4000, which is absent; its numbers are unproven")
        made.disable_fallback()
        name, shape = made.get_inputs()[0].name, made.get_inputs()[0].shape
        with pytest.raises(ort.EPFail, match="platform 4000, which this machine does not have"):
            made.run(None, {name: np.zeros(shape, np.float32)})
    node = next(n for n in read_model(memoryview(path.read_bytes())).graph.nodes)
    assert bytes(node.attributes["hardware_architecture"].value) == b"4000"  # type: ignore[arg-type]
    with pytest.raises(ort.InvalidGraph, match="compiles without the NPU") as refused:
        ort.InferenceSession(path, providers=OFFLINE)
    assert refused.value.reason == "device_missing"


def test_free_dimensions_are_refused_as_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    with pytest.raises(ort.EPFail, match=r"NPU needs static shapes.*reshape_input"):
        ort.InferenceSession(mlp("rows").SerializeToString(), providers=OFFLINE)


def quantised(rows: str = "rows", *, expanded: bool = False) -> bytes:
    """y = x, quantised and back: OpenVINO does not get the quantisation in the middle.

    Args:
        rows: Name of the first dimension of x [rows, 4].
        expanded: Whether what is quantised has a shape that only a run knows.
    """
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("Abs", ["s"], ["a"]),
        helper.make_node("Slice", ["a", "zero", "one"], ["e"]),
        helper.make_node("Slice", ["a", "zero", "e"], ["t"]),
        helper.make_node("Expand", ["c", "t"], ["u"]),
    ]
    nodes = nodes if expanded else nodes[:1]
    nodes += [
        helper.make_node("DynamicQuantizeLinear", ["u" if expanded else "r"], ["q", "qs", "qz"]),
        helper.make_node("DequantizeLinear", ["q", "qs", "qz"], ["y"]),
    ]
    weights = {
        "zero": np.array([0], np.int64), "one": np.array([1], np.int64), "c": np.ones(1, "f4"),
    }  # fmt: skip
    outputs = [("y", None)]
    return model(
        nodes, [("x", [rows, 4])], outputs, weights if expanded else {}
    ).SerializeToString()


def test_shapes_of_the_inputs_reach_partitions_in_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    with pytest.raises(ort.EPFail, match=r"NPU needs static shapes.*x\['rows', 4\]"):
        ort.InferenceSession(quantised(), everything(), providers=OFFLINE)
    shaped = npu_providers(reshape_input="x[2,4]")
    with ort.InferenceSession(quantised(), everything(), providers=shaped) as made:
        counts = made.explain().node_counts()
    assert counts == {OPENVINO: 2, "CPUExecutionProvider": 1}


def test_what_ends_the_compiler_is_left_to_the_next_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen with the compiler of OpenVINO 2026.4.1: "OneHot depth must be a const scalar"."""
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    node = helper.make_node("OneHot", ["x", "depth", "values"], ["hot"])
    inputs: list[tuple[str, list[int | str | None]]] = [("x", [3])]
    values = {"values": np.array([0, 1], "f4")}
    last = helper.make_node("Relu", ["hot"], ["y"])
    runtime = model([node], [*inputs, ("depth", [1])], [("hot", None)], values)
    constant = model([node, last], inputs, [("y", None)], {**values, "depth": np.ones(1, "f4")})
    with ort.InferenceSession(runtime.SerializeToString(), everything(), providers=OFFLINE) as made:
        assert "OneHot x1: 'depth' is not constant, which ends" in str(made.explain())
    with ort.InferenceSession(
        constant.SerializeToString(), everything(), providers=OFFLINE
    ) as made:
        assert made.explain().node_counts() == {OPENVINO: 2}


def test_a_value_whose_shape_only_a_run_knows_is_left_to_the_next_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"]),
        helper.make_node("Cast", ["n"], ["c"], to=1),
        helper.make_node("DynamicQuantizeLinear", ["c"], ["q", "qs", "qz"]),
        helper.make_node("DequantizeLinear", ["q", "qs", "qz"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    proto = model(nodes, [("x", [3])], [("y", None)]).SerializeToString()
    with ort.InferenceSession(proto, everything(), providers=OFFLINE) as made:
        fallen = made.explain().fallen_nodes()[OPENVINO]
        assert {"DequantizeLinear", "Relu"} <= fallen.keys()
        assert "the shape of 'q' is unknown before the run" in str(made.explain())


def test_a_value_of_unknown_rank_is_left_to_the_next_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ov, "Core", CoreWithCompiler)
    proto = quantised(expanded=True)
    with ort.InferenceSession(
        proto, everything(), providers=npu_providers(reshape_input="x[2,4]")
    ) as made:
        assert "DequantizeLinear x1: OpenVINO: the rank of 'q' is unknown" in str(made.explain())
    named = npu_providers(reshape_input="x[2,4],u[2,4]")
    with ort.InferenceSession(proto, everything(), providers=named) as made:
        assert "DequantizeLinear" not in made.explain().fallen_nodes()[OPENVINO]


@pytest.mark.hw("openvino-npu")
def test_what_was_compiled_offline_runs_on_the_npu(tmp_path: Path) -> None:
    here = str(ov.Core().get_property("NPU", "DEVICE_ARCHITECTURE")).removeprefix("NPU")
    offline = [(OPENVINO, {"device_type": "NPU", "npu_platform": here})]
    path, content = tmp_path / "c.onnx", mlp().SerializeToString()
    with ort.InferenceSession(content, context_options(path), providers=offline):
        pass
    with ort.InferenceSession(path, providers=[(OPENVINO, {"device_type": "NPU"})]) as made:
        made.disable_fallback()
        name, shape = made.get_inputs()[0].name, made.get_inputs()[0].shape
        x = np.ones(shape, np.float32)
        found = made.run(None, {name: x})[0]
    with ort.InferenceSession(content, providers=["CPUExecutionProvider"]) as exact:
        np.testing.assert_allclose(found, exact.run(None, {name: x})[0], rtol=2e-2)
