"""What makes two starts the same to the model cache, and what an inquiry says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from cached_starts import OPENVINO, options, start, store
from npu_ep import NAME as CHIP
from onnx import TensorProto, helper, numpy_helper
from small_models import sandwich

import ort_lite as ort
from ort_lite.ep.kernels import kernel
from ort_lite.model_cache.lookup import look_up
from ort_lite.model_cache.settings import cache_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def changed_provider_option(saved: Path, cache: Path) -> tuple[str, str, Any]:
    return start(saved, cache, [(OPENVINO, {"num_of_threads": "1"})])


def changed_entry(saved: Path, cache: Path) -> tuple[str, str, Any]:
    return start(saved, cache, ep__of_a_vendor="7")


def changed_model(saved: Path, cache: Path) -> tuple[str, str, Any]:
    proto = sandwich()
    proto.graph.initializer[0].raw_data = bytes(len(proto.graph.initializer[0].raw_data))
    saved.write_bytes(proto.SerializeToString())
    return start(saved, cache)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (changed_provider_option, "OpenVINOExecutionProvider.option.num_of_threads is '1'"),
        (changed_entry, "config.ep.of_a_vendor is '7' and was ''"),
        (changed_model, "model is '"),
    ],
)
def test_each_part_of_the_identity_makes_a_miss_that_says_so(
    saved: Path,
    cache: Path,
    change: Callable[[Path, Path], tuple[str, str, Any]],
    named: str,
) -> None:
    start(saved, cache)
    state, reason, _ = change(saved, cache)
    assert state == "stored"
    assert named in reason
    assert len(store(cache).entry_keys()) == 2
    assert change(saved, cache)[0] == "hit"


@pytest.mark.parametrize(
    "key",
    [
        "session.record_ep_graph_assignment_info",
        "session.intra_op.allow_spinning",
        "session.inter_op.allow_spinning",
        "session.require_payload_digest",
    ],
)
def test_entries_that_change_nothing_compiled_make_no_miss(
    saved: Path, cache: Path, key: str
) -> None:
    assert start(saved, cache)[0] == "stored"
    assert start(saved, cache, **{key: "1"})[0] == "hit"


def test_severities_of_logs_and_profiles_make_no_miss(saved: Path, cache: Path) -> None:
    assert start(saved, cache)[0] == "stored"
    made = options(cache)
    made.log_severity_level, made.log_verbosity_level, made.logid = 3, 4, "another"
    made.enable_profiling, made.profile_file_prefix = True, str(cache / "profile")
    with ort.InferenceSession(saved, made, providers=[OPENVINO]) as session:
        assert session.load_report().cache.state == "hit"


def test_an_inquiry_says_where_nobody_keeps_anything(saved: Path, cache: Path) -> None:
    start(saved, cache)
    made = options(cache)
    settings = cache_settings(made.config, {})
    found = look_up(saved, made, ["CPUExecutionProvider"], settings)
    assert (found.hit, found.reason) == (False, "no compiled model is kept by CPUExecutionProvider")


@pytest.fixture
def chip() -> Iterator[str]:
    """The name of an execution provider with an NPU and a GPU."""
    ort.register_execution_provider_library("chip", "npu_ep:FACTORY")
    yield CHIP
    ort.unregister_execution_provider_library("chip")


def by_policy(made: ort.SessionOptions) -> None:
    made.set_provider_selection_policy(ort.OrtExecutionProviderDevicePolicy.PREFER_NPU)


def by_delegate(made: ort.SessionOptions) -> None:
    made.set_provider_selection_policy_delegate(
        lambda devices, metadata, _runtime, _most: [
            d for d in devices if metadata["producer_name"] == "tests" and d.ep_name == CHIP
        ][-1:]
    )


def by_threads(made: ort.SessionOptions) -> None:
    made.add_provider(OPENVINO)
    made.intra_op_num_threads = 1


@pytest.mark.usefixtures("chip")
@pytest.mark.parametrize("choose", [by_policy, by_delegate, by_threads])
def test_an_inquiry_opens_what_the_session_opened(
    saved: Path, cache: Path, choose: Callable[[ort.SessionOptions], None]
) -> None:
    made = options(cache)
    choose(made)
    settings = cache_settings(made.config, {})
    assert not look_up(saved, made, None, settings).hit
    with ort.InferenceSession(saved, made) as session:
        assert session.load_report().cache.state == "stored"
    found = look_up(saved, made, None, settings)
    assert (found.hit, found.reason) == (True, "")
    assert not look_up(saved, options(cache), [OPENVINO], settings).hit
    assert made.has_providers() == (choose is by_threads)


def test_external_data_is_part_of_the_identity(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(sandwich(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert start(path, cache)[0] == "stored"
    assert start(path, cache)[0] == "hit"
    weights = bytearray((tmp_path / "w.bin").read_bytes())
    weights[3] ^= 1
    (tmp_path / "w.bin").write_bytes(weights)
    assert start(path, cache)[0] == "stored"


def test_what_has_no_digest_goes_around_the_cache(cache: Path) -> None:
    """A constant that a kernel of the user's own computed is not for sessions without it."""
    exp = helper.make_node("Exp", ["a"], ["c"])
    product = helper.make_node("Mul", ["x", "c"], ["y"])
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in ("x", "y")]
    ones = numpy_helper.from_array(np.ones(2, np.float32), "a")
    graph = helper.make_graph([exp, product], "folded", ends[:1], ends[1:], [ones])
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    made = options(cache)
    made.register_custom_kernel(kernel("Exp", since=(13, 13))(lambda _info: lambda x: x + 6))
    x = {"x": np.ones(2, np.float32)}
    with ort.InferenceSession(model, made, providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, x)[0], [7, 7])
        found = session.load_report().cache
    assert (found.state, found.reason) == ("off", "kernels are registered")
    with ort.InferenceSession(model, options(cache), providers=[OPENVINO]) as session:
        np.testing.assert_allclose(session.run(None, x)[0], [np.e, np.e], rtol=1e-6)
        assert session.load_report().cache.state == "stored"
    told = look_up(cache, made, [OPENVINO], cache_settings(made.config, {}))
    assert not told.hit
    assert "kernels are registered" in told.reason
