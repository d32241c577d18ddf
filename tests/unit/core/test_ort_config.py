"""Session options from a model's metadata, held against onnxruntime's."""

from __future__ import annotations

import json
from typing import Any

import onnxruntime
import pytest
from onnx import helper
from small_models import mlp

import ort_lite as ort

VARIABLE = "ORT_LOAD_CONFIG_FROM_MODEL"
CPU = ["CPUExecutionProvider"]
READ = ("inter_op_num_threads", "intra_op_num_threads", "logid", "log_severity_level")
NAMED = ("execution_mode", "graph_optimization_level")


def configured(config: object) -> bytes:
    """A model with this entry `ort_config`."""
    proto = mlp()
    text = config if isinstance(config, str) else json.dumps(config)
    helper.set_model_props(proto, {"ort_config": text})
    return proto.SerializeToString()


def options_of(module: Any, model: bytes, **arguments: Any) -> Any:
    """What a session of the model says of its options, or the class of its error."""
    given = module.SessionOptions()
    given.logid = "mine"
    given.inter_op_num_threads = 7
    given.add_session_config_entry("a", "b")
    try:
        session = module.InferenceSession(model, given, providers=CPU, **arguments)
    except RuntimeError as exc:
        return type(exc)
    found = session.get_session_options()
    try:
        entry = found.get_session_config_entry("a")
    except RuntimeError:
        entry = None
    return [
        *(getattr(found, name) for name in READ),
        *(getattr(found, name).name for name in NAMED),
        bool(found.enable_profiling),
        entry,
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"inter_op_num_threads": 5, "intra_op_num_threads": 2, "execution_mode": 1},
        {"graph_optimization_level": 1},
        {"graph_optimization_level": 99, "nobody_knows": 3},
        {},
        {"graph_optimization_level": 50},
        {"execution_mode": 2},
        {"execution_mode": "ORT_PARALLEL"},
        {"inter_op_num_threads": -1},
        {"inter_op_num_threads": "3"},
        {"intra_op_num_threads": 1.5},
        {"enable_profiling": True},
        {"enable_profiling": 2},
        3,
    ],
    ids=str,
)
def test_options_come_from_the_model_as_in_onnxruntime(
    options: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    model = configured({"session_options": options})
    expected = options_of(onnxruntime, model, enable_fallback=0)
    assert options_of(ort, model, enable_fallback=0) == expected


@pytest.mark.parametrize("config", ["{", "[1]", '{"x": 1}'])
def test_odd_entries_are_taken_as_by_onnxruntime(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    expected = options_of(onnxruntime, configured(config), enable_fallback=0)
    assert options_of(ort, configured(config), enable_fallback=0) == expected


@pytest.mark.parametrize("value", ["", "0", "yes"])
def test_only_one_value_of_the_variable_reads_the_model(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    model = configured({"session_options": {"inter_op_num_threads": 5}})
    expected = options_of(onnxruntime, model, enable_fallback=0)
    assert options_of(ort, model, enable_fallback=0) == expected


def test_a_session_may_ignore_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    model = configured({"session_options": {"inter_op_num_threads": 5}})
    found = options_of(ort, model, read_config_from_model=0)
    assert found[0] == 7
    assert found[-1] == "b"


def test_what_was_added_to_the_options_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    options = ort.SessionOptions()
    options.add_provider("OpenVINOExecutionProvider", {"num_of_threads": "1"})
    model = configured({"session_options": {"graph_optimization_level": 1}})
    with ort.InferenceSession(model, options) as session:
        assert session.get_providers() == ["OpenVINOExecutionProvider", *CPU]
        assert session.get_provider_options()["OpenVINOExecutionProvider"] == {
            "num_of_threads": "1"
        }
