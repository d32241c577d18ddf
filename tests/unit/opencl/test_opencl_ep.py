"""The OpenCL EP: devices, options, reasons, shapes, and partitions beside another EP's."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import helper
from opencl_devices import all_devices
from small_models import feed, mlp, model
from system_limits import needs_posix

import ort_lite as ort
from eps.opencl import FACTORY
from ort_lite.status import EPFail, InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

OPENCL, OPENVINO = "OpenCLExecutionProvider", "OpenVINOExecutionProvider"


def test_devices_are_told_apart() -> None:
    """Names, kinds, and identities that differ between the platforms."""
    devices = FACTORY.probe().devices
    assert all(re.fullmatch(r"\d+\.\d+", device.name) for device in devices)
    identities = {(d.identity.driver_version, d.identity.architecture) for d in devices}
    assert len(identities) == len(devices)


@needs_posix  # PyPI has no PoCL for Windows
def test_a_platform_with_a_cpu_is_found_without_any_setting() -> None:
    """PoCL comes with pyopencl's extra; where it fails its trial the probe says so."""
    probe = FACTORY.probe()
    told = [*(device.description for device in probe.devices), probe.reason]
    assert any("Portable" in text for text in told)


@pytest.mark.parametrize("platform", ["portable", "PORTABLE Computing"])
def test_a_platform_is_named_by_a_part_of_its_name(platform: str) -> None:
    ep = FACTORY.create({"platform": platform})
    assert "PoCL" in ep.identity.driver_version
    ep.release()


@pytest.mark.parametrize("device", ["cpu", "CPU", "0", "0.0"])
def test_a_device_is_named_by_kind_index_or_place(device: str) -> None:
    found = all_devices()
    expected = "CPU" if device.lower() == "cpu" else found[0].kind
    ep = FACTORY.create({"device": device})
    assert ep.identity.device.startswith(expected)
    ep.release()


@pytest.mark.parametrize("options", [{"device": "no such"}, {"platform": "77"}, {"device": "gpu"}])
def test_a_device_that_is_not_there_is_an_error_with_those_that_are(
    options: dict[str, str],
) -> None:
    if options == {"device": "gpu"} and any(d.kind == "GPU" for d in FACTORY.probe().devices):
        pytest.skip("there is a GPU")
    with pytest.raises(EPFail, match=r"OpenCL has no device.* on this machine; found: 0\.0"):
        FACTORY.create(options)


@pytest.mark.parametrize(
    ("key", "value"), [("rebuild", "perhaps"), ("max_variants", "0"), ("profiling", "2")]
)
def test_a_value_that_an_option_cannot_have_is_refused(key: str, value: str) -> None:
    with pytest.raises(InvalidArgument, match=key):
        FACTORY.create({key: value})


def test_the_environment_is_left_as_it_was() -> None:
    """A child process looks for drivers itself."""
    assert FACTORY.probe().devices
    assert "ort_lite_icd_" not in os.environ.get("OCL_ICD_VENDORS", "")


def test_a_node_without_kernels_says_why() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Det", ["r"], ["y"], name="det"),
    ]
    proto = model(nodes, [("x", [2, 3, 3])], [("y", [2])])
    session = ort.InferenceSession(proto.SerializeToString(), providers=[OPENCL])
    text = str(session.explain())
    assert "no kernels for ai.onnx:Det" in text


def test_an_index_out_of_range_is_an_error_and_reads_nothing() -> None:
    """And the next run is right."""
    proto = model([helper.make_node("Gather", ["x", "i"], ["y"])], [("x", [4, 3])], [("y", [2, 3])])
    proto.graph.input.append(helper.make_tensor_value_info("i", 7, [2]))
    session = ort.InferenceSession(proto.SerializeToString(), providers=[OPENCL])
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    with pytest.raises(InvalidArgument, match="out of the range"):
        session.run(None, {"x": x, "i": np.array([0, 4])})
    (found,) = session.run(None, {"x": x, "i": np.array([-1, 1])})
    np.testing.assert_array_equal(found, x[[-1, 1]])


def test_programs_for_free_dimensions_are_bounded() -> None:
    session = ort.InferenceSession(
        mlp("n").SerializeToString(), providers=[(OPENCL, {"max_variants": "2"})]
    )
    (part,) = session.explain().partitions
    assert part.ep == OPENCL
    random = np.random.default_rng(0)
    first = {"x": random.standard_normal((3, 4)).astype(np.float32)}
    (right,) = session.run(None, first)
    for rows in (1, 2, 5):
        (found,) = session.run(None, {"x": np.ones((rows, 4), np.float32)})
        assert found.shape == (rows, 3)
    (again,) = session.run(None, first)
    np.testing.assert_array_equal(again, right)


def test_two_eps_keep_their_partitions_in_one_context(tmp_path: Path) -> None:
    """OpenCL, OpenVINO for what has no kernels, the CPU for the rest; reloaded bit for bit."""
    pytest.importorskip("openvino", reason="package openvino is not installed")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
        helper.make_node("Unsqueeze", ["a", "axes"], ["a4"], name="deepen"),
        helper.make_node("GridSample", ["a4", "grid"], ["t4"], name="sample"),
        helper.make_node("Squeeze", ["t4", "axes"], ["t"], name="flatten"),
        helper.make_node("Det", ["t"], ["d"], name="det"),
        helper.make_node("Add", ["t", "d"], ["y"], name="last"),
    ]
    random = np.random.default_rng(1)
    shapes = {"w": (4, 4), "grid": (1, 4, 4, 2)}
    weights = {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    weights["axes"] = np.array([0, 1])
    proto = model(nodes, [("x", [4, 4])], [("y", [4, 4])], weights)
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "c.onnx"))
    eps = [OPENCL, OPENVINO]
    values = feed(proto)
    with ort.InferenceSession(proto.SerializeToString(), options, providers=eps) as session:
        plain = session.run(None, values)
        counts = session.explain().node_counts()
    assert {OPENVINO, OPENCL, "CPUExecutionProvider"} <= set(counts), counts
    assert sorted(p.name for p in tmp_path.glob("*.bin")) == [
        f"c_{OPENCL}.bin",
        f"c_{OPENVINO}.bin",
    ]
    right = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(plain[0], right.run(None, values)[0], rtol=1e-5, atol=1e-6)
    with ort.InferenceSession(tmp_path / "c.onnx", providers=eps) as session:
        for mine, compiled in zip(session.run(None, values), plain, strict=True):
            np.testing.assert_array_equal(mine, compiled)
