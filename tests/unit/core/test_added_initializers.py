"""Initializers from the user's memory, held to what onnxruntime answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
import pytest
from context_models import OPENVINO
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from small_models import model

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZE = 2048
OTHER = np.full(SIZE, 7, np.float32)
FEED = {"x": np.zeros(SIZE, np.float32)}
CPU = ["CPUExecutionProvider"]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """y = x + w, with w in the model file."""
    weights = {"w": np.arange(SIZE, dtype=np.float32)}
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    path = tmp_path / "plain.onnx"
    onnx.save(model(nodes, [("x", [SIZE])], [("y", [SIZE])], weights), path)
    return path


@pytest.fixture
def external(plain: Path) -> Path:
    """The same with w in w.bin."""
    path = plain.with_name("external.onnx")
    onnx.save(
        onnx.load(plain), path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    return path


def first(path: Path, options: ort.SessionOptions, providers: list[str] = CPU) -> float:
    with ort.InferenceSession(path, options, providers=providers) as session:
        return float(session.run(None, FEED)[0][1])


@pytest.mark.parametrize("ep", [OPENVINO, *CPU])
def test_an_initializer_is_overridden(plain: Path, external: Path, ep: str) -> None:
    options = ort.SessionOptions()
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(OTHER))
    options.add_initializer("of another model", ort.OrtValue.ortvalue_from_numpy(OTHER[:3]))
    assert first(plain, options, [ep]) == 7
    external.with_name("w.bin").unlink()
    assert first(external, options, [ep]) == 7
    assert first(plain, ort.SessionOptions(), [ep]) == 1


def test_external_data_may_come_from_memory(external: Path) -> None:
    external.with_name("w.bin").unlink()
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(OTHER)])
    assert first(external, options) == 7


def test_files_of_external_data_may_come_from_memory(external: Path) -> None:
    external.with_name("w.bin").unlink()
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(
        ["w.bin"], [OTHER.tobytes() + b"more"], [OTHER.nbytes]
    )
    assert first(external, options) == 7


def test_what_is_in_memory_is_not_copied_into_the_cache(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORT_LITE_CACHE_DIR", str(tmp_path / "cache"))
    options = ort.SessionOptions()
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(OTHER))
    assert first(plain, options, [OPENVINO]) == 7
    assert first(plain, ort.SessionOptions(), [OPENVINO]) == 1
    assert first(plain, options, [OPENVINO]) == 7


def _supply(name: str, array: np.ndarray) -> Callable[[object, object], None]:
    def into(options: object, values: object) -> None:
        value = values.ortvalue_from_numpy(array)  # type: ignore[attr-defined]
        options.add_external_initializers([name], [value])  # type: ignore[attr-defined]

    return into


def _files(name: str, length: int) -> Callable[[object, object], None]:
    data = OTHER.tobytes()[:length]

    def into(options: object, _values: object) -> None:
        options.add_external_initializers_from_files_in_memory([name], [data], [len(data)])  # type: ignore[attr-defined]

    return into


@pytest.mark.parametrize(
    ("kind", "into", "message"),
    [
        ("plain", _supply("w", OTHER), "Trying to replace non-external initializer"),
        ("external", _supply("q", OTHER), "Failed to find existing initializer with name q."),
        ("external", _supply("w", OTHER[:5]), "Replacement tensor's dimensions do not match."),
        (
            "external",
            _supply("w", OTHER.astype(np.float64)),
            "Replacement tensor's data type does not match.",
        ),
        ("external", _files("v.bin", 8192), "External file: w.bin not found from the table"),
        ("external", _files("w.bin", 100), "size to read: 8192 given file_length: 100 are out of"),
    ],
)
def test_what_does_not_fit_is_refused_as_onnxruntime_does(
    request: pytest.FixtureRequest,
    kind: str,
    into: Callable[[object, object], None],
    message: str,
) -> None:
    path = request.getfixturevalue(kind)
    ours, theirs = ort.SessionOptions(), onnxruntime.SessionOptions()
    into(ours, ort.OrtValue)
    into(theirs, onnxruntime.OrtValue)
    with pytest.raises(ort.Fail, match=message):
        ort.InferenceSession(path, ours, providers=CPU)
    with pytest.raises(Fail, match=message):
        onnxruntime.InferenceSession(path, theirs, providers=CPU)


def test_lists_of_different_length_and_doubled_names_are_refused() -> None:
    options = ort.SessionOptions()
    value = ort.OrtValue.ortvalue_from_numpy(OTHER)
    with pytest.raises(ValueError, match="equal length: 1 and 0"):
        options.add_external_initializers(["w"], [])
    with pytest.raises(ValueError, match="equal length: 1, 1 and 0"):
        options.add_external_initializers_from_files_in_memory(["w"], [b"x"], [])
    with pytest.raises(ValueError, match="the buffer has 1 bytes, not 2"):
        options.add_external_initializers_from_files_in_memory(["w"], [b"x"], [2])
    options.add_initializer("w", value)
    with pytest.raises(ort.InvalidArgument, match="already been added: w"):
        options.add_initializer("w", value)
