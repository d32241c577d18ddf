"""Contexts for NPUs that are not here: what they say, and that nothing else runs them.

tests/golden/npu/mlp_npu*_ctx.onnx.xz are `small_models.mlp()`, compiled by Intel's NPU compiler of
OpenVINO 2026.4.1 for Windows: `ort-lite compile mlp.onnx --npu-platform 4000,5010,... --embed`.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import onnx
import pytest
from context_models import OPENVINO
from npu_compiler import PLATFORMS

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ctx_formats.ep_context import EpContextNode
from ctx_formats.identity import HardwareIdentity
from ctx_formats.model_reader import read_model
from eps.openvino.options import OPTIONS, parse_options
from eps.openvino.payload.npu_requirements import (
    HOSTS,
    NpuRequirements,
    read_npu_requirements,
)
from eps.openvino.payload.verdict import Verdicts
from ort_lite.cli.app import run_command
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.model_facts import read_facts
from ort_lite.hw.requirements import NPU_CHIPS
from ort_lite.providers.catalog import probe_all

FOLDER = Path(__file__).with_name("npu")
REQUIREMENTS = "meta=2.7;ov=2026.4.1;desc=[compiler=8.4;npu=4000;t=4;elf=1.2.2;mi=11.4.10]"


@pytest.fixture
def context(tmp_path: Path) -> Path:
    return unpacked("4000", tmp_path)


def unpacked(platform: str, folder: Path) -> Path:
    packed = FOLDER / f"mlp_npu{platform}_ctx.onnx.xz"
    path = folder / packed.stem
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


def has_npu() -> bool:
    return any(device.kind == "NPU" for device in probe_all()[OPENVINO].devices)


def test_it_says_what_it_was_compiled_for(context: Path) -> None:
    onnx.checker.check_model(onnx.load(context))
    facts = read_facts(context)
    (node,) = facts.contexts
    assert node.problem == ""
    assert node.options == {"device_type": "NPU", "npu_platform": "4000"}
    assert node.identity["architecture"] == "4000"
    assert node.identity["sdk_version"] == "2026.4.1"
    assert node.identity["requirements"] == REQUIREMENTS
    info = json.loads(facts.metadata["ep_compatibility_info.OpenVINOExecutionProvider"])
    assert info["ov_compat_string"] == REQUIREMENTS


def test_its_payload_is_the_compiler_s_elf(context: Path) -> None:
    (node,) = read_model(memoryview(context.read_bytes())).graph.nodes
    container = read_container(memoryview(EpContextNode.from_node(node).ep_cache_context))
    (name,) = container.entries
    payload = bytes(container.payload(name))
    assert payload.startswith(b"\x7fELF")
    assert payload.endswith(b"OVNPU")
    assert b"compiler=8.4;npu=4000" in payload


@pytest.mark.parametrize("device", ["CPU", "NPU"])
def test_nothing_but_that_npu_runs_it(device: str, context: Path) -> None:
    if device == "NPU" and has_npu():
        pytest.skip("this machine has an NPU")
    options = {"device_type": device}
    with pytest.raises(ort.OrtLiteError) as refused:
        ort.InferenceSession(context, providers=[(OPENVINO, options)], enable_fallback=0)
    if device == "NPU":
        assert isinstance(refused.value, ort.EPFail)
        assert "no device 'NPU'" in str(refused.value)
        return
    assert isinstance(refused.value, ort.InvalidGraph)
    assert refused.value.reason == "hardware_architecture"


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ((), ExitCode.INVALID_GRAPH, "hardware_architecture"),
        (("--device", "npu"), ExitCode.NO_HARDWARE, "device_missing"),
        (("-e", "cpu"), ExitCode.NO_HARDWARE, "device_missing"),
    ],
)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_check_says_which_npu_and_driver_it_needs(
    platform: str,
    arguments: tuple[str, ...],
    code: ExitCode,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if has_npu():
        pytest.skip("this machine has an NPU")
    context = unpacked(platform, tmp_path)
    assert run_command(["check", str(context), *arguments]) == code
    shown = capsys.readouterr().out
    assert f"({reason})" in shown
    assert f"needs       NPU {platform} ({HOSTS[platform]}) with a driver that loads ELF " in shown
    assert (
        "such as one released with OpenVINO 2026.4.1 or newer, or one with NPU compiler 8.4"
        in shown
    )
    if reason == "hardware_architecture":
        assert f"built for NPU {platform}, this session runs on CPU" in shown


def test_the_requirements_are_the_compilers_own() -> None:
    assert read_npu_requirements(REQUIREMENTS) == NpuRequirements(
        platform="4000",
        compiler="8.4",
        elf="1.2.2",
        mapped_inference="11.4.10",
        openvino="2026.4.1",
    )
    assert read_npu_requirements("meta=1.0;ov=2026.4.1;isa=Intel AVX2") is None
    assert read_npu_requirements("desc=[compiler=8.4]") is None
    assert read_npu_requirements("desc=[npu=6000]") == NpuRequirements(platform="6000")
    assert str(read_npu_requirements("desc=[npu=6000]")).startswith("NPU 6000 with a driver that")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_npu_of_another_platform_is_named(platform: str) -> None:
    recorded = HardwareIdentity(sdk_version="2026.4.1", requirements=REQUIREMENTS)
    here = HardwareIdentity(device="NPU: AI Boost", architecture=platform, sdk_version="2026.4.1")
    verdicts = Verdicts(lambda: "", parse_options({"device_type": "NPU"}), here)
    verdict = verdicts.compare(recorded)
    if platform == "4000":
        assert verdict.reason is None
    else:
        assert verdict.reason == "hardware_architecture"
        assert verdict.message == f"built for NPU 4000, this session runs on NPU {platform}"


def test_help_and_options_name_every_platform_with_its_processors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["compile", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for platform, processors in HOSTS.items():
        assert f"{platform} {processors}" in shown
        assert platform in OPTIONS["npu_platform"]
    assert {chip.platform for chip in NPU_CHIPS.values()} == set(HOSTS)
