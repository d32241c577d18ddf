"""Models with free dimensions: compiled ahead of time, kept, reported, reloaded, released."""

from __future__ import annotations

import io
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from opencl_devices import device_names
from small_models import mlp, model

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.runtime import program
from eps.opencl.runtime.dynamic import DynamicPartition
from ort_lite.ep.interface import FusedNode, GraphView, PartitionIo
from ort_lite.model import loader
from ort_lite.status import InvalidArgument, InvalidGraph

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.model.graph import Graph

OPENCL = "OpenCLExecutionProvider"
PLATFORMS = device_names()


@pytest.fixture(params=PLATFORMS)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(n: int) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)}


def kept_context(path: Path, device: str, **options: str) -> list[Any]:
    """Compiles the model with free rows into a context there; what it gives for 1 and 5 rows."""
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(path))
    providers = [(OPENCL, {"device": device, **options})]
    proto = mlp("rows").SerializeToString()
    with ort.InferenceSession(proto, config, providers=providers) as session:
        return [session.run(None, rows(n))[0] for n in (1, 5)]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sources that are given to a driver's compiler from here on."""
    sources: list[str] = []
    real = program.build

    def counted(context: Any, source: str, options: str) -> Any:
        sources.append(source)
        return real(context, source, options)

    for module in ("runtime.program", "payload.import_payload"):
        monkeypatch.setattr(f"eps.opencl.{module}.build", counted)
    return sources


def test_a_reload_builds_nothing_for_shapes_that_were_compiled_ahead(
    tmp_path: Path, device: str, built: list[str]
) -> None:
    """And compiles for others when it meets them."""
    right = kept_context(tmp_path / "c.onnx", device, reshape_input="x[1,4];x[3,4]")
    built.clear()
    providers = [(OPENCL, {"device": device, "other_shapes": "compile"})]
    with ort.InferenceSession(tmp_path / "c.onnx", providers=providers) as session:
        np.testing.assert_array_equal(session.run(None, rows(1))[0], right[0])
        session.run(None, rows(3))
        assert built == []
        np.testing.assert_array_equal(session.run(None, rows(5))[0], right[1])
        assert len(built) == 1
        (part,) = session.explain().partitions
    assert part.notes == (
        "3 of at most 8 programs: x[1, 4] (reloaded); x[3, 4] (reloaded); x[5, 4]",
        "2 of 3 runs found their program; not ready: x[5, 4] (compiled, new shapes)",
    )


def test_a_program_of_the_payload_that_was_given_up_is_loaded_again_not_built(
    tmp_path: Path, device: str, built: list[str]
) -> None:
    right = kept_context(tmp_path / "c.onnx", device, reshape_input="x[1,4];x[3,4]")
    built.clear()
    providers = [(OPENCL, {"device": device, "max_variants": "1"})]
    with ort.InferenceSession(tmp_path / "c.onnx", providers=providers) as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run(None, rows(1))[0], right[0])
            session.run(None, rows(3))
        (part,) = session.explain().partitions
    assert built == []
    again = "(loaded again, since max_variants is 1)"
    assert part.notes == (
        "1 of at most 1 programs: x[3, 4] (reloaded)",
        "1 of 4 runs found their program; not ready: x[3, 4] (loaded from the payload); "
        f"x[1, 4] {again}; x[3, 4] {again}",
    )


def test_free_dimension_overrides_compile_ahead_of_time(
    tmp_path: Path, device: str, built: list[str]
) -> None:
    config = ort.SessionOptions()
    config.add_session_config_entry("ep.context_enable", "1")
    config.add_session_config_entry("ep.context_file_path", str(tmp_path / "c.onnx"))
    config.add_free_dimension_override_by_name("rows", 3)
    providers = [(OPENCL, {"device": device})]
    ort.InferenceSession(mlp("rows").SerializeToString(), config, providers=providers).close()
    built.clear()
    with ort.InferenceSession(tmp_path / "c.onnx", providers=providers) as session:
        assert session.run(None, rows(3))[0].shape == (3, 3)
    assert built == []


def graph_with_free_rows() -> Graph:
    loaded = loader.load(mlp("rows").SerializeToString(), ort.SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "mlp")


def test_what_runs_have_compiled_is_exported_too(device: str, built: list[str]) -> None:
    graph = graph_with_free_rows()
    ep = FACTORY.create({"device": device})
    (compiled,) = ep.compile([FusedNode(name="mlp", graph=graph)])
    (right,) = compiled.run([rows(2)["x"]])
    out = io.BytesIO()
    ep.export_model(compiled, out)  # type: ignore[attr-defined]
    built.clear()
    declared = PartitionIo(inputs=graph.inputs, outputs=graph.outputs)
    again = ep.import_model(memoryview(out.getvalue()), declared)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(again.run([rows(2)["x"]])[0], right)
    assert built == []
    for partition in (compiled, again):
        partition.release()


def test_sizes_of_named_dimensions_reach_partitions_in_the_middle(caplog: Any) -> None:
    """The second partition's input is the CPU EP's output, and has the model's own dimension."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Det", ["a"], ["d"]),
        helper.make_node("Exp", ["d"], ["y"]),
    ]
    proto = model(nodes, [("x", ["n", 3, 3])], [("y", ["n"])])
    providers = [(OPENCL, {"reshape_input": "x[2,3,3]"})]
    greedy = ort.SessionOptions()
    greedy.add_session_config_entry("session.placement", "all")
    with (
        caplog.at_level(logging.WARNING),
        ort.InferenceSession(proto.SerializeToString(), greedy, providers) as session,
    ):
        notes = [p.notes for p in session.explain().partitions if p.ep == OPENCL]
    assert len(notes) == 2
    assert all("1 of at most 8 programs" in note for (note,) in notes), notes
    assert "leaves dimensions" not in caplog.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x[1..3,4]", "is a range"),
        ("x[4]", "has 1 dimensions for x, the model 2"),
        ("x[2,5]", "dimension '4' is 4"),
        ("x[1,4];x[2,4];x[3,4]", "3 sets of shapes, and max_variants is 2"),
        ("x", "expected"),
    ],
)
def test_shapes_that_cannot_be_are_refused(text: str, told: str) -> None:
    options = {"reshape_input": text, "max_variants": "2"}
    with pytest.raises(InvalidArgument, match=told):
        ort.InferenceSession(mlp("rows").SerializeToString(), providers=[(OPENCL, options)])


def test_a_kept_program_for_another_graph_is_refused() -> None:
    ep = FACTORY.create({"reshape_input": "x[2,4]"})
    graph = graph_with_free_rows()
    ep.get_capability(GraphView(graph, frozenset()))
    (compiled,) = ep.compile([FusedNode(name="mlp", graph=graph)])
    out = io.BytesIO()
    ep.export_model(compiled, out)  # type: ignore[attr-defined]
    other = PartitionIo(inputs=graph.outputs, outputs=graph.inputs)
    with pytest.raises(InvalidGraph) as found:
        ep.import_model(memoryview(out.getvalue()), other)  # type: ignore[attr-defined]
    assert found.value.reason == "shape"
    compiled.release()


class Program:
    """Stands for an executable: tells what it was made for."""

    def __init__(self, name: str, gate: threading.Event | None = None) -> None:
        self.name = name
        self.released = False
        self._gate = gate
        self.arena_bytes, self.weight_bytes = 8, 4

    def run(self, values: Any) -> list[str]:
        assert not self.released
        return [self.name]

    def release(self) -> None:
        self.released = True


def test_threads_run_known_shapes_while_another_compiles() -> None:
    """And two that want the same new program wait for one compilation."""
    go, made = threading.Event(), []

    def make(shapes: Any) -> Any:
        if shapes != ((1, 4),):
            assert go.wait(20)
        made.append(shapes)
        return Program(str(shapes))

    partition = DynamicPartition(graph_with_free_rows(), "test", make, 8)
    one, two = np.zeros((1, 4)), np.zeros((2, 4))
    partition.run([one])
    with ThreadPoolExecutor(3) as pool:
        slow = [pool.submit(partition.run, [two]) for _ in range(2)]
        assert partition.run([one]) == ["((1, 4),)"]
        go.set()
        assert [s.result(20) for s in slow] == [["((2, 4),)"]] * 2
    assert made == [((1, 4),), ((2, 4),)]


def test_a_failed_compilation_leaves_the_next_one_free() -> None:
    answers: list[Any] = [ort.EPFail("once"), Program("made")]

    def make(shapes: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    partition = DynamicPartition(graph_with_free_rows(), "test", make, 8)
    with pytest.raises(ort.EPFail, match="once"):
        partition.run([np.zeros((1, 4))])
    assert partition.run([np.zeros((1, 4))]) == ["made"]
    partition.release()
    with pytest.raises(ort.EPFail, match="released"):
        partition.run([np.zeros((1, 4))])
