"""OpenVINO answers the same through its C API as through its Python extension."""

from __future__ import annotations

import gc
import io
import mmap
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
import pytest
from busy_threads import wrongly_answered
from context_models import compile_context
from openvino import opset13 as ops
from small_models import feed, mlp

import ort_lite as ort
from eps.openvino.options import import_config, parse_options
from eps.openvino.sdk import c_api
from eps.openvino.sdk import runtime_choice as sdk
from eps.openvino.sdk.binding import BindingRuntime
from eps.openvino.sdk.libraries import c_library
from eps.openvino.sdk.runtime_choice import Sdk
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eps.openvino.sdk.runtime import Runtime, RuntimeModel
    from ort_lite.ep.ports import Port

pytestmark = pytest.mark.skipif(
    c_library() is None or not openvino.__version__.startswith(c_api.VERSIONS),
    reason=f"OpenVINO {openvino.__version__} goes through its Python extension here",
)

OPTIONS = parse_options({})
CONFIG = import_config(OPTIONS)
TYPES = ("boolean", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 0, 3), (1, 2, 3, 4))


@pytest.fixture(scope="module")
def runtimes() -> tuple[Runtime, Runtime]:
    through_c = Sdk(OPTIONS).runtime
    assert type(through_c).__name__ == "CRuntime"
    return through_c, BindingRuntime(openvino.Core())


def payload_of(inputs: Sequence[Any], outputs: Sequence[Any]) -> memoryview:
    """A blob, which has a constant: the C API takes none without."""
    constant = ops.relu(ops.constant(np.full(7, 5.0, np.float32)))
    model = openvino.Model([*outputs, constant], list(inputs))
    out = openvino.Core().compile_model(model, "CPU", CONFIG).export_model()
    return memoryview(out.getvalue())


def imported(runtimes: tuple[Runtime, Runtime], payload: memoryview) -> list[RuntimeModel]:
    return [runtime.import_model(payload, "CPU", CONFIG) for runtime in runtimes]


def twice(shape: Sequence[int], kind: str) -> memoryview:
    """y holds x twice; a scalar becomes two elements."""
    x = ops.parameter(list(shape), getattr(openvino.Type, kind), name="x")
    flat = ops.reshape(x, np.array([1, -1]), special_zero=False) if not shape else x
    y = ops.concat([flat, flat], 0)
    x.output(0).set_names({"x"})
    y.output(0).set_names({"y"})
    return payload_of([x], [y])


def answer(
    model: RuntimeModel, *values: np.ndarray[Any, Any], lent: bool
) -> list[np.ndarray[Any, Any]]:
    request = model.request()
    kept = []
    for index, (value, port) in enumerate(zip(values, model.inputs.all, strict=True)):
        if lent or not port.is_static:
            kept.append(request.set_input_zero_copy(index, value))
        else:
            request.input_view(index, port)[...] = value
    return list(request.infer())


def drawn(shape: Sequence[int], kind: str) -> np.ndarray[Any, Any]:
    dtype = np.bool_ if kind == "boolean" else np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")
    values = np.random.default_rng(3).integers(0, 2 if kind == "boolean" else 100, shape)
    return np.asarray(values).astype(dtype)


def described(ports: Sequence[Port]) -> list[tuple[int, Any]]:
    return [(port.data_type, port.shape) for port in ports]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("lent", [False, True])
def test_every_type_and_shape_goes_in_and_comes_out(
    runtimes: tuple[Runtime, Runtime], kind: str, *, lent: bool
) -> None:
    for shape in SHAPES:
        value = drawn(shape, kind)
        mine, theirs = imported(runtimes, twice(shape, kind))
        assert (
            described(mine.inputs.all)
            == described(theirs.inputs.all)
            == [(c_api.DATA_TYPES[kind], shape)]
        )
        assert described(mine.outputs.all) == described(theirs.outputs.all)
        (found, _), (expected, _) = (answer(model, value, lent=lent) for model in (mine, theirs))
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(found.ravel(), np.tile(value.ravel(), 2))


@pytest.mark.parametrize("shape", [[-1, 3], [openvino.Dimension(1, 8), 3]])
def test_free_dimensions_are_told_and_filled(runtimes: tuple[Runtime, Runtime], shape: Any) -> None:
    x = ops.parameter(openvino.PartialShape(shape), openvino.Type.f32)
    payload = payload_of([x], [ops.relu(x)])
    mine, theirs = imported(runtimes, payload)
    assert described(mine.inputs.all) == described(theirs.inputs.all)
    assert mine.inputs.all[0].shape == (None, 3)
    for rows in (1, 5, 2, 8):
        value = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) - 4
        (found, _), (expected, _) = (answer(model, value, lent=True) for model in (mine, theirs))
        assert found.shape == expected.shape == (rows, 3)
        np.testing.assert_array_equal(found, np.maximum(value, 0))


def test_outputs_whose_size_the_values_decide(runtimes: tuple[Runtime, Runtime]) -> None:
    x = ops.parameter([4], openvino.Type.f32)
    mine, theirs = imported(runtimes, payload_of([x], [ops.non_zero(x)]))
    for value in ([0, 0, 0, 0], [1, 0, 2, 0], [1, 1, 1, 1]):
        array = np.array(value, np.float32)
        (found, _), (expected, _) = (answer(model, array, lent=False) for model in (mine, theirs))
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


def test_a_port_is_found_under_each_of_its_names(runtimes: tuple[Runtime, Runtime]) -> None:
    a, b = (ops.parameter([2], openvino.Type.f32) for _ in range(2))
    a.output(0).set_names({"a", "alpha", "\u03b1"})
    b.output(0).set_names({"b"})
    total = ops.add(a, b)
    total.output(0).set_names({"y", "total"})
    for model in imported(runtimes, payload_of([a, b], [total])):
        for name, index in (("a", 0), ("alpha", 0), ("\u03b1", 0), ("b", 1)):
            assert model.inputs.index_of(name) == index
        assert model.outputs.index_of("total") == model.outputs.index_of("y") == 0
        assert model.inputs.index_of("c") is model.outputs.index_of("a") is None


@pytest.mark.parametrize(
    "key",
    [
        *("PERFORMANCE_HINT", "EXECUTION_MODE_HINT", "INFERENCE_PRECISION_HINT"),
        *("INFERENCE_NUM_THREADS", "NUM_STREAMS", "EXECUTION_DEVICES", "RUNTIME_REQUIREMENTS"),
        "DYNAMIC_QUANTIZATION_GROUP_SIZE",
    ],
)
@pytest.mark.parametrize("given", [{}, {"num_of_threads": "1", "num_streams": "1"}])
def test_properties_of_an_imported_model_are_the_same(given: dict[str, str], key: str) -> None:
    options = parse_options(given)
    config = import_config(options)
    payload = twice((2, 3), "f32")
    found = [
        runtime.import_model(payload, "CPU", config).property(key)
        for runtime in (Sdk(options).runtime, BindingRuntime(openvino.Core()))
    ]
    assert found[0] == _as_cpp_spells(found[1])


def test_a_core_stays_for_the_next_session_with_its_properties() -> None:
    library = c_library()
    assert library is not None
    api = c_api.open_library(library)
    core = c_api.core_with(api, "CPU", CONFIG)
    assert c_api.core_with(api, "CPU", dict(CONFIG)) is core
    assert c_api.core_with(api, "CPU", {**CONFIG, "NUM_STREAMS": 3}) is not core


def _as_cpp_spells(text: str) -> str:
    """`Mode.ACCURACY` and `<Type: 'float32'>` of the extension's without what is around them."""
    return {"<Type: 'float32'>": "f32", "<Type: 'dynamic'>": "dynamic"}.get(
        text, text.rpartition("Mode.")[2]
    )


def test_devices_and_version_are_the_same(runtimes: tuple[Runtime, Runtime]) -> None:
    mine, theirs = runtimes
    assert mine.version == theirs.version == openvino.__version__
    assert list(mine.available_devices()) == list(theirs.available_devices())
    for key in ("FULL_DEVICE_NAME", "DEVICE_ARCHITECTURE", "NO_SUCH_PROPERTY"):
        assert mine.property("CPU", key) == theirs.property("CPU", key)
    assert mine.property("CPU", "NO_SUCH_PROPERTY") is None
    assert mine.property("NO_SUCH_DEVICE", "FULL_DEVICE_NAME") is None


@pytest.mark.parametrize("change", ["empty", "garbage", "truncated", "version"])
def test_a_payload_that_is_none_is_an_error_with_openvinos_text(
    runtimes: tuple[Runtime, Runtime], change: str
) -> None:
    whole = bytes(twice((2, 3), "f32"))
    payload = {
        "empty": b"\0",
        "garbage": bytes(range(256)) * 8,
        "truncated": whole[: len(whole) // 2],
        "version": whole.replace(b"ov=20", b"ov=19", 1),
    }[change]
    texts = []
    for runtime in runtimes:
        with pytest.raises(SDK_ERRORS) as raised:
            runtime.import_model(memoryview(payload), "CPU", CONFIG)
        texts.append(sdk_text(raised.value))
    assert all(texts)


def test_a_wrong_shape_is_an_error_and_the_request_goes_on(
    runtimes: tuple[Runtime, Runtime],
) -> None:
    mine, _ = imported(runtimes, twice((2, 3), "f32"))
    request = mine.request()
    with pytest.raises(SDK_ERRORS, match="shape"):
        request.set_input_zero_copy(0, np.ones((4, 5), np.float32))
    value = np.ones((2, 3), np.float32)
    request.set_input_zero_copy(0, value)
    assert request.infer()[0].tolist() == [[1.0] * 3] * 4


def test_a_payload_without_constants_is_imported_too() -> None:
    x = ops.parameter([2], openvino.Type.f32)
    compiled = openvino.Core().compile_model(openvino.Model([ops.relu(x)], [x]), "CPU", CONFIG)
    payload = memoryview(compiled.export_model().getvalue())
    opened = Sdk(OPTIONS)
    assert opened.importer(twice((2,), "f32"), CONFIG) is opened.runtime
    found = opened.importer(payload, CONFIG).import_model(payload, "CPU", CONFIG)
    assert answer(found, np.array([-1, 1], np.float32), lent=False)[0].tolist() == [0, 1]


def test_what_was_imported_is_exported_as_it_was(runtimes: tuple[Runtime, Runtime]) -> None:
    payload = twice((2, 3), "f32")
    out = io.BytesIO()
    imported(runtimes, payload)[0].export(out)
    assert out.getvalue() == payload


def test_results_stay_and_a_map_lives_as_long_as_a_request(
    runtimes: tuple[Runtime, Runtime], tmp_path: Path
) -> None:
    path = tmp_path / "payload"
    path.write_bytes(twice((2, 3), "f32"))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    model = runtimes[0].import_model(memoryview(mapped), "CPU", CONFIG)
    request, port = model.request(), model.inputs.all[0]
    del model
    gc.collect()
    with pytest.raises(BufferError):
        mapped.close()
    own = request.input_view(0, port)
    own[...] = 1
    first = request.infer()[0]
    own[...] = 2
    assert request.infer()[0].max() == 2
    assert first.max() == 1
    del request, own
    gc.collect()
    mapped.close()


def test_threads_have_requests_of_their_own(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp("rows"), feed(mlp("rows")), embed=False)
    session = made.load()
    partition: Any = session._present().prepared.partitions[0].compiled
    assert type(partition.model).__name__ == "CModel"
    assert wrongly_answered(session) == []


@pytest.mark.parametrize("reason", ["version", "library", "load_config", "device"])
def test_the_extension_is_used_where_the_c_api_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, reason: str
) -> None:
    given = {
        "load_config": {"load_config": '{"CPU": {"INFERENCE_NUM_THREADS": 1}}'},
        "device": {"device_type": "HETERO:CPU"},
    }.get(reason, {})
    if reason == "version":
        monkeypatch.setattr(sdk, "VERSIONS", ("1999.",))
    if reason == "library":
        (tmp_path / "libopenvino_c.so.1").write_bytes(b"no library")
        monkeypatch.setattr(sdk, "c_library", lambda: tmp_path / "libopenvino_c.so.1")
    opened = Sdk(parse_options(given))
    assert type(opened.runtime).__name__ == "BindingRuntime"
    opened.release()
    with pytest.raises(ort.EPFail, match="after it was released"):
        _ = opened.runtime


def test_a_library_that_lacks_a_function_is_none_of_openvinos() -> None:
    import _ctypes  # noqa: PLC0415 - any shared library will do

    path = getattr(_ctypes, "__file__", None) or sys.executable
    with pytest.raises(OSError, match="has no function ov_"):
        c_api.CApi(path)
