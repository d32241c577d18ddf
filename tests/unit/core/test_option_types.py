"""Types of options' attributes and of the enumerations, held against onnxruntime's binding."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnxruntime
import pytest

import ort_lite as ort

LEVEL = "graph_optimization_level"


def answer(module: Any, kind: str, name: str, value: Any) -> Any:
    options = getattr(module, kind)()
    try:
        setattr(options, name, value)
    except (TypeError, AttributeError) as exc:
        return type(exc)
    found = getattr(options, name)
    return type(found), found


@pytest.mark.parametrize("value", [99, 1, True, "x", None, 1.5])
@pytest.mark.parametrize("name", [LEVEL, "execution_mode", "execution_order"])
def test_an_enumeration_is_not_a_number(name: str, value: Any) -> None:
    assert answer(onnxruntime, "SessionOptions", name, value) is TypeError
    assert answer(ort, "SessionOptions", name, value) is TypeError


VALUES = [0, 1, -3, True, np.int64(3), 2.0, "1", b"1", None, [], {}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("SessionOptions", "inter_op_num_threads"),
        ("SessionOptions", "enable_profiling"),
        ("SessionOptions", "use_deterministic_compute"),
        ("SessionOptions", "logid"),
        ("SessionOptions", "optimized_model_filepath"),
        ("SessionOptions", "nobody_knows"),
        ("RunOptions", "log_severity_level"),
        ("RunOptions", "terminate"),
        ("RunOptions", "logid"),
        ("RunOptions", "nobody_knows"),
    ],
)
def test_an_attribute_takes_what_onnxruntime_takes(kind: str, name: str, value: Any) -> None:
    assert answer(ort, kind, name, value) == answer(onnxruntime, kind, name, value)


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_options_are_keys_by_identity(kind: str) -> None:
    for module in (onnxruntime, ort):
        one, other = getattr(module, kind)(), getattr(module, kind)()
        assert one != other
        assert {one: 1, other: 2}[one] == 1


@pytest.mark.parametrize(("kind", "add"), [("SessionOptions", "session"), ("RunOptions", "run")])
@pytest.mark.parametrize("entry", [("", "1"), ("k" * 1025, "1"), ("k", 1), (1, "v")])
def test_configuration_entries_are_refused_alike(kind: str, add: str, entry: Any) -> None:
    errors = []
    for module in (onnxruntime, ort):
        with pytest.raises((RuntimeError, TypeError)) as error:
            getattr(getattr(module, kind)(), f"add_{add}_config_entry")(*entry)
        errors.append(type(error.value))
    assert errors[0] is errors[1]


ENUMERATIONS = (
    *("GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "OrtHardwareDeviceType"),
    *("OrtExecutionProviderDevicePolicy", "OrtCompiledModelCompatibility", "OrtCompileApiFlags"),
    "OrtDeviceEpIncompatibilityReason",
)


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_enumerations_read_as_onnxruntimes(name: str) -> None:
    theirs = getattr(onnxruntime.capi.onnxruntime_pybind11_state, name)
    ours = getattr(ort.capi.onnxruntime_pybind11_state, name)  # type: ignore[attr-defined] # imported by name
    assert {k: int(v) for k, v in ours.__members__.items()} == {
        k: int(v) for k, v in theirs.__members__.items()
    }
    for key, member in ours.__members__.items():
        expected = theirs.__members__[key]
        assert (str(member), repr(member), f"{member}") == (
            str(expected),
            repr(expected),
            f"{expected}",
        )
        assert (member.name, member.value, hash(member)) == (
            expected.name,
            expected.value,
            hash(expected),
        )
        assert copy.deepcopy(member) == member
