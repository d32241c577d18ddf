"""Members that onnxruntime keeps for itself: those of a session answer as onnxruntime's do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.capi import _pybind_state as theirs
from small_models import model
from stand_in_programs import stand_in

import ort_lite
from ort_lite import InferenceSession
from ort_lite.capi import _pybind_state as ours
from ort_lite.capi.binding_session import InferenceSession as BindingSession

if TYPE_CHECKING:
    from pathlib import Path

CPU = "CPUExecutionProvider"
FEED = {"x": np.float32([1, 2])}


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "add.onnx"
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    weights = {"w": np.float32([3, 4])}
    onnx.save(model([node], [("x", [2])], [("y", [2])], weights), path)
    return path


def plain(value: Any) -> Any:
    """What can be compared of a value of either library."""
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    if hasattr(value, "shape") and hasattr(value, "name"):
        return value.name, value.type, value.shape
    if hasattr(value, "producer_name"):
        return value.producer_name, value.graph_name, value.version
    return value


@pytest.mark.parametrize(
    "name",
    [
        "_model_path",
        "_model_bytes",
        "_providers",
        "_provider_options",
        "_inputs_meta",
        "_outputs_meta",
        "_overridable_initializers",
        "_model_meta",
        "_fallback_providers",
        "_profiling_start_time_ns",
    ],
)
def test_a_private_member_is_what_onnxruntime_has(model_file: Path, name: str) -> None:
    data = model_file.read_bytes()
    for source in (str(model_file), data):
        with InferenceSession(source, providers=[CPU]) as session:
            found = plain(getattr(session, name))
        expected = onnxruntime.InferenceSession(source, providers=[CPU])
        assert found == plain(getattr(expected, name))


def test_the_path_of_a_session_is_text(model_file: Path) -> None:
    with InferenceSession(model_file, providers=[CPU]) as session:
        assert session._model_path == str(model_file)


def test_the_options_of_a_session_have_their_private_names(model_file: Path) -> None:
    options = ort_lite.SessionOptions()
    options.logid = "mine"
    with InferenceSession(model_file, options, providers=[CPU]) as session:
        assert session._sess_options.logid == session._sess_options_initial.logid == "mine"


def test_resetting_a_session_sets_its_providers(model_file: Path) -> None:
    with InferenceSession(model_file) as session:
        session._reset_session([CPU], None)
        assert session.get_providers() == [CPU]


def test_missing_inputs_are_named_before_a_run(model_file: Path) -> None:
    with InferenceSession(model_file, providers=[CPU]) as session:
        session._validate_input(["x"])
        with pytest.raises(ValueError, match=r"Required inputs \(\['x'\]\) are missing"):
            session._validate_input([])


def test_the_binding_s_face_of_a_session_stays_one_object(model_file: Path) -> None:
    with InferenceSession(model_file, providers=[CPU]) as session:
        face = session._sess
        assert session._sess is face
        assert isinstance(face, ours.InferenceSession)
        assert face.run(["y"], FEED, None)[0].tolist() == [4, 6]


@pytest.mark.parametrize("name", ["inputs_meta", "outputs_meta", "overridable_initializers"])
def test_the_binding_s_face_describes_the_model_as_onnxruntime_s(
    model_file: Path, name: str
) -> None:
    expected = onnxruntime.InferenceSession(model_file, providers=[CPU])
    with InferenceSession(model_file, providers=[CPU]) as session:
        assert plain(getattr(session._sess, name)) == plain(getattr(expected._sess, name))
        assert session._sess.get_providers() == expected._sess.get_providers()
        assert session._sess.model_meta.producer_name == "tests"
        assert session._sess.session_options.logid == ""
        assert session._sess.get_profiling_start_time_ns == 0
        assert len(session._sess.input_meminfos) == len(session._sess.output_meminfos) == 1


@pytest.mark.parametrize("from_bytes", [False, True])
def test_a_session_of_the_binding_is_made_in_two_steps(
    model_file: Path, *, from_bytes: bool
) -> None:
    source = model_file.read_bytes() if from_bytes else str(model_file)
    for binding in (ours, theirs):
        options = binding.SessionOptions()
        session = binding.InferenceSession(options, source, not from_bytes, False)  # noqa: FBT003 - the binding's
        session.initialize_session([CPU], [{}], set())
        assert session.run(["y"], FEED, None)[0].tolist() == [4, 6]
        assert session.get_providers() == [CPU]


def test_values_are_run_by_the_binding_s_face_with_the_feed_first(model_file: Path) -> None:
    for package, run_options in ((ort_lite, ort_lite.RunOptions()), (onnxruntime, None)):
        session = package.InferenceSession(model_file, providers=[CPU])
        value = package.OrtValue.ortvalue_from_numpy(FEED["x"])
        feed = {"x": value._get_c_value()}
        (found,) = session._sess.run_with_ort_values(feed, ["y"], run_options)
        assert found.numpy().tolist() == [4, 6]


def test_memory_is_bound_to_the_binding_s_face(model_file: Path) -> None:
    for package in (ort_lite, onnxruntime):
        session = package.InferenceSession(model_file, providers=[CPU])
        binding = package.capi._pybind_state.SessionIOBinding(session._sess)
        binding.bind_input("x", FEED["x"])
        device = package.OrtDevice.make("cpu", 0)
        binding.bind_output("y", getattr(device, "_get_c_device", lambda d=device: d)())
        session._sess.run_with_iobinding(binding, None)
        assert binding.copy_outputs_to_cpu()[0].tolist() == [4, 6]


def test_a_session_of_the_binding_that_is_not_initialized_says_so(model_file: Path) -> None:
    session = BindingSession(ort_lite.SessionOptions(), str(model_file))
    with pytest.raises(ort_lite.Fail, match="call initialize_session first"):
        session.run(["y"], FEED, None)


def test_an_unknown_name_of_the_binding_s_face_is_an_attribute_error(model_file: Path) -> None:
    with InferenceSession(model_file, providers=[CPU]) as session:
        assert not hasattr(session._sess, "get_inputs")
        assert "get_providers" in dir(session._sess)


def test_the_stand_in_has_one_class_of_the_binding(model_file: Path) -> None:
    """It makes the stand-in's sessions, so that the outside's providers hold there, too."""
    code = (
        "import onnxruntime, sys\nfrom onnxruntime.capi import _pybind_state as C\n"
        "session = onnxruntime.InferenceSession(sys.argv[1])\n"
        "print(isinstance(session._sess, C.InferenceSession))\n"
        "made = C.InferenceSession(C.SessionOptions(), sys.argv[1], True, False)\n"
        "made.initialize_session(['CPUExecutionProvider'], [{}], set())\n"
        "print(made.get_providers()[0], type(made.session) is onnxruntime.InferenceSession)"
    )
    one, made = stand_in("--providers", "openvino", "-c", code, model_file).stdout.splitlines()
    assert (one, made) == ("True", "OpenVINOExecutionProvider True")
