"""Profiles, compared with those that onnxruntime writes of the same runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from small_models import branching, feed, mlp, sandwich

import ort_lite as ort

CPU = ["CPUExecutionProvider"]
OPENVINO = ["OpenVINOExecutionProvider"]
ARENA = {
    "thread_scheduling_stats",
    "mem_arena_held",
    "mem_arena_held_delta",
    "mem_bytes_in_use",
    "mem_bytes_requested_in_use",
    "mem_in_use_delta",
    "mem_in_use_peak",
    "mem_requested_in_use_delta",
}
"""What onnxruntime says of its own arena and thread pool; there is none here."""


def options(module: Any, folder: Path) -> Any:
    made = module.SessionOptions()
    made.enable_profiling = True
    made.profile_file_prefix = str(folder / module.__name__)
    made.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
    return made


def trace(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(path).read_text("utf-8"))
    return found


def of_nodes(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {e["name"]: e["args"] for e in events if e["cat"] == "Node"}


@pytest.mark.parametrize("mode", ["ORT_SEQUENTIAL", "ORT_PARALLEL"])
@pytest.mark.parametrize("make", [mlp, branching], ids=lambda make: make.__name__)
def test_the_trace_is_onnxruntimes(make: Any, mode: str, tmp_path: Path) -> None:
    model, values = make().SerializeToString(), feed(make())
    mine_options, their_options = options(ort, tmp_path), options(onnxruntime, tmp_path)
    for module, made in ((ort, mine_options), (onnxruntime, their_options)):
        made.execution_mode = getattr(module.ExecutionMode, mode)
        made.inter_op_num_threads = 2
    theirs = onnxruntime.InferenceSession(model, their_options, providers=CPU)
    theirs.run(None, values)
    mine = ort.InferenceSession(model, mine_options, providers=CPU)
    mine.run(None, values)
    right, found = trace(theirs.end_profiling()), trace(mine.end_profiling())
    assert {tuple(event) for event in found} == {tuple(event) for event in right}
    spans = {e["name"] for e in right if e["cat"] == "Session"}
    assert {e["name"] for e in found if e["cat"] == "Session"} == spans
    nodes = of_nodes(found)
    assert nodes.keys() == of_nodes(right).keys()
    for name, args in of_nodes(right).items():
        given, read = args["input_type_shape"], nodes[name]["input_type_shape"]
        assert read[: len(given)] == given
        assert without(nodes[name]) == without(args)


def without(args: dict[str, Any]) -> dict[str, Any]:
    """Without what onnxruntime alone has, numbers of nodes, and weights: it packs them away."""
    left_out = ARENA | {"node_index", "input_type_shape", "parameter_size"}
    return {key: value for key, value in args.items() if key not in left_out}


def test_events_lie_inside_each_other(tmp_path: Path) -> None:
    proto = branching()
    with ort.InferenceSession(
        proto.SerializeToString(), options(ort, tmp_path), providers=CPU
    ) as session:
        session.run(None, feed(proto))
        events = {e["name"]: e for e in trace(session.end_profiling())}
    outer, inner = events["model_run"], events["if_kernel_time"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 1
    assert {e["pid"] for e in events.values()} == {outer["pid"]}


def test_a_partition_of_another_ep_is_one_event(tmp_path: Path) -> None:
    proto = sandwich()
    profiled = options(ort, tmp_path)
    profiled.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(proto.SerializeToString(), profiled, providers=OPENVINO) as session:
        names = [part.name for part in session.explain().partitions]
        session.run(None, feed(proto))
        events = [e for e in trace(session.end_profiling()) if e["cat"] == "Node"]
    assert [(e["name"], e["args"]["provider"]) for e in events] == [
        (f"{names[0]}_kernel_time", OPENVINO[0]),
        ("topk_kernel_time", CPU[0]),
        (f"{names[2]}_kernel_time", OPENVINO[0]),
    ]


def test_profiling_changes_no_number(tmp_path: Path) -> None:
    proto = branching()
    plain = ort.InferenceSession(proto.SerializeToString(), providers=CPU)
    watched = ort.InferenceSession(proto.SerializeToString(), options(ort, tmp_path), providers=CPU)
    # The level differs between the two sessions, and it must not change this model's numbers.
    for seed in range(3):
        values = feed(proto, seed)
        np.testing.assert_array_equal(watched.run(None, values)[0], plain.run(None, values)[0])
    watched.end_profiling()


def test_without_profiling_there_is_no_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    session = ort.InferenceSession(mlp().SerializeToString(), providers=CPU)
    assert (session.end_profiling(), session.get_profiling_start_time_ns()) == ("", 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", [onnxruntime, ort])
def test_a_profile_that_has_ended_still_says_when_it_began(module: Any, tmp_path: Path) -> None:
    chosen = options(module, tmp_path)
    session = module.InferenceSession(mlp().SerializeToString(), chosen, providers=CPU)
    began = session.get_profiling_start_time_ns()
    session.end_profiling()
    assert session.get_profiling_start_time_ns() == began > 0


def test_a_profile_is_ended_once(tmp_path: Path) -> None:
    session = ort.InferenceSession(mlp().SerializeToString(), options(ort, tmp_path), providers=CPU)
    assert session.get_profiling_start_time_ns() > 0
    assert Path(session.end_profiling()).is_file()
    assert session.end_profiling() == ""
    session.run(None, feed(mlp()))


def test_closing_a_session_writes_its_profile(tmp_path: Path) -> None:
    ort.InferenceSession(mlp().SerializeToString(), options(ort, tmp_path), providers=CPU).close()
    (path,) = tmp_path.iterdir()
    assert [e["name"] for e in trace(str(path))] == [
        "model_loading_array",
        "session_initialization",
    ]


def test_a_profile_without_a_folder_is_refused_before_anything_else(tmp_path: Path) -> None:
    wrong = options(ort, tmp_path / "missing")
    with pytest.raises(ort.Fail, match=r"the profile .* cannot be written"):
        ort.InferenceSession(mlp().SerializeToString(), wrong, providers=CPU)
