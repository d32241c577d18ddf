"""Sessions in contexts and on queues of the program's use the model cache as others do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from small_models import feed, mlp

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.runtime.tensors import ranked_devices

if TYPE_CHECKING:
    from pathlib import Path

cl = pytest.importorskip("pyopencl")
pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
NAME = "OpenCLExecutionProvider"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    return path


def new_context(number: int = 0) -> Any:
    return cl.Context([cl.Device.from_int_ptr(ranked_devices()[number].device.handle)])


def start(source: Path, **handles: Any) -> str:
    """State of the cache after a session with these options, whose numbers are right."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(source.parent / "cache"))
    with ort.InferenceSession(source, options, providers=[(NAME, handles)]) as session:
        (y,) = session.run(None, feed(mlp()))
        assert session.explain().partitions[0].ep == NAME
        state = session.load_report().cache.state
    (expected,) = ReferenceEvaluator(mlp()).run(None, feed(mlp()))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    return state


def test_another_context_of_the_device_is_a_hit(source: Path) -> None:
    first = new_context()
    assert start(source, context=first) == "stored"
    assert start(source, context=new_context()) == "hit"
    assert start(source, context=first) == "hit"
    assert start(source) == "hit", "as without one"


def test_a_queue_is_a_hit_after_a_context(source: Path) -> None:
    context = new_context()
    assert start(source, context=context) == "stored"
    assert start(source, command_queue=cl.CommandQueue(context)) == "hit"


def test_a_context_of_another_device_is_a_miss(source: Path) -> None:
    if len(ranked_devices()) < 2:
        pytest.skip("there is one OpenCL device")
    context, other = new_context(), new_context(1)
    assert start(source, context=context) == "stored"
    assert start(source, context=other) == "stored"
    assert start(source, context=other) == "hit"
    assert start(source, command_queue=cl.CommandQueue(context)) == "hit"


def test_a_context_model_does_not_record_handles(source: Path) -> None:
    """Another process would open a device with a number that means nothing there."""
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    handles = {"context": new_context(), "tuning": "off"}
    ort.InferenceSession(source, options, providers=[(NAME, handles)]).close()
    proto = onnx.load(source.with_name("m_ctx.onnx"))
    notes = [a.s for node in proto.graph.node for a in node.attribute if a.name == "notes"]
    assert [json.loads(text)["options"] for text in notes] == [{"tuning": "off"}]
