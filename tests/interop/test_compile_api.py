"""ModelCompiler: names, order, defaults and flags are onnxruntime's."""

from __future__ import annotations

import inspect
from typing import Any

import onnxruntime
import pytest

import ort_lite as ort

THEIRS = onnxruntime.ModelCompiler
OURS = ort.ModelCompiler
METHODS = [name for name in dir(THEIRS) if not name.startswith("_")]
BINDING = {
    "SessionOptions.set_ep_context_data_read_func",
    "SessionOptions.clear_ep_context_data_read_func",
    "OrtEpContextData.read",
    "OrtEpContextData.size",
    "OrtEpContextDataBuffer.allocate",
    "OrtEpContextDataBuffer.write",
    "OrtEpContextDataBuffer.size",
    "OrtEpContextDataBuffer.max_size",
    "OrtEpContextDataBuffer.is_allocated",
    "OrtExternalInitializerInfo.filepath",
    "OrtExternalInitializerInfo.file_offset",
    "OrtExternalInitializerInfo.byte_size",
}


def parameters(function: Any) -> list[tuple[str, object]]:
    """Names and defaults in order; enumerations as numbers."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.default if p.default in (p.empty, None) else int(p.default)) for p in found]


def test_the_constructor_takes_what_theirs_takes() -> None:
    assert parameters(OURS.__init__) == parameters(THEIRS.__init__)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_what_theirs_takes(name: str) -> None:
    assert parameters(getattr(OURS, name)) == parameters(getattr(THEIRS, name))


def test_flags_have_their_numbers_and_add_up() -> None:
    theirs = {name: int(flag) for name, flag in onnxruntime.OrtCompileApiFlags.__members__.items()}
    flags = ort.OrtCompileApiFlags
    assert {name: int(flag) for name, flag in flags.__members__.items()} == theirs
    assert flags.ERROR_IF_NO_NODES_COMPILED | flags.ERROR_IF_OUTPUT_FILE_EXISTS == 3


@pytest.mark.parametrize("path", sorted(BINDING))
def test_what_callbacks_get_has_their_members(path: str) -> None:
    owner, member = path.split(".")
    assert hasattr(getattr(onnxruntime, owner), member)
    instance = {
        "SessionOptions": lambda: ort.SessionOptions(),
        "OrtEpContextData": lambda: ort.OrtEpContextData(memoryview(b"")),
        "OrtEpContextDataBuffer": lambda: ort.OrtEpContextDataBuffer(1),
        "OrtExternalInitializerInfo": lambda: ort.OrtExternalInitializerInfo("f", 0, 1),
    }[owner]()
    assert hasattr(instance, member)
