"""Providers that are not here: what onnxruntime does, and no silence about it."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from context_models import OPENVINO
from failing_eps import (
    ABSENT_NAME,
    DEAD_NAME,
    LOST,
    LOST_NAME,
    NO_DEVICE,
    NO_SDK,
)
from small_models import feed, mlp

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
NOBODY = "NobodysExecutionProvider"
DATA = mlp().SerializeToString()


@pytest.fixture
def failing() -> Iterator[None]:
    """The execution providers of failing_eps, for the time of one test."""
    factories = {"absent": "ABSENT", "dead": "DEAD", "lost": "LOST_FACTORY"}
    for key, factory in factories.items():
        ort.register_execution_provider_library(key, f"failing_eps:{factory}")
    yield
    for key in factories:
        ort.unregister_execution_provider_library(key)


def made_by(module: Any, capsys: pytest.CaptureFixture[str], **arguments: Any) -> dict[str, Any]:
    """What a session of these arguments runs on, prints, warns and raises."""
    capsys.readouterr()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = module.InferenceSession(DATA, **arguments).get_providers()
        except (ValueError, RuntimeError) as exc:
            found = type(exc)
    written = capsys.readouterr()
    text = (
        written.out if module is onnxruntime else written.err
    )  # see ort_lite/providers/fallback.py
    printed = [line for line in text.splitlines() if line.startswith("Falling")]
    words = {str(one.message).partition(" provider names")[0] for one in caught}
    expected = ("Specified provider", "Duplicate provider")
    return {
        "found": RuntimeError if found is ort.status.UnknownProvider else found,
        "printed": printed,
        "warned": {word for word in words if word.startswith(expected)},
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"providers": [CUDA, CPU]},
        {"providers": [CUDA]},
        {"providers": [(CUDA, {"device_id": 3}), CPU]},
        {"providers": [CUDA], "provider_options": [{"device_id": 0}]},
        {"providers": [CUDA], "enable_fallback": 0},
        {"providers": ["TensorrtExecutionProvider", CUDA, CPU]},
        {"providers": [NOBODY]},
        {"providers": [NOBODY], "enable_fallback": True},
        {"providers": [NOBODY, CPU], "enable_fallback": 0},
        {"providers": [CPU, CPU]},
        {"providers": (CPU,)},
        {"providers": {CPU}},
        {"providers": {CPU}, "enable_fallback": False},
        {"providers": [(CPU, None)]},
        {"providers": [7], "enable_fallback": False},
        {"providers": [CPU], "provider_options": [{}, {}]},
        {"providers": [CPU], "provider_options": [{}, {}], "enable_fallback": 0},
        {"providers": [(CPU, {})], "provider_options": [{}]},
        {"providers": [CPU], "provider_options": [3], "enable_fallback": 0},
        {"providers": [CPU], "provider_options": 3, "enable_fallback": 0},
        {"providers": [(CPU, {"arena_extend_strategy": "kSameAsRequested", "use_arena": 1})]},
        {"providers": [CPU], "nobody": 1, "knows": 2},
    ],
    ids=str,
)
def test_a_session_is_made_as_by_onnxruntime(
    arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = made_by(onnxruntime, capsys, **arguments)
    assert made_by(ort, capsys, **arguments) == expected


def test_the_warning_names_what_is_missing_and_what_runs_instead() -> None:
    with pytest.warns(UserWarning, match="CUDA") as caught:
        session = ort.InferenceSession(DATA, providers=[CUDA, OPENVINO])
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith(f"Specified provider '{CUDA}' is not in available provider names. ")
    assert text.endswith(f"The session goes on with: {OPENVINO}, {CPU}.")
    assert warning.filename == __file__
    assert session.get_providers() == [OPENVINO, CPU]
    assert any(CUDA in note for note in session.explain().notes)


def test_a_provider_without_its_sdk_is_not_available_and_a_warning(failing: None) -> None:
    assert ABSENT_NAME in ort.get_all_providers()
    assert ABSENT_NAME not in ort.get_available_providers()
    with pytest.warns(UserWarning, match=f"{NO_SDK}. The session goes on with: {CPU}"):
        session = ort.InferenceSession(DATA, providers=[ABSENT_NAME], enable_fallback=0)
    assert session.get_providers() == [CPU]
    with pytest.raises(ort.InvalidArgument, match=f"Failed to add provider of type.*{NO_SDK}"):
        ort.SessionOptions().add_provider(ABSENT_NAME, {})


def test_a_provider_that_cannot_be_opened_is_printed_and_left_out(
    failing: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(UserWarning, match=f"{DEAD_NAME} cannot be opened: {NO_DEVICE}"):
        session = ort.InferenceSession(DATA, providers=[DEAD_NAME, OPENVINO])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "*************** EP Error ***************"
    assert lines[1].startswith("EP Error [ONNXRuntimeError] : 11 : EP_FAIL : ")
    assert lines[2] == f"Falling back to ['{OPENVINO}', '{CPU}'] and retrying."
    assert session.get_providers() == [OPENVINO, CPU]
    assert any(NO_DEVICE in note for note in session.explain().notes)


def test_a_provider_that_cannot_be_opened_is_an_error_without_fallback(failing: None) -> None:
    with pytest.raises(ort.EPFail, match=NO_DEVICE):
        ort.InferenceSession(DATA, providers=[DEAD_NAME], enable_fallback=0)
    with ort.InferenceSession(DATA, providers=[CPU]) as session:
        with pytest.raises(ort.EPFail, match=NO_DEVICE):
            session.set_providers([DEAD_NAME])
        assert session.get_providers() == []


def test_set_providers_warns_of_known_names_and_refuses_others() -> None:
    for module in (onnxruntime, ort):
        session = module.InferenceSession(DATA, providers=[CPU])
        with pytest.warns(UserWarning, match=f"'{CUDA}' is not in available provider names"):
            session.set_providers([CUDA])
        assert session.get_providers() == [CPU]
        with (
            pytest.warns(UserWarning, match=NOBODY),
            pytest.raises(RuntimeError, match=f"Unknown Provider Type: {NOBODY}"),
        ):
            session.set_providers([NOBODY])


def test_one_string_is_one_provider() -> None:
    assert ort.InferenceSession(DATA, providers=OPENVINO).get_providers() == [OPENVINO, CPU]


@pytest.mark.parametrize("module", [onnxruntime, ort])
def test_adding_a_provider_that_is_not_here_fails_at_once(module: Any) -> None:
    options = module.SessionOptions()
    refused = module.capi.onnxruntime_pybind11_state.InvalidArgument
    with pytest.raises(RuntimeError, match=f"Unknown Provider Type: {NOBODY}"):
        options.add_provider(NOBODY, {})
    with pytest.raises(refused, match=f"Failed to add provider of type '{CUDA}' to SessionOptions"):
        options.add_provider(CUDA, {})
    assert not options.has_providers()


def test_all_providers_are_those_of_onnxruntime_and_ours() -> None:
    ours = ort.get_all_providers()
    assert [name for name in ours if name in onnxruntime.get_all_providers()] == (
        onnxruntime.get_all_providers()
    )
    assert set(ort.get_available_providers()) <= set(ours)
    assert "OpenCLExecutionProvider" in ours


def test_a_context_for_a_provider_that_is_not_here_is_an_error(
    tmp_path: Path, failing: None
) -> None:
    options = ort.SessionOptions()
    options.add_provider(LOST_NAME, {})
    path = tmp_path / "m_ctx.onnx"
    ort.ModelCompiler(options, DATA).compile_to_file(path)
    ort.unregister_execution_provider_library("lost")
    try:
        with (
            pytest.warns(UserWarning, match=LOST_NAME),
            pytest.raises(ort.NotImplemented, match=LOST_NAME),
        ):
            ort.InferenceSession(path, providers=[LOST_NAME])
    finally:
        ort.register_execution_provider_library("lost", "failing_eps:LOST_FACTORY")


def test_a_run_that_fails_goes_on_with_the_cpu_ep_and_says_so(
    failing: None, capsys: pytest.CaptureFixture[str]
) -> None:
    values = feed(mlp())
    expected = ort.InferenceSession(DATA, providers=[CPU]).run(None, values)
    session = ort.InferenceSession(DATA, providers=[LOST_NAME])
    with pytest.warns(UserWarning, match=f"a run on {LOST_NAME}, {CPU} failed: {LOST}"):
        found = session.run(None, values)
    np.testing.assert_array_equal(found[0], expected[0])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("EP Error: [ONNXRuntimeError] : 11 : EP_FAIL : ")
    assert lines[1] == f"Falling back to ['{CPU}'] and retrying."
    assert session.get_providers() == [CPU]
    assert any(LOST in note for note in session.explain().notes)
    np.testing.assert_array_equal(session.run(None, values)[0], expected[0])
    session.close()


def test_a_run_that_fails_is_an_error_without_fallback(failing: None) -> None:
    session = ort.InferenceSession(DATA, providers=[LOST_NAME])
    session.disable_fallback()
    with pytest.raises(ort.EPFail, match=LOST):
        session.run(None, feed(mlp()))
    assert session.get_providers() == [LOST_NAME, CPU]


def test_a_run_does_not_go_on_with_a_model_that_was_saved_over(
    tmp_path: Path, failing: None
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(DATA)
    session = ort.InferenceSession(path, providers=[LOST_NAME])
    path.write_bytes(DATA)
    with pytest.raises(ort.EPFail, match=f"{LOST}.*have changed since it was loaded"):
        session.run(None, feed(mlp()))
    assert session.get_providers() == [LOST_NAME, CPU]


def test_a_run_of_a_context_does_not_go_on_elsewhere(tmp_path: Path, failing: None) -> None:
    options = ort.SessionOptions()
    options.add_provider(LOST_NAME, {})
    path = tmp_path / "m_ctx.onnx"
    ort.ModelCompiler(options, DATA).compile_to_file(path)
    session = ort.InferenceSession(path, providers=[LOST_NAME])
    with pytest.raises(ort.EPFail, match=LOST) as error:
        session.run(None, feed(mlp()))
    assert isinstance(error.value.__cause__, ort.NotImplemented)
    assert session.get_providers() == [LOST_NAME, CPU]


def test_threads_whose_runs_fail_together_all_get_their_results(failing: None) -> None:
    values = feed(mlp())
    expected = ort.InferenceSession(DATA, providers=[CPU]).run(None, values)[0]
    session = ort.InferenceSession(DATA, providers=[LOST_NAME])
    results: list[Any] = []
    together = threading.Barrier(4)

    def run() -> None:
        together.wait()
        results.append(session.run(None, values)[0])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, expected)
    assert len([one for one in caught if LOST in str(one.message)]) == 1


def test_a_child_process_that_asks_for_a_missing_provider_is_warned_at_its_own_line() -> None:
    code = f"import ort_lite as ort\nort.InferenceSession({DATA!r}, providers=['{CUDA}'])\n"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.startswith(f"<string>:2: UserWarning: Specified provider '{CUDA}'")


def test_the_cpu_ep_ignores_options_with_a_line_and_keeps_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"arena_extend_strategy": "kSameAsRequested", "intra_op_num_threads": 1}
    with caplog.at_level("DEBUG", logger="ort_lite"):
        session = ort.InferenceSession(DATA, providers=[(CPU, options)])
    assert session.get_provider_options() == {CPU: {"intra_op_num_threads": "1"}}
    lines = [line for line in caplog.messages if "arena_extend_strategy" in line]
    assert lines == [f"{CPU} has no options arena_extend_strategy, and ignores them"]


@pytest.mark.parametrize("name", [OPENVINO, "OpenCLExecutionProvider"])
def test_a_misspelt_option_of_a_device_is_an_error(name: str) -> None:
    with pytest.raises(ort.InvalidArgument, match=f"Invalid provider_option key: devise.*{name}"):
        ort.InferenceSession(DATA, providers=[(name, {"devise": "1"})])
