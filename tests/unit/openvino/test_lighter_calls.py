"""A small model that has run often goes over from OpenVINO's extension to its C API."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
import pytest
from small_models import layers, mlp

import ort_lite as ort
from eps.openvino.partition import RUNS_BEFORE_IMPORT
from eps.openvino.sdk import c_api
from eps.openvino.sdk.c_runtime import CModel
from eps.openvino.sdk.libraries import c_library
from ort_lite.ep import EPFail, PartitionIo

if TYPE_CHECKING:
    import onnx

pytestmark = pytest.mark.skipif(
    c_library() is None or not openvino.__version__.startswith(c_api.VERSIONS),
    reason=f"OpenVINO {openvino.__version__} goes through its Python extension here",
)

PROVIDERS = ["OpenVINOExecutionProvider"]


def opened(proto: onnx.ModelProto, **options: str) -> tuple[ort.InferenceSession, Any]:
    """A session and its only partition."""
    providers: list[Any] = [(PROVIDERS[0], options)]
    session = ort.InferenceSession(proto.SerializeToString(), providers=providers)
    (part,) = session._present().prepared.partitions
    return session, part.compiled


def rows_of(count: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(count).standard_normal((count, 4)).astype(np.float32)


def test_it_goes_over_after_so_many_runs_and_answers_the_same() -> None:
    session, compiled = opened(mlp())
    x = rows_of(2)
    (first,) = session.run(None, {"x": x})
    for _ in range(RUNS_BEFORE_IMPORT - 2):
        session.run(None, {"x": x})
    assert not isinstance(compiled.model, CModel)
    for _ in range(3):
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], first)
        assert isinstance(compiled.model, CModel)
    with pytest.raises(ort.InvalidArgument):
        session.run(None, {"x": x[:1]})
    assert "on CPU" in session.explain().partitions[0].notes[0]


def test_free_shapes_and_bound_runs_go_over_as_well() -> None:
    session, compiled = opened(mlp("rows"))
    binding = session.io_binding()
    expected = {rows: session.run(None, {"x": rows_of(rows)})[0] for rows in (1, 2, 5)}
    for _ in range(RUNS_BEFORE_IMPORT):
        for rows, answer in expected.items():
            y = np.zeros_like(answer)
            binding.bind_cpu_input("x", rows_of(rows))
            binding.bind_output("y", "cpu", 0, np.float32, list(y.shape), y.ctypes.data)
            session.run_with_iobinding(binding)
            np.testing.assert_array_equal(y, answer)
    assert isinstance(compiled.model, CModel)


def test_threads_that_run_meanwhile_get_right_answers() -> None:
    session, compiled = opened(mlp("rows"))
    expected = [session.run(None, {"x": rows_of(rows)})[0] for rows in range(1, 7)]

    def work(rows: int) -> None:
        for _ in range(RUNS_BEFORE_IMPORT):
            (mine,) = session.run(None, {"x": rows_of(rows)})
            np.testing.assert_array_equal(mine, expected[rows - 1])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(1, 7)))
    assert isinstance(compiled.model, CModel)


def test_what_went_over_is_exported_as_it_was_compiled() -> None:
    session, compiled = opened(mlp())
    x = rows_of(2)
    for _ in range(RUNS_BEFORE_IMPORT):
        (expected,) = session.run(None, {"x": x})
    assert isinstance(compiled.model, CModel)
    # Python 3.13 reports a BytesIO that the garbage collector closes before what views it.
    assert isinstance(compiled.model._payload.obj, bytes)
    prepared = session._present().prepared
    ep: Any = prepared.partitions[0].ep
    blob = io.BytesIO()
    ep.export_model(compiled, blob)
    ports = PartitionIo(inputs=prepared.graph.inputs, outputs=prepared.graph.outputs)
    again = ep.import_model(memoryview(blob.getvalue()), ports)
    np.testing.assert_array_equal(again.run([x])[0], expected)


def test_large_models_and_a_users_properties_stay_with_the_extension() -> None:
    x = np.ones((1, 1100), np.float32)
    wide, compiled = opened(layers(1100))
    assert compiled.import_again is None
    assert wide.run(None, {"x": x})[0].shape == (1, 1100)
    config = '{"CPU": {"PERFORMANCE_HINT": "LATENCY"}}'
    assert opened(mlp(), load_config=config)[1].import_again is None


def test_a_failing_import_leaves_it_where_it_is() -> None:
    session, compiled = opened(mlp())
    asked: list[object] = []

    def fail(model: object) -> None:
        asked.append(model)
        raise EPFail("no")

    compiled.import_again = fail
    (first,) = session.run(None, {"x": rows_of(2)})
    for _ in range(2 * RUNS_BEFORE_IMPORT):
        np.testing.assert_array_equal(session.run(None, {"x": rows_of(2)})[0], first)
    assert asked == [compiled.model]
    assert not isinstance(compiled.model, CModel)
