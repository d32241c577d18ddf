"""What the OpenVINO EP alone promises: devices, options, shapes, conversion, verdicts."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from busy_threads import wrongly_answered
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from small_models import feed, mlp, model

import ort_lite as ort
from benchmarks.harness.engine_programs import FLOAT32
from ctx_formats.errors import FormatError
from ctx_formats.identity import HardwareIdentity
from eps.openvino import FACTORY
from eps.openvino.options import compile_config, device_kind, parse_options
from eps.openvino.payload.blob_header import parse_requirements, read_requirements
from ort_lite.ep.interface import CompiledModelCompatibility

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.ep.interface import ExecutionProvider

OPENVINO = "OpenVINOExecutionProvider"
OPTIMAL = CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
UNSUPPORTED = CompiledModelCompatibility.EP_UNSUPPORTED


def session(proto: Any, **options: str) -> ort.InferenceSession:
    named = [(OPENVINO, options)]
    return ort.InferenceSession(proto.SerializeToString(), providers=named, enable_fallback=0)


@pytest.mark.parametrize(
    ("given", "device", "kind"),
    [
        ("cpu", "CPU", "CPU"),
        ("GPU.1", "GPU.1", "GPU"),
        ("NPU", "NPU", "NPU"),
        ("AUTO", "AUTO", "CPU"),
        ("AUTO:NPU,CPU", "AUTO:NPU,CPU", "NPU"),
        ("hetero: gpu , cpu", "HETERO:GPU,CPU", "GPU"),
        ("MULTI:GPU.0,CPU", "MULTI:GPU.0,CPU", "GPU"),
    ],
)
def test_devices_are_named_as_openvino_names_them(given: str, device: str, kind: str) -> None:
    options = parse_options({"device_type": given})
    assert options.device == device
    assert options.kind == device_kind(device) == kind


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"device_type": "FPGA"}, "device_type is 'FPGA', expected CPU"),
        ({"device_type": "HETERO"}, "device_type is 'HETERO'"),
        ({"device_type": "MULTI:"}, "device_type is 'MULTI:'"),
        ({"device_type": "GPU.x"}, "device_type is 'GPU.x'"),
        ({"precision": "FP16"}, "expected one of FP32, ACCURACY for CPU"),
        ({"device_type": "NPU", "precision": "FP32"}, "expected one of FP16, ACCURACY for NPU"),
        ({"num_of_threads": "0"}, "num_of_threads is '0', expected a whole number"),
        ({"num_streams": "-1"}, "num_streams is '-1'"),
        ({"disable_dynamic_shapes": "yes"}, "expected true or false"),
        ({"load_config": "{"}, "load_config is not JSON"),
        ({"load_config": "[" * 5000}, "load_config is not JSON"),
        ({"load_config": "[1]"}, "load_config is not of the form"),
        ({"load_config": '{"TPU": {}}'}, r"names devices \['TPU'\]"),
        ({"load_config": " " * 70000}, "load_config is 70000 characters"),
        ({"reshape_input": "x"}, "reshape_input is 'x', expected"),
        ({"reshape_input": "x[a]"}, "'a' is not a size"),
        ({"reshape_input": "x[0]"}, "'0' is not a range"),
        ({"reshape_input": "x[5..2]"}, "'5..2' is not a range"),
    ],
)
def test_an_option_with_a_value_it_cannot_have_is_named(options: dict[str, str], text: str) -> None:
    with pytest.raises(ort.InvalidArgument, match=text):
        parse_options(options)


def test_shapes_are_given_as_sizes_and_bounds() -> None:
    options = parse_options({"reshape_input": "a[1,3], b.c[1..8,64]"})
    assert options.reshape == {"a": ((1, 1), (3, 3)), "b.c": ((1, 8), (64, 64))}


def test_precision_has_a_default_for_each_device() -> None:
    found = [parse_options({"device_type": d}).precision for d in ("CPU", "GPU", "NPU")]
    assert found == ["ACCURACY", "FP16", "FP16"]


def test_every_option_has_a_line_of_help() -> None:
    assert set(FACTORY.options) >= {"device_type", "precision", "load_config", "reshape_input"}
    assert all(FACTORY.options.values())


def test_probing_names_the_cpu_and_what_was_looked_at_for_the_rest() -> None:
    probe = FACTORY.probe()
    assert "CPU" in [device.name for device in probe.devices]
    kinds = {device.kind for device in probe.devices}
    for kind in {"GPU", "NPU"} - kinds:
        assert kind in probe.reason
        assert any(line.startswith(f"{kind}: plug-in:") for line in probe.tried)


@pytest.mark.parametrize("device", ["NPU", "GPU", "GPU.7", "HETERO:NPU,CPU", "AUTO:NPU"])
def test_a_device_that_is_not_here_is_named_with_those_that_are(device: str) -> None:
    missing = {d.name for d in FACTORY.probe().devices}
    if device.partition(":")[2].split(",")[0] in missing or device in missing:
        pytest.skip(f"{device} is here")
    with pytest.raises(
        ort.EPFail, match=f"no device '{device}' on this machine; found: .*CPU.*ort-lite doctor"
    ):
        session(mlp(), device_type=device)


@pytest.mark.parametrize("device", ["AUTO", "AUTO:NPU,CPU", "HETERO:CPU", "MULTI:CPU"])
def test_groups_of_devices_run_and_say_on_what(device: str) -> None:
    with session(mlp(), device_type=device) as made:
        (found,) = made.run(None, feed(mlp()))
        identity = made.explain().partitions[0].identity
    assert identity["device"].startswith(f"{device}: ")
    (right,) = ReferenceEvaluator(mlp()).run(None, feed(mlp()))
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)  # CPUs with bfloat16 as well


@pytest.mark.parametrize(
    ("device", "asked"), [("AUTO:GPU,CPU", {"CPU": FLOAT32}), ("AUTO:NPU", None), ("CPU", None)]
)
def test_the_cpu_of_a_group_computes_in_float32(device: str, asked: object) -> None:
    config = compile_config(parse_options({"device_type": device}))
    assert config.get("DEVICE_PROPERTIES") == asked


def test_what_a_group_compiled_cannot_be_kept_and_nothing_is_written(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "c.onnx"))
    with pytest.raises(ort.EPFail, match="compiled for AUTO:CPU cannot be kept"):
        ort.InferenceSession(
            mlp().SerializeToString(), options, providers=[(OPENVINO, {"device_type": "AUTO:CPU"})]
        )
    assert list(tmp_path.iterdir()) == []


def test_a_property_that_openvino_does_not_know_is_no_fault_of_the_model() -> None:
    with pytest.raises(ort.InvalidArgument, match=r"load_config: OpenVINO says: .*FOO"):
        session(mlp(), load_config='{"CPU": {"FOO": "1"}}')


def test_known_properties_are_passed_on() -> None:
    with session(mlp(), load_config='{"CPU": {"INFERENCE_NUM_THREADS": "1"}}') as made:
        assert made.run(None, feed(mlp()))[0].shape == (2, 3)


def test_free_dimensions_are_named_where_sizes_are_needed() -> None:
    with pytest.raises(ort.EPFail, match=r"x\['rows', 4\].*\"reshape_input=x\[1,4\]\""):
        session(mlp("rows"), disable_dynamic_shapes="true")
    with session(mlp("rows"), disable_dynamic_shapes="true", reshape_input="x[3,4]") as made:
        assert made.run(None, {"x": np.zeros((3, 4), np.float32)})[0].shape == (3, 3)


def test_a_shape_of_another_rank_is_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match="has 3 dimensions for x, the model 2"):
        session(mlp("rows"), reshape_input="x[1,2,4]")


def test_a_node_that_openvino_cannot_convert_goes_to_the_next_ep() -> None:
    """A Squeeze of unknown rank inside a chain that is fine otherwise."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="relu"),
        helper.make_node("Reshape", ["a", "shape"], ["b"], name="reshape"),
        helper.make_node("GridSample", ["b", "grid"], ["c"], name="sample"),
        helper.make_node("Neg", ["c"], ["y"], name="neg"),
    ]
    proto = model(nodes, [("x", [1, 1, 4, 4]), ("grid", [1, 2, 2, 2])], [("y", None)])
    proto.graph.input.append(helper.make_tensor_value_info("shape", TensorProto.INT64, ["n"]))
    values = {
        "x": np.ones((1, 1, 4, 4), np.float32),
        "grid": np.zeros((1, 2, 2, 2), np.float32),
        "shape": np.array([1, 1, 4, 4], np.int64),
    }
    with session(proto) as made:
        np.testing.assert_allclose(made.run(None, values)[0], -np.ones((1, 1, 2, 2)), rtol=1e-6)
        fallen = made.explain().fallen_nodes()
    assert "GridSample" in fallen.get(OPENVINO, {})


def double(op: str) -> Any:
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [2])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def test_float64_is_not_computed_in_float32() -> None:
    with session(double("Exp")) as made:
        x = np.array([500.0, -500.0])
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], np.exp(x))
        assert list(made.explain().node_counts()) == ["CPUExecutionProvider"]
        assert "tensor(double)" in str(made.explain())


def test_peepholes_are_not_dropped() -> None:
    names = ["x", "w", "r", "", "", "", "", "p"]
    node = helper.make_node("LSTM", names, ["y"], hidden_size=2)
    shapes = {"x": [3, 1, 2], "w": [1, 8, 2], "r": [1, 8, 2], "p": [1, 6]}
    proto = model([node], list(shapes.items()), [("y", [3, 1, 1, 2])])
    with session(proto) as made:
        assert "peepholes" in str(made.explain())


def opened(**options: str) -> ExecutionProvider:
    return FACTORY.create(options)


def test_the_identity_tells_what_blobs_made_here_require() -> None:
    ep = opened()
    identity = ep.identity
    assert identity.device.startswith("CPU: ")
    assert identity.architecture
    assert identity.sdk_build.startswith(identity.sdk_version)
    if tuple(map(int, identity.sdk_version.split(".")[:2])) >= (2026, 4):
        assert parse_requirements(identity.requirements)["ov"] == identity.sdk_version
    ep.release()


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({}, OPTIMAL, None),
        ({"sdk_version": "2024.1.0"}, UNSUPPORTED, "sdk_version"),
        ({"sdk_version": "2024.1"}, UNSUPPORTED, "sdk_version"),
        ({"sdk_build": "1-2-3"}, UNSUPPORTED, "sdk_version"),
        ({"architecture": "arm64"}, UNSUPPORTED, "hardware_architecture"),
        ({"device": "NPU: Intel(R) AI Boost"}, UNSUPPORTED, "hardware_architecture"),
        ({"device": "CPU: another one of the same kind"}, OPTIMAL, None),
        (
            {"requirements": "meta=1.0;ov=1999.1.1;isa=x", "device": "CPU: another"},
            UNSUPPORTED,
            "sdk_version",
        ),
        ({"driver_version": "1"}, OPTIMAL, None),
    ],
)
def test_verdicts(changes: dict[str, str], verdict: Any, reason: str | None) -> None:
    ep = opened()
    if "requirements" in changes and not ep.identity.requirements:
        pytest.skip(f"OpenVINO {ep.identity.sdk_version} writes no requirement text into blobs")
    recorded = HardwareIdentity.from_mapping({**ep.identity.to_mapping(), **changes})
    found = ep.check_compatibility(recorded)  # type: ignore[attr-defined] # it keeps contexts
    assert (found.verdict, found.reason) == (verdict, reason)
    assert bool(found.message) == (reason is not None)


def test_onnx_runtimes_short_version_is_enough() -> None:
    ep = opened()
    short = ".".join(ep.identity.sdk_version.split(".")[:2])
    found = ep.check_compatibility(HardwareIdentity(sdk_version=short))  # type: ignore[attr-defined] # see above
    assert found.verdict == OPTIMAL


def header(text: bytes, *, size: int | None = None, version: int = 1) -> memoryview:
    length = len(text) if size is None else size
    return memoryview(struct.pack("<8sIQ", b"RR_UPCVO", version, length) + text)


def test_requirements_are_read_from_the_head_of_a_blob() -> None:
    assert read_requirements(header(b"ov=1;isa=x")) == "ov=1;isa=x"
    assert read_requirements(memoryview(b"<cnndata>")) == ""
    assert parse_requirements("a=b;c;d=e=f") == {"a": "b", "c": "", "d": "e=f"}


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (memoryview(b"RR_UPCVO\1"), "9 bytes"),
        (header(b"abc", size=4), "size: 4"),
        (header(b"abc", size=2**63), "size:"),
        (header(b"abc", version=2), "version: 2"),
        (header(b"\xff"), "not ASCII"),
    ],
)
def test_a_head_that_is_wrong_is_refused(blob: memoryview, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        read_requirements(blob)


def test_sessions_side_by_side_share_nothing() -> None:
    one, two = session(mlp()), session(mlp(), num_of_threads="1")
    expected = one.run(None, feed(mlp()))[0]
    one.close()
    np.testing.assert_allclose(two.run(None, feed(mlp()))[0], expected, rtol=1e-6)
    two.close()


def test_large_and_read_only_inputs_are_lent_and_given_back() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    proto = model(nodes, [("x", [1 << 19])], [("y", [1 << 19])])
    with session(proto) as made:
        for seed in range(3):
            x = np.random.default_rng(seed).standard_normal(1 << 19).astype(np.float32)
            x.flags.writeable = bool(seed % 2)
            np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)


def test_threads_on_dynamic_shapes_get_their_own_answers() -> None:
    assert wrongly_answered(session(mlp("rows"))) == []


@pytest.mark.hw("openvino-npu")
def test_an_npu_compiles_keeps_and_reloads(tmp_path: Path) -> None:
    _round_trip(tmp_path, "NPU")


@pytest.mark.hw("openvino-gpu")
def test_a_gpu_compiles_keeps_and_reloads(tmp_path: Path) -> None:
    _round_trip(tmp_path, "GPU")


def _round_trip(folder: Path, device: str) -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(folder / "c.onnx"))
    provider = [(OPENVINO, {"device_type": device})]
    with ort.InferenceSession(mlp().SerializeToString(), options, providers=provider) as made:
        expected = made.run(None, feed(mlp()))[0]
        identity = made.explain().partitions[0].identity
    assert identity["driver_version"] or device == "GPU"
    with ort.InferenceSession(folder / "c.onnx", providers=provider) as again:
        np.testing.assert_array_equal(again.run(None, feed(mlp()))[0], expected)
