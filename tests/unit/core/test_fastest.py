"""The policy FASTEST: measured in turns, kept in the model cache, shown by explain()."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_models import feed, mlp

import ort_lite as ort
from ort_lite.model import loader
from ort_lite.providers.device_policy import POLICY_NAMES, find_policy
from ort_lite.providers.provider_list import ProviderRequest, applied_options, open_all
from ort_lite.start.fastest import FEWEST, FastestModel, measure_in_turns
from ort_lite.start.load_request import LoadClock, LoadRequest
from ort_lite.start.prepare_model import UncachedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ort_lite.start.prepare_model import PreparedModel

CPU, OPENVINO, OPENCL = (f"{name}ExecutionProvider" for name in ("CPU", "OpenVINO", "OpenCL"))
FASTEST = ort.MeasuredPolicy.FASTEST


def paced(seconds: Sequence[float]) -> Callable[[], float]:
    """A timer that finds each run in turn to take its seconds, over and over."""
    steps = (at for length in cycle(seconds) for at in (0.0, length))
    return lambda: next(steps)


def fastest(seconds: Sequence[float], names: Sequence[str]) -> PreparedModel:
    """The model on what FASTEST takes where CPU EP and `names` need `seconds` a run."""
    options = ort.SessionOptions()
    loaded = loader.load(mlp().SerializeToString(), options)
    requests = [ProviderRequest(name, {}, explicit=False) for name in names]
    default = [ProviderRequest(CPU, {}, explicit=False)]
    request = LoadRequest(
        options=options,
        eps=open_all(default),
        provider_options=applied_options(default, [CPU]),
        clock=LoadClock(),
        measured=True,
    )
    source = FastestModel(UncachedModel(loaded, options), 0, paced(seconds), requests)
    return source.compile(request)


@pytest.mark.parametrize(
    ("names", "seconds", "taken"),
    [
        ([OPENVINO], (3, 1), [OPENVINO, CPU]),
        ([OPENVINO, OPENCL], (3, 2, 1), [OPENCL, CPU]),
        ([OPENVINO], (1, 2), [CPU]),
    ],
    ids=["openvino", "opencl", "cpu"],
)
def test_the_shortest_runs_win(
    names: list[str], seconds: tuple[float, ...], taken: list[str]
) -> None:
    model = fastest(seconds, names)
    try:
        assert [ep.name for ep in model.eps] == taken
        assert model.provider_options is not None
        assert list(reversed(model.provider_options)) == taken
        figures = model.notes[0]
        least, middle = (f"{length * 1000:.3g} ms" for length in sorted(seconds)[:2])
        assert figures.startswith(f"FASTEST: {taken[0]} {least}, ")
        assert middle in figures
        given = feed(mlp())
        (answer,) = model.prepared.run(list(given.values()))
        (expected,) = onnxruntime.InferenceSession(mlp().SerializeToString()).run(None, given)
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-6)
    finally:
        model.release()


def test_one_that_cannot_be_opened_is_left_out() -> None:
    ort.register_execution_provider_library("dead", "failing_eps:DEAD")
    try:
        model = fastest((2, 1), ["DeadExecutionProvider", OPENVINO])
    finally:
        ort.unregister_execution_provider_library("dead")
    assert [ep.name for ep in model.eps] == [OPENVINO, CPU]
    assert "DeadExecutionProvider is left out: no device 'XPU'" in model.notes[1]
    model.release()


def test_runs_are_timed_in_turns_and_the_first_is_not() -> None:
    order: list[str] = []
    runs = [lambda _, name=name: order.append(name) for name in "ab"]
    least = measure_in_turns(runs, [], paced((5.0, 4.0, 3.0, 6.0)))
    assert order == ["a", "b"] * (1 + FEWEST)
    assert least == [3.0, 4.0]


def test_a_run_that_fails_takes_for_ever() -> None:
    def fail(_: Any) -> None:
        raise ort.Fail("no such size")

    assert measure_in_turns([fail, len], [], paced((2.0,))) == [float("inf"), 2.0]
    with pytest.raises(ort.Fail, match="no such size"):
        measure_in_turns([fail], [], paced((2.0,)))


def by_policy(cache: Path | None = None, **entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.set_provider_selection_policy(FASTEST)
    if cache is not None:
        entries = {"ep_context_cache": "1", "ep_context_cache_dir": str(cache), **entries}
    for key, value in entries.items():
        options.add_session_config_entry(f"session.{key}", value)
    return options


def test_the_choice_is_kept_with_its_figures(tmp_path: Path) -> None:
    proto, starts = mlp(), []
    for _ in range(2):
        with ort.InferenceSession(proto.SerializeToString(), by_policy(tmp_path)) as session:
            figures = next(n for n in session.explain().notes if n.startswith("FASTEST: "))
            starts.append((session.get_providers(), session.get_provider_options(), figures))
            opened = [ep.name for ep in session._present().eps]
            (answer,) = session.run(None, feed(proto))
    assert starts[0] == starts[1]
    assert opened == starts[1][0]
    assert session.get_providers() == []
    for name in (CPU, OPENVINO, OPENCL):
        assert name in starts[1][2]
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed(proto))
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-6)


def test_the_cpu_answers_while_devices_are_tried() -> None:
    options, proto = by_policy(ep_compile_in_background="1"), mlp()
    with ort.InferenceSession(proto.SerializeToString(), options) as session:
        (before,) = session.run(None, feed(proto))
        assert session.background_compile(None).state == "done"
        assert any(note.startswith("FASTEST: ") for note in session.explain().notes)
        assert session.get_providers()[-1] == CPU
        assert session.get_provider_options().keys() == set(session.get_providers())
        (after,) = session.run(None, feed(proto))
    np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-6)


def test_named_providers_win_over_the_policy() -> None:
    proto = mlp().SerializeToString()
    with ort.InferenceSession(proto, by_policy(), providers=[OPENVINO]) as session:
        assert session.get_providers() == [OPENVINO, CPU]
        assert session.explain().notes == ()


def test_a_model_without_random_inputs_takes_the_first_device() -> None:
    sizes = helper.make_tensor("sizes", TensorProto.INT64, [1], [7])
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [7]),
    ]
    node = helper.make_node("Reshape", ["x", "sizes"], ["y"])
    graph = helper.make_graph([node], "seven", ends[:1], ends[1:], [sizes])
    opsets = [helper.make_opsetid("", 17)]
    data = helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString()
    with ort.InferenceSession(data, by_policy()) as session:
        assert ", unmeasured: " in session.explain().notes[0]
        (answer,) = session.run(None, {"x": np.arange(7, dtype=np.float32)})
    np.testing.assert_array_equal(answer, np.arange(7, dtype=np.float32))


def test_fastest_writes_no_files(tmp_path: Path) -> None:
    options = by_policy()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(tmp_path / "ctx.onnx"))
    with pytest.raises(ort.InvalidArgument, match=r"FASTEST and ep\.context_enable"):
        ort.InferenceSession(mlp().SerializeToString(), options)
    compiler = ort.ModelCompiler(
        by_policy(), mlp().SerializeToString(), embed_compiled_data_into_model=True
    )
    with pytest.raises(ort.InvalidArgument, match="ModelCompiler runs nothing"):
        compiler.compile_to_bytes()


def test_a_context_model_is_measured_no_more(tmp_path: Path) -> None:
    options, path = ort.SessionOptions(), tmp_path / "ctx.onnx"
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(path))
    model = tmp_path / "m.onnx"
    onnx.save(mlp(), model)
    ort.InferenceSession(model, options, providers=[OPENVINO]).close()
    with ort.InferenceSession(path, by_policy()) as session:
        assert not any("FASTEST" in note for note in session.explain().notes)
        assert {part.origin for part in session.explain().partitions} == {"context"}


def test_every_policy_has_a_name() -> None:
    assert find_policy("FASTEST") is FASTEST
    assert [find_policy(name).name for name in POLICY_NAMES] == list(POLICY_NAMES)
