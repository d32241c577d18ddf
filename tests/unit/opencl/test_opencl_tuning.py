"""Kernel parameters: by a rule that is the same everywhere, or measured once for a device."""

from __future__ import annotations

import io
import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from opencl_devices import first_working_device, skip_without_cpu_first
from small_models import model

import ort_lite as ort
from ctx_formats.errors import FormatError
from eps.opencl import FACTORY
from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.compile.tilings import Problem, Tile, Tiling
from eps.opencl.payload.format import read_payload
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.identity import read_identity
from eps.opencl.tuning.cache import FORMAT, MOST_ROWS, TuningCache
from eps.opencl.tuning.rows import read_tuned_rows, rows_of
from eps.opencl.tuning.tune import EFFORTS, SMALLEST_WORK, candidates
from ort_lite.ep.interface import FusedNode, PartitionIo
from ort_lite.model import loader
from ort_lite.options import SessionOptions
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.model.graph import Graph

FOUND = first_working_device()
TARGET = describe_target(FOUND)
PROBLEM = Problem(
    batch=1, rows=1, columns=60, taps=(1, 1), depth=96, width=112, packed=True, operands=0
)
RULE = Tiling(Tile(1, 2, 1, 4), 3)
"""Not what the rule says, to tell a tiling that was taken from one that was chosen."""

X = np.linspace(-1, 1, 60 * 96, dtype=np.float32).reshape(60, 96)


def product(rows: int | str = 60) -> bytes:
    """One product that is worth measuring: y = x w."""
    weights = np.random.default_rng(0).standard_normal((96, 112)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    proto = model([node], [("x", [rows, 96])], [("y", [rows, 112])], {})
    proto.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return bytes(proto.SerializeToString())


def graph_of(data: bytes) -> Graph:
    loaded = loader.load(data, SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "product")


def options(folder: Path, tuning: str = "fast") -> dict[str, str]:
    return {"tuning": tuning, "tuning_cache": str(folder)}


def compiled(folder: Path, tuning: str = "fast", rows: int | str = 60) -> tuple[Any, Any, int]:
    """The EP, the partition, and how many problems were measured for it."""
    told = []
    ep = FACTORY.create(options(folder, tuning))
    node = FusedNode(
        name="product", graph=graph_of(product(rows)), progress=lambda *what: told.append(what)
    )
    (partition,) = ep.compile([node])
    return ep, partition, len(told)


def payload(ep: Any, partition: Any) -> bytes:
    out = io.BytesIO()
    ep.export_model(partition, out)
    return out.getvalue()


def cache(folder: Path) -> TuningCache:
    return TuningCache(folder, read_identity(FOUND))


def test_the_product_is_worth_measuring() -> None:
    assert PROBLEM.work >= SMALLEST_WORK
    kernel = compile_partition(graph_of(product()), {"x": (60, 96)}, TARGET).calls[0]
    assert kernel.work == PROBLEM.work


def test_without_tuning_the_same_model_gives_the_same_program(tmp_path: Path) -> None:
    """Whatever a cache has."""
    cache(tmp_path).add({PROBLEM: RULE})
    sources = []
    for _ in range(2):
        _, partition, measured = compiled(tmp_path, "off")
        assert not measured
        assert not partition.executable.spec.tuned
        sources.append(partition.executable.spec.source)
        partition.release()
    assert sources[0] == sources[1]
    assert sources[0] == compile_partition(graph_of(product()), {"x": (60, 96)}, TARGET).source


@pytest.mark.parametrize("tuning", ["fast", "full"])
def test_a_device_is_measured_once(tmp_path: Path, tuning: str) -> None:
    """The second compilation takes what the first found, and both give the same numbers."""
    skip_without_cpu_first()
    _, plain, _ = compiled(tmp_path, "off")
    _, first, measured = compiled(tmp_path, tuning)
    assert measured == 1
    _, second, again = compiled(tmp_path, tuning)
    assert again == 0
    assert first.executable.spec.tuned == second.executable.spec.tuned
    assert list(first.executable.spec.tuned) == [PROBLEM]
    assert first.executable.spec.source == second.executable.spec.source
    (right,) = plain.run([X])
    for partition in (first, second):
        np.testing.assert_allclose(partition.run([X])[0], right, rtol=1e-5, atol=1e-5)
    for partition in (plain, first, second):
        partition.release()


def test_a_measured_tiling_is_what_the_kernel_has(tmp_path: Path) -> None:
    skip_without_cpu_first()
    cache(tmp_path).add({PROBLEM: RULE})
    _, partition, measured = compiled(tmp_path)
    assert not measured
    (call,) = partition.executable.spec.calls
    assert call.tasks == 112 // 4  # panels of one vector of four channels
    np.testing.assert_allclose(partition.run([X])[0], X @ _weights(), rtol=1e-5, atol=1e-5)
    partition.release()


def _weights() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((96, 112)).astype(np.float32)


def test_a_reloaded_context_measures_nothing(tmp_path: Path) -> None:
    """Programs for shapes that it meets take over what the payload recorded."""
    skip_without_cpu_first()
    kept, elsewhere = tmp_path / "kept", tmp_path / "elsewhere"
    cache(kept).add({PROBLEM: RULE})
    ep, partition, _ = compiled(kept, rows="rows")
    partition.run([X])
    data = payload(ep, partition)
    (variant,) = read_payload(memoryview(data), TARGET.alignment).variants
    assert variant.spec.tuned == {PROBLEM: RULE}
    graph = graph_of(product("rows"))
    other = FACTORY.create(options(elsewhere, "full") | {"max_variants": "1"})
    declared = PartitionIo(inputs=graph.inputs, outputs=graph.outputs)
    again = other.import_model(memoryview(data), declared)  # type: ignore[attr-defined]
    again.run([X[:50]])
    assert again.run([X])[0].shape == (60, 112)
    assert not elsewhere.exists()
    for held in (partition, again):
        held.release()


def test_a_session_tells_its_progress(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    config = ort.SessionOptions()
    config.set_progress_func(lambda *what: told.append(what))
    providers = [("OpenCLExecutionProvider", options(tmp_path))]
    ort.InferenceSession(product(), config, providers=providers).close()
    assert ("tuning kernels", 0, 1) in told


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[1]", b'{"format": 99}', b'{"format": 1, "identity": {}, "tuned": []}'],
)
def test_a_damaged_cache_is_said_and_written_anew(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    kept = cache(tmp_path)
    kept.add({PROBLEM: RULE})
    kept.path.write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert kept.read() == {}
    assert "will be written again" in caplog.text
    kept.add({PROBLEM: RULE})
    assert kept.read() == {PROBLEM: RULE}
    assert [p.name for p in tmp_path.iterdir()] == [kept.path.name]


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with caplog.at_level(logging.WARNING):
        _, partition, measured = compiled(blocked)
    assert measured == 1
    assert "is not written" in caplog.text
    partition.release()


def test_a_cache_keeps_the_newest(tmp_path: Path) -> None:
    many = {
        Problem(
            batch=1, rows=1, columns=n, taps=(1, 1), depth=8, width=8, packed=True, operands=0
        ): Tiling(Tile(1, 1, 1, 8), 4)
        for n in range(1, MOST_ROWS + 1)
    }
    kept = cache(tmp_path)
    kept.add(many)
    kept.add({PROBLEM: RULE})
    found = list(kept.read())
    assert len(found) == MOST_ROWS
    assert found[-1] == PROBLEM
    assert found[0].columns == 2
    content = json.loads(kept.path.read_text())
    assert content["format"] == FORMAT
    assert content["tuned"][-1]["columns"] == 60


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"wide": 61}, "a tile inside of"),
        ({"vector": 3}, "a tile inside of"),
        ({"panels": 99, "vector": 1, "wide": 60}, "a tile inside of"),
        ({"tasks": 0}, r"tuned\.tasks"),
        ({"depth": "96"}, r"tuned\.depth"),
        ({"packed": 1}, r"tuned\.packed"),
        ({"taps": [1]}, r"tuned\.taps"),
    ],
)
def test_a_tiling_that_cannot_be_is_refused(changed: dict[str, object], told: str) -> None:
    (row,) = rows_of({PROBLEM: RULE})
    assert read_tuned_rows([json.loads(json.dumps(row))]) == {PROBLEM: RULE}
    with pytest.raises(FormatError, match=told):
        read_tuned_rows([{**json.loads(json.dumps(row)), **changed}])


def test_what_is_tried_begins_with_the_rule_and_fits() -> None:
    for effort in EFFORTS.values():
        tried = candidates(PROBLEM, TARGET, effort)
        assert tried[0].tasks == TARGET.tasks
        assert len(set(tried)) == len(tried) <= effort.tiles + len(effort.shares)
        assert all(tiling.tile.fits(PROBLEM) for tiling in tried)


def test_another_word_for_tuning_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="tuning is 'most', expected one of off, fast, full"):
        FACTORY.create({"tuning": "most"})
