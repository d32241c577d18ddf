"""Compatibility without a session: names, signatures and errors are onnxruntime's."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import onnx
import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as theirs
from small_models import mlp

import ort_lite as ort
from ort_lite.capi import onnxruntime_pybind11_state as ours

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FUNCTIONS = (
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_ep_devices",
    "get_hardware_devices",
    "get_model_compatibility_for_ep_devices",
)
ENUMS = ("OrtCompiledModelCompatibility", "OrtHardwareDeviceType")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_as_many_arguments_as_theirs(name: str) -> None:
    signature = getattr(theirs, name).__doc__.splitlines()[0]
    inside = signature[signature.index("(") + 1 : signature.index(") ->")]
    expected = inside.count("arg") if inside else 0
    parameters = inspect.signature(getattr(ours, name)).parameters
    assert len(parameters) == expected
    assert getattr(ort, name) is getattr(ours, name)


@pytest.mark.parametrize("name", ENUMS)
def test_an_enumeration_has_their_members_and_numbers(name: str) -> None:
    expected = {key: int(value) for key, value in getattr(theirs, name).__members__.items()}
    assert {member.name: int(member) for member in getattr(ours, name)} == expected


@pytest.mark.parametrize("name", ["OrtEpDevice", "OrtHardwareDevice"])
def test_a_device_has_their_attributes_of_their_types(name: str) -> None:
    def attributes(module: Any) -> dict[str, object]:
        device = module.get_ep_devices()[0]
        found = device if name == "OrtEpDevice" else device.device
        public = {key for key in dir(found) if not key.startswith("_")}
        return {key: getattr(found, key) for key in public}

    expected, mine = attributes(theirs), attributes(ours)
    assert mine.keys() == expected.keys()
    for key in expected.keys() - {"device", "type"}:
        assert isinstance(mine[key], type(expected[key])), key


def test_their_methods_of_session_options_are_here() -> None:
    for name in ("add_provider", "add_provider_for_devices", "has_providers"):
        assert callable(getattr(onnxruntime.SessionOptions, name))
        assert callable(getattr(ort.SessionOptions, name))


def test_the_default_ep_is_listed_as_theirs(tmp_path: Path) -> None:
    def of(module: Any) -> Any:
        (found,) = (d for d in module.get_ep_devices() if d.ep_name == "CPUExecutionProvider")
        return found

    assert int(of(ours).device.type) == int(of(theirs).device.type) == 0
    assert of(ours).ep_options == of(theirs).ep_options == {}
    assert of(ours).ep_metadata.keys() == of(theirs).ep_metadata.keys() == {"version"}


def described(info: dict[str, str]) -> bytes:
    proto = mlp()
    onnx.helper.set_model_props(proto, info)
    return proto.SerializeToString()


@pytest.mark.parametrize(
    ("ep", "expected"),
    [("SomeExecutionProvider", "text; of=some"), ("Some", None), ("CPUExecutionProvider", None)],
)
def test_metadata_is_read_as_theirs(tmp_path: Path, ep: str, expected: str | None) -> None:
    data = described({"ep_compatibility_info.SomeExecutionProvider": "text; of=some"})
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    for module in (ours, theirs):
        assert module.get_compatibility_info_from_model(str(path), ep) == expected
        assert module.get_compatibility_info_from_model_bytes(data, ep) == expected
        assert module.get_compatibility_info_from_model_bytes(memoryview(data), ep) == expected


def test_an_empty_file_has_no_metadata_as_theirs(tmp_path: Path) -> None:
    (tmp_path / "e.onnx").touch()
    for module in (ours, theirs):
        assert module.get_compatibility_info_from_model(str(tmp_path / "e.onnx"), "X") is None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m.get_compatibility_info_from_model("gone.onnx", "X"), "File doesn't exist"),
        (lambda m: m.get_compatibility_info_from_model("", "X"), "File doesn't exist"),
        (lambda m: m.get_compatibility_info_from_model(__file__, "X"), "Protobuf parsing failed."),
        (lambda m: m.get_compatibility_info_from_model(__file__, ""), "Invalid argument provided"),
        (lambda m: m.get_compatibility_info_from_model_bytes(b"", "X"), "Invalid argument"),
        (lambda m: m.get_compatibility_info_from_model_bytes(b"a", ""), "Invalid argument"),
        (lambda m: m.get_compatibility_info_from_model_bytes(b"abc", "X"), "Protobuf parsing"),
        (lambda m: m.get_model_compatibility_for_ep_devices([], "x"), "Invalid argument provided"),
    ],
    ids=[
        "gone",
        "empty path",
        "no model",
        "no provider",
        "no bytes",
        "bytes, no provider",
        "garbage",
        "no devices",
    ],
)
def test_a_wrong_call_raises_a_runtime_error_with_their_words(
    call: Callable[[Any], object], text: str
) -> None:
    for module in (ours, theirs):
        with pytest.raises(RuntimeError, match=text):
            call(module)


def test_no_devices_are_no_provider_as_theirs() -> None:
    for module, error in ((ort, ort.InvalidArgument), (onnxruntime, theirs.InvalidArgument)):
        options = module.SessionOptions()
        with pytest.raises(error, match="Must provide one or more OrtEpDevice instances"):
            options.add_provider_for_devices([], {})
        assert not options.has_providers()


def test_an_ep_that_keeps_no_contexts_is_not_applicable_as_theirs() -> None:
    for module in (ours, theirs):
        cpu = [d for d in module.get_ep_devices() if d.ep_name == "CPUExecutionProvider"]
        verdict = module.get_model_compatibility_for_ep_devices(cpu, "anything")
        assert verdict == module.OrtCompiledModelCompatibility.EP_NOT_APPLICABLE
