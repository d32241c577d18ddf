"""Each command does what its help says, for a person and as JSON."""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from small_models import model as small_model

from ort_lite.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

OPENVINO = "OpenVINOExecutionProvider"


def test_devices_names_each_provider_and_its_devices(invoke) -> None:
    found = {ep["name"]: ep for ep in invoke("devices", "--json").json["execution_providers"]}
    assert [d["kind"] for d in found["CPUExecutionProvider"]["devices"]] == ["CPU"]
    openvino_cpu = next(d for d in found[OPENVINO]["devices"] if d["kind"] == "CPU")
    assert openvino_cpu["identity"]["sdk_version"].count(".") == 2


def test_features_of_devices_are_listed_on_request_only(invoke) -> None:
    """A driver's list of OpenCL extensions would hide the device's name."""
    eps = {ep["name"]: ep for ep in invoke("devices", "--json").json["execution_providers"]}
    opencl = eps["OpenCLExecutionProvider"]["devices"]
    assert opencl
    for device in opencl:
        assert device["memory"] > 1 << 20
        assert any(name.startswith("cl_khr_") for name in device["features"])
        assert "cl_khr" not in device["description"]
    assert "EXPORT_IMPORT" in eps[OPENVINO]["devices"][0]["features"]
    plain = invoke("devices").out
    assert re.search(r"^        memory +\d+\.\d+ [MG]B$", plain, re.MULTILINE)
    assert f"        vendor        {opencl[0]['identity']['vendor']}" in plain
    assert "cl_khr" not in plain + invoke("doctor").out
    verbose = invoke("devices", "-v").out
    assert all(name in verbose for name in opencl[0]["features"])


def test_devices_says_what_is_not_here_and_why(invoke) -> None:
    result = invoke("devices")
    assert result.code == 0
    assert "CPUExecutionProvider" in result.out
    assert result.err == ""


def test_devices_of_one_kind_are_listed(invoke) -> None:
    listed = invoke("devices", "--device", "CPU", "--json").json["execution_providers"]
    assert "CPUExecutionProvider" in [ep["name"] for ep in listed]
    assert {device["kind"] for ep in listed for device in ep["devices"]} == {"CPU"}
    first = invoke("devices", "--device", "cpu.0", "--json").json["execution_providers"]
    assert {device["name"] for ep in first for device in ep["devices"]} == {"CPU"}


@pytest.mark.parametrize("command", ["devices", "doctor"])
def test_a_device_that_is_not_here_ends_with_3(invoke, command: str) -> None:
    result = invoke(command, "--device", "npu.7")
    assert result.code == ExitCode.NO_HARDWARE
    text = result.out + result.err
    assert "no execution provider has a device 'NPU.7' on this machine; found: CPU" in text


def test_doctor_finds_a_required_device(invoke) -> None:
    checks = invoke("doctor", "--device", "cpu", "--json").json["checks"]
    (device,) = [check for check in checks if check["name"] == "CPU device"]
    assert device["state"] == "ok"
    assert "CPU of CPUExecutionProvider" in device["found"]


@pytest.mark.parametrize("command", [("devices",), ("doctor",), ("inspect", "model.onnx")])
def test_a_device_that_is_none_is_refused(invoke, command: tuple[str, ...]) -> None:
    result = invoke(*command, "--device", "tpu")
    assert result.code == ExitCode.USAGE
    assert "expected cpu, gpu or npu" in result.err


def test_inspect_shows_contexts_of_one_device(invoke, context: Path) -> None:
    (found,) = invoke("inspect", context, "--device", "cpu", "--json").json["contexts"]
    assert found["source"] == OPENVINO
    other = invoke("inspect", context, "--device", "npu", "--json")
    assert (other.code, other.json["contexts"]) == (0, [])
    assert "has no EPContext node for NPU" in other.err


def test_doctor_looks_from_python_to_the_devices(invoke) -> None:
    result = invoke("doctor", "--json")
    names = {check["name"] for check in result.json["checks"]}
    assert names >= {"Python", "CPU", "numpy", "onnx", "openvino", OPENVINO}
    assert result.json["exit_code"] == result.code


def test_doctor_names_a_device_once(invoke) -> None:
    found = {check["name"]: check["found"] for check in invoke("doctor", "--json").json["checks"]}
    assert found["CPUExecutionProvider"] == f"CPU ({platform.machine()})"
    assert re.match(r"CPU \(.+\)", found[OPENVINO])


def test_doctor_prints_a_row_for_each_check(invoke) -> None:
    shown = invoke("doctor").out
    for check in invoke("doctor", "--json").json["checks"]:
        assert check["name"] in shown


def test_compile_writes_a_context_model_and_its_payload(invoke, model: Path) -> None:
    result = invoke("compile", model, "-e", "openvino", "--json").json
    assert result["output"] == str(model.with_name("dense_ctx.onnx"))
    assert [f["bytes"] for f in result["files"]] == [
        model.with_name(name).stat().st_size
        for name in ("dense_ctx.onnx", f"dense_ctx_{OPENVINO}.bin")
    ]
    assert result["nodes"] == {OPENVINO: 3}
    onnx.checker.check_model(onnx.load(result["output"]))


def test_compile_embeds_the_payload_when_asked_to(invoke, model: Path) -> None:
    target = model.with_name("all_in_one.onnx")
    result = invoke("compile", model, "-o", target, "--embed", "-e", "openvino")
    assert result.code == 0
    assert re.search(r"for: OpenVINOExecutionProvider on CPU: .* \(3 nodes\); 1 part", result.out)
    assert [path.name for path in target.parent.glob("all_in_one*")] == ["all_in_one.onnx"]


def test_inspect_tells_what_a_plain_model_holds(invoke, model: Path) -> None:
    facts = invoke("inspect", model, "--json").json
    assert facts["nodes"] == {"MatMul": 1, "Add": 1, "Relu": 1}
    assert facts["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": ["batch", 3]}]
    assert (facts["weights"], facts["weight_bytes"]) == (2, (3 * 2 + 2) * 4)
    assert facts["opset_imports"] == {"ai.onnx": 17}
    assert facts["contexts"] == []


def test_inspect_counts_tensors_of_constant_nodes(invoke, tmp_path: Path) -> None:
    """All weights of Paddle's models are such."""
    weights = numpy_helper.from_array(np.ones((6, 5), np.float32))
    nodes = [
        helper.make_node("Constant", [], ["w"], value=weights),
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "one"], ["y"]),
    ]
    path = tmp_path / "constants.onnx"
    path.write_bytes(small_model(nodes, [("x", [2, 6])], [("y", [2, 5])]).SerializeToString())
    facts = invoke("inspect", path, "--json").json
    assert (facts["weights"], facts["constants"]) == (0, 1)
    assert facts["constant_bytes"] == 6 * 5 * 4
    assert "  constants   1, 120 B" in invoke("inspect", path).out


def test_inspect_tells_what_a_payload_was_compiled_for(
    invoke, context: Path, payload: Path
) -> None:
    (found,) = invoke("inspect", context, "--json").json["contexts"]
    assert found["source"] == OPENVINO
    assert found["payload"] == payload.name
    assert found["container_bytes"] == payload.stat().st_size
    assert found["onnx_model_filename"] == "dense.onnx"
    assert found["identity"]["device"].startswith("CPU: ")
    assert len(found["digest"]) == 64
    assert found["problem"] == ""
    assert payload.name in invoke("inspect", context).out


def test_inspect_still_shows_a_model_whose_payload_is_gone(
    invoke, context: Path, payload: Path
) -> None:
    payload.unlink()
    result = invoke("inspect", context)
    assert result.code == 0
    assert payload.name in result.out
    assert "problem" in result.out


def test_inspect_still_shows_a_model_whose_container_is_damaged(
    invoke, context: Path, payload: Path
) -> None:
    payload.write_bytes(b"OVEP_BIN" + bytes(100))
    (found,) = invoke("inspect", context, "--json").json["contexts"]
    assert "header.version" in found["problem"]


def test_check_accepts_what_was_compiled_here(invoke, context: Path) -> None:
    result = invoke("check", context, "--json")
    (node,) = result.json["nodes"]
    assert (result.code, node["verdict"]) == (0, "EP_SUPPORTED_OPTIMAL")
    assert node["integrity"] == "verified"
    assert node["recorded"]["sdk_build"] == node["present"]["sdk_build"]


def test_check_prints_both_identities(invoke, context: Path) -> None:
    shown = invoke("check", context).out
    assert "built with  CPU: " in shown
    assert "here        CPU: " in shown


def test_check_of_a_plain_model_has_nothing_to_say(invoke, model: Path) -> None:
    result = invoke("check", model)
    assert result.code == 0
    assert "no EPContext nodes" in result.out


def test_run_gives_the_numbers_of_the_onnx_reference(invoke, model: Path) -> None:
    inputs, outputs = model.with_name("in.npz"), model.with_name("out.npz")
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    np.savez(inputs, x=x)
    assert invoke("run", model, "-i", inputs, "-o", outputs).code == 0
    (expected,) = ReferenceEvaluator(str(model)).run(None, {"x": x})
    np.testing.assert_allclose(np.load(outputs)["y"], expected, rtol=1e-5, atol=1e-6)


def test_run_of_a_context_agrees_with_onnxruntime_on_the_plain_model(
    invoke, context: Path, model: Path
) -> None:
    arguments = ("--shape", "x=5x3", "--compare", "onnxruntime", "--reference", model)
    result = invoke("run", context, *arguments, "--json")
    (compared,) = result.json["comparison"]
    assert (result.code, result.json["ok"]) == (0, True)
    assert compared["output"] == "y"
    assert compared["relative"] <= 1e-4
    assert result.json["outputs"] == {"y": "float32[5, 2]"}


def test_run_shows_the_memory_of_each_device(invoke, model: Path) -> None:
    result = invoke("run", model, "-e", "cpu", "--memory", "--json")
    (device,) = result.json["memory"]["devices"]
    assert device["provider"] == "CPUExecutionProvider"
    assert device["weights_bytes"] > 0
    text = invoke("run", model, "-e", "cpu", "--memory").out
    assert "bound tensors" in text
    assert "CPUExecutionProvider" in text


def test_run_compares_with_the_cpu_provider(invoke, model: Path) -> None:
    result = invoke("run", model, "--compare", "cpu")
    assert result.code == 0
    assert "largest difference from cpu" in result.out


def test_run_fails_when_the_numbers_of_a_file_are_others(invoke, model: Path) -> None:
    wrong = model.with_name("wrong.npz")
    np.savez(wrong, y=np.full((1, 2), 1e3, np.float32))
    result = invoke("run", model, "--compare", wrong, "--json")
    assert (result.code, result.json["ok"]) == (1, False)


def test_run_fails_when_an_output_is_missing_in_the_file(invoke, model: Path) -> None:
    other = model.with_name("other.npz")
    np.savez(other, z=np.zeros((1, 2), np.float32))
    result = invoke("run", model, "--compare", other, "--json")
    assert result.code == 1
    problems = {c["output"]: c["problem"] for c in result.json["comparison"]}
    assert problems == {"y": "the reference lacks it", "z": "the model has no such output"}
    assert {c["absolute"] for c in result.json["comparison"]} == {None}


def test_random_inputs_are_the_same_for_the_same_seed(invoke, model: Path) -> None:
    def output(name: str, seed: int) -> np.ndarray:
        path = model.with_name(name)
        assert invoke("run", model, "-e", "cpu", "--seed", seed, "-o", path).code == 0
        return np.load(path)["y"]

    np.testing.assert_array_equal(output("a.npz", 3), output("b.npz", 3))
    assert not np.array_equal(output("c.npz", 3), output("d.npz", 4))


def test_bench_measures_every_phase_and_the_peer(invoke, model: Path) -> None:
    arguments = ("-n", 3, "--loads", 2, "--warmup", 0, "--against", "onnxruntime")
    phases = {p["phase"]: p for p in invoke("bench", model, *arguments, "--json").json["phases"]}
    assert phases["run"]["count"] == phases["run, onnxruntime"]["count"] == 3
    assert phases["session from context"]["count"] == 2
    assert phases["session and context written"]["count"] == 1
    assert all(0 < p["best_s"] <= p["median_s"] <= p["p90_s"] for p in phases.values())


def test_bench_of_a_context_measures_what_there_is(invoke, context: Path) -> None:
    result = invoke("bench", context, "-n", 1, "--loads", 1, "--shape", "x=1x3")
    assert result.code == 0
    assert "session from model" in result.out
    assert "session and context written" not in result.out


def test_explain_says_where_each_node_runs(invoke, model: Path) -> None:
    report = invoke("explain", model, "-e", "cpu", "--json").json
    places = {node["ep"] for part in report["partitions"] for node in part["nodes"]}
    assert places == {"CPUExecutionProvider"}
    assert "CPUExecutionProvider 3" in invoke("explain", model, "-e", "cpu").out
