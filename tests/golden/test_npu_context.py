"""A context for an NPU that is not here: what it says, and that nothing else runs it.

tests/golden/npu/mlp_npu4000_ctx.onnx.xz is `small_models.mlp()`, compiled by Intel's NPU compiler
of OpenVINO 2026.4.1 for Windows: `ort-lite compile mlp.onnx --npu-platform 4000 --embed`.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import onnx
import pytest
from context_models import OPENVINO

import ort_lite as ort
from ctx_formats.container_reader import read_container
from ctx_formats.ep_context import EpContextNode
from ctx_formats.model_reader import read_model
from ort_lite.cli.model_facts import read_facts
from ort_lite.providers.catalog import probe_all

PACKED = Path(__file__).with_name("npu") / "mlp_npu4000_ctx.onnx.xz"
REQUIREMENTS = "meta=2.7;ov=2026.4.1;desc=[compiler=8.4;npu=4000;t=4;elf=1.2.2;mi=11.4.10]"


@pytest.fixture
def context(tmp_path: Path) -> Path:
    path = tmp_path / PACKED.stem
    path.write_bytes(lzma.decompress(PACKED.read_bytes()))
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
