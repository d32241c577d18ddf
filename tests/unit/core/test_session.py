"""Sessions: loading, running, and what a user gets wrong."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import branching, feed, mlp, model, sandwich

import ort_lite as ort

if TYPE_CHECKING:
    from pathlib import Path

CPU = ["CPUExecutionProvider"]
OPENVINO = ["OpenVINOExecutionProvider"]


def oracle(proto: onnx.ModelProto, values: dict[str, np.ndarray]) -> list[Any]:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=CPU)
    return session.run(None, values)


@pytest.mark.parametrize("providers", [CPU, OPENVINO], ids=["cpu", "openvino"])
@pytest.mark.parametrize("make", [mlp, sandwich, branching], ids=lambda make: make.__name__)
def test_results_are_those_of_onnxruntime(make: Any, providers: list[str]) -> None:
    proto = make()
    values = feed(proto)
    with ort.InferenceSession(proto.SerializeToString(), providers=providers) as session:
        found = session.run(None, values)
    for mine, theirs in zip(found, oracle(proto, values), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_model_is_loaded_from_a_path_bytes_bytearray_and_memoryview(tmp_path: Path) -> None:
    proto = mlp()
    path = tmp_path / "mlp.onnx"
    path.write_bytes(proto.SerializeToString())
    values = feed(proto)
    sources = [path, str(path), path.read_bytes(), bytearray(path.read_bytes())]
    sources.append(memoryview(path.read_bytes()))
    results = [ort.InferenceSession(s, providers=CPU).run(None, values)[0] for s in sources]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_the_cpu_ep_is_appended_when_it_is_missing() -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=OPENVINO)
    assert session.get_providers() == [*OPENVINO, *CPU]


def test_without_providers_all_installed_ones_are_taken_cpu_last() -> None:
    session = ort.InferenceSession(mlp().SerializeToString())
    assert session.get_providers() == ort.get_available_providers()
    assert session.get_providers()[-1] == CPU[0]


def test_inputs_outputs_and_metadata_are_described_as_onnxruntime_does() -> None:
    proto = mlp("rows")
    helper.set_model_props(proto, {"colour": "blue"})
    data = proto.SerializeToString()
    mine = ort.InferenceSession(data, providers=CPU)
    theirs = onnxruntime.InferenceSession(data, providers=CPU)
    for a, b in zip(
        mine.get_inputs() + mine.get_outputs(),
        theirs.get_inputs() + theirs.get_outputs(),
        strict=True,
    ):
        assert (a.name, a.type, a.shape) == (b.name, b.type, b.shape)
    meta, expected = mine.get_modelmeta(), theirs.get_modelmeta()
    for name in ("producer_name", "graph_name", "domain", "description", "version"):
        assert getattr(meta, name) == getattr(expected, name)
    assert dict(meta.custom_metadata_map) == {"colour": "blue"}


def test_outputs_are_chosen_and_ordered_by_name() -> None:
    proto = model(
        [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])],
        [("x", [2])],
        [("a", [2]), ("b", [2])],
    )
    session = ort.InferenceSession(proto.SerializeToString(), providers=CPU)
    x = np.array([-1, 2], np.float32)
    b, a = session.run(["b", "a"], {"x": x})
    np.testing.assert_array_equal(a, np.abs(x))
    np.testing.assert_array_equal(b, -x)
    with pytest.raises(ort.InvalidArgument, match="Invalid output name:nope"):
        session.run(["nope"], {"x": x})


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({}, ValueError, r"Required inputs \(\['x'\]\) are missing from input feed \(\[\]\)"),
        ({"x": np.zeros((2, 4), np.float32), "z": 1}, ort.InvalidArgument, "Invalid input name: z"),
        (
            {"x": np.zeros((2, 4))},
            ort.InvalidArgument,
            r"Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)",
        ),
        (
            {"x": np.zeros(4, np.float32)},
            ort.InvalidArgument,
            "Invalid rank for input: x Got: 1 Expected: 2",
        ),
        (
            {"x": np.zeros((2, 5), np.float32)},
            ort.InvalidArgument,
            r"Got invalid dimensions for input: x .*\n index: 1 Got: 5 Expected: 4",
        ),
        ({"x": None}, ort.InvalidArgument, "Invalid input: x is None"),
        ({"x": {}}, ort.InvalidArgument, r"Actual: \(dict\)"),
    ],
    ids=["missing", "unknown", "dtype", "rank", "dims", "none", "type"],
)
def test_a_wrong_feed_gives_onnxruntimes_message(
    values: dict[str, Any], error: type[Exception], text: str
) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=CPU)
    with pytest.raises(error, match=text):
        session.run(None, values)


def test_lists_non_contiguous_and_big_endian_arrays_are_accepted() -> None:
    proto = mlp()
    session = ort.InferenceSession(proto.SerializeToString(), providers=OPENVINO)
    x = feed(proto)["x"]
    expected = session.run(None, {"x": x})[0]
    for other in (x.tolist(), np.asfortranarray(x), x.astype(">f4"), x[::-1][::-1]):
        np.testing.assert_array_equal(session.run(None, {"x": other})[0], expected)


def test_an_overridable_initializer_may_be_fed_and_has_its_default() -> None:
    proto = mlp()
    proto.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [3]))
    session = ort.InferenceSession(proto.SerializeToString(), providers=OPENVINO)
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert [i.name for i in session.get_overridable_initializers()] == ["b"]
    values = feed(mlp())
    for extra in ({}, {"b": np.full(3, 9, np.float32)}):
        np.testing.assert_allclose(
            session.run(None, {**values, **extra})[0],
            oracle(proto, {**values, **extra})[0],
            rtol=1e-6,
        )


def test_an_output_that_is_an_input_or_a_constant_is_a_copy() -> None:
    weight = np.arange(3, dtype=np.float32)
    proto = model(
        [helper.make_node("Neg", ["x"], ["y"])],
        [("x", [3])],
        [("y", [3]), ("x", [3]), ("w", [3])],
        {"w": weight},
    )
    session = ort.InferenceSession(proto.SerializeToString(), providers=OPENVINO)
    x = np.ones(3, np.float32)
    _, same, constant = session.run(None, {"x": x})
    assert not np.shares_memory(same, x)
    constant[:] = 5
    np.testing.assert_array_equal(session.run(None, {"x": x})[2], weight)


def test_a_later_run_does_not_change_what_an_earlier_one_gave() -> None:
    proto = mlp()
    session = ort.InferenceSession(proto.SerializeToString(), providers=OPENVINO)
    first = session.run(None, feed(proto, 1))[0]
    kept = first.copy()
    session.run(None, feed(proto, 2))
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("make", [mlp, branching], ids=lambda make: make.__name__)
def test_many_threads_run_one_session(make: Any) -> None:
    proto = make()
    session = ort.InferenceSession(proto.SerializeToString(), providers=OPENVINO)
    feeds = [feed(proto, seed) for seed in range(8)]
    expected = [session.run(None, values)[0] for values in feeds]
    wrong: list[int] = []

    def work(i: int) -> None:
        runs = (session.run(None, feeds[i])[0] for _ in range(20))
        wrong.extend(i for found in runs if not np.array_equal(found, expected[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_explain_says_where_nodes_run_and_why_not_elsewhere() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    session = ort.InferenceSession(sandwich().SerializeToString(), options, providers=OPENVINO)
    report = session.explain()
    assert report.node_counts() == {OPENVINO[0]: 2, CPU[0]: 1}
    assert report.fallen_nodes() == {OPENVINO[0]: {"TopK": 1}}
    assert "equal elements in another order" in str(report)
    assert report.to_json()["schema_version"] == 1


def test_one_warning_tells_what_fell_to_the_cpu(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ort.InferenceSession(sandwich().SerializeToString(), providers=OPENVINO)
    (line,) = [r.getMessage() for r in caplog.records if r.name == "ort_lite.session"]
    assert "1 of 3 nodes run on CPUExecutionProvider" in line
    assert "TopK x1" in line


def test_nothing_is_said_when_everything_runs_where_it_was_asked_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        ort.InferenceSession(mlp().SerializeToString(), providers=OPENVINO)
    assert caplog.records == []


def test_fallback_to_cpu_can_be_forbidden_in_bodies_too() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    data = sandwich().SerializeToString()
    with pytest.raises(ort.Fail, match=r"fallback to CPU EP has been explicitly disabled.*TopK"):
        ort.InferenceSession(data, options, providers=OPENVINO)
    with pytest.raises(ort.InvalidArgument, match="Conflicting session configuration"):
        ort.InferenceSession(data, options, providers=[*OPENVINO, *CPU])
    whole = ort.InferenceSession(mlp().SerializeToString(), options, providers=OPENVINO)
    assert whole.explain().node_counts() == {OPENVINO[0]: 3}


def test_compiling_can_be_forbidden() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_model_compile", "1")
    with pytest.raises(
        ort.ModelRequiresCompilation,
        match="User disabled EP compilation but EP 'OpenVINOExecutionProvider' needs",
    ):
        ort.InferenceSession(mlp().SerializeToString(), options, providers=OPENVINO)
    ort.InferenceSession(mlp().SerializeToString(), options, providers=CPU)


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        (b"", ort.InvalidArgument, "No graph was found in the protobuf"),
        (b"\xff" * 40, ort.InvalidProtobuf, "protobuf parsing failed"),
        (b"hello world, this is no model", ort.InvalidProtobuf, "protobuf parsing failed"),
        (
            "no/such/model.onnx",
            ort.NoSuchFile,
            "Load model no/such/model.onnx failed. File doesn't",
        ),
        (7, TypeError, "Unable to load from type '<class 'int'>'"),
    ],
    ids=["empty", "garbage", "text", "missing", "int"],
)
def test_what_is_no_model_is_refused(source: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ort.InferenceSession(source, providers=CPU)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ort.InvalidArgument, match="is a directory"):
        ort.InferenceSession(tmp_path, providers=CPU)


@pytest.mark.parametrize("error", [ort.InvalidArgument, RuntimeError])
def test_adding_an_unknown_provider_fails_at_once(error: type[Exception]) -> None:
    """In onnxruntime RuntimeError for a name nobody has, INVALID_ARGUMENT for one not built."""
    options = ort.SessionOptions()
    with pytest.raises(error, match=r"Unknown Provider Type: Nope\. Installed:"):
        options.add_provider("Nope")
    assert not options.has_providers()


def test_provider_options_come_both_ways_and_are_told() -> None:
    data = mlp().SerializeToString()
    options = {"num_of_threads": 1}
    for session in (
        ort.InferenceSession(data, providers=[(OPENVINO[0], options)]),
        ort.InferenceSession(data, providers=OPENVINO, provider_options=[options]),
    ):
        assert session.get_provider_options()[OPENVINO[0]] == {"num_of_threads": "1"}


def test_an_unknown_provider_option_lists_the_known_ones() -> None:
    with pytest.raises(
        ort.InvalidArgument, match=r"Invalid provider_option key: foo .*device_type"
    ):
        ort.InferenceSession(mlp().SerializeToString(), providers=[(OPENVINO[0], {"foo": "1"})])


def test_a_closed_session_says_so_and_closes_twice() -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=OPENVINO)
    session.close()
    session.close()
    with pytest.raises(ort.Fail, match="the session is closed"):
        session.run(None, feed(mlp()))
    assert "closed" in repr(session)


def test_terminate_refuses_a_run() -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), providers=CPU)
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(ort.Fail, match="Exiting due to terminate flag being set to true"):
        session.run(None, feed(mlp()), options)


def test_a_free_dimension_is_fixed_by_name() -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("rows", 5)
    session = ort.InferenceSession(mlp("rows").SerializeToString(), options, providers=OPENVINO)
    assert session.get_inputs()[0].shape == [5, 4]
    assert session.run(None, {"x": np.zeros((5, 4), np.float32)})[0].shape == (5, 3)


def test_dynamic_shapes_run_on_openvino() -> None:
    session = ort.InferenceSession(mlp("rows").SerializeToString(), providers=OPENVINO)
    for rows in (1, 7, 2, 0):
        assert session.run(None, {"x": np.zeros((rows, 4), np.float32)})[0].shape == (rows, 3)


def test_an_unknown_operator_is_named() -> None:
    proto = model(
        [helper.make_node("Frobnicate", ["x"], ["y"], name="f")], [("x", [2])], [("y", [2])]
    )
    with pytest.raises(ort.NotImplemented, match=r"Frobnicate\(17\) node with name 'f'"):
        ort.InferenceSession(proto.SerializeToString(), providers=CPU)


def test_external_data_is_mapped_and_must_stay_beside_the_model(tmp_path: Path) -> None:
    proto = mlp()
    values = feed(proto)
    expected = oracle(proto, values)[0]
    onnx.save_model(
        proto, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="w.data"
    )
    for providers in (CPU, OPENVINO):
        session = ort.InferenceSession(tmp_path / "m.onnx", providers=providers)
        np.testing.assert_allclose(session.run(None, values)[0], expected, rtol=1e-6)
    (tmp_path / "w.data").rename(tmp_path / "gone")
    with pytest.raises(ort.Fail, match=r"'w\.data' does not exist"):
        ort.InferenceSession(tmp_path / "m.onnx", providers=CPU)
    (tmp_path / "w.data").write_bytes(b"short")
    with pytest.raises(ort.Fail, match="out of bounds or can not be read in full"):
        ort.InferenceSession(tmp_path / "m.onnx", providers=CPU)


def test_external_data_outside_the_folder_is_refused(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.zeros(4, np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "../secret", "offset": "0", "length": "16"}.items():
        tensor.external_data.add(key=key, value=value)
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], [("x", [4])], [("y", [4])])
    proto.graph.initializer.append(tensor)
    (tmp_path / "inner").mkdir()
    (tmp_path / "secret").write_bytes(bytes(16))
    (tmp_path / "inner" / "m.onnx").write_bytes(proto.SerializeToString())
    said = "External data path validation failed.* escapes the model's folder"
    with pytest.raises(ort.Fail, match=said):
        ort.InferenceSession(tmp_path / "inner" / "m.onnx", providers=CPU)
