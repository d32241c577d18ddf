"""Kernels made of work-groups, as GPUs get them, on the platforms that are here."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from device_models import NodeSet
from onnx import helper
from onnx.reference import ReferenceEvaluator
from opencl_devices import first_working_device
from small_models import model

from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from eps.opencl import FACTORY, provider
from eps.opencl.compile.codegen.group_tiling import SHAPES, STEPS, in_smaller_groups
from eps.opencl.compile.tilings import GroupTile, Problem, Tiling
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.identity import read_identity
from eps.opencl.target import Groups, Target
from eps.opencl.tuning.cache import TuningCache
from eps.opencl.tuning.rows import read_tuned_rows, rows_of
from ort_lite.ep.interface import FusedNode
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

    from ort_lite.model.graph import Graph

FOUND = first_working_device()


def random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def graph_of(proto: onnx.ModelProto) -> Graph:
    loaded = loader.load(proto.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "whole")


def run_with_tiling(
    proto: onnx.ModelProto, x: np.ndarray[Any, Any], tiling: Tiling, problem: Problem, folder: Path
) -> np.ndarray[Any, Any]:
    """The result with a tiling that the device's cache holds."""
    TuningCache(folder, read_identity(FOUND)).add({problem: tiling})
    options = {"templates": "gpu", "tuning": "fast", "tuning_cache": str(folder)}
    ep = FACTORY.create(options)
    (partition,) = ep.compile([FusedNode(name="one", graph=graph_of(proto), progress=None)])
    spec = partition.executable.spec  # type: ignore[attr-defined] # of the OpenCL EP's class
    assert spec.tuned == {problem: tiling}
    (found,) = partition.run([x])
    partition.release()
    return found


def tiles(vector: int) -> list[GroupTile]:
    return [
        GroupTile(
            down=down,
            across=across,
            pixels=pixels,
            panels=channels // vector,
            vector=vector,
            step=step,
        )
        for (down, across, pixels, channels), step in zip(SHAPES, STEPS * len(SHAPES), strict=False)
    ]


@pytest.mark.parametrize("tile", tiles(2), ids=str)
def test_a_product_is_right_with_every_tile(tile: GroupTile, tmp_path: Path) -> None:
    """Sizes that no tile divides, a bias and a residual; three groups share each sum."""
    m, k, n = 75, 133, 90
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Add", ["q", "r"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    parts = {"w": random(k, n), "b": random(n), "r": random(m, n)}
    proto = model(nodes, [("x", [m, k])], [("y", [m, n])], parts)
    problem = Problem(
        batch=1, rows=1, columns=m, taps=(1, 1), depth=k, width=n, packed=True, operands=2,
        grouped=True,
    )  # fmt: skip
    x = random(m, k)
    (right,) = ReferenceEvaluator(proto).run(None, {"x": x})
    whole = -(-m // tile.rows) * -(-n // tile.channels)
    for wanted in (1, 3 * whole):
        found = run_with_tiling(proto, x, Tiling(tile, wanted), problem, tmp_path)
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4)


GROUPED = Problem(
    batch=1, rows=1, columns=75, taps=(1, 1), depth=133, width=90, packed=True, operands=0,
    grouped=True,
)  # fmt: skip
LARGE = GroupTile(down=16, across=16, pixels=4, panels=2, vector=2, step=16)
TILE = GroupTile(down=8, across=8, pixels=4, panels=2, vector=2, step=16)


def plain_product() -> onnx.ModelProto:
    """y = x w, as `GROUPED` says."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model([node], [("x", [75, 133])], [("y", [75, 90])], {"w": random(133, 90)})


def compiled(**options: str) -> tuple[Any, list[tuple[Any, ...]]]:
    """The product's partition in work-groups, and what was told of its progress."""
    told: list[tuple[Any, ...]] = []
    node = FusedNode(
        name="one", graph=graph_of(plain_product()), progress=lambda *what: told.append(what)
    )
    (partition,) = FACTORY.create({"templates": "gpu", **options}).compile([node])
    return partition, [what for what in told if what[0] == "tuning kernels"]


def test_tuning_measures_tiles_of_work_groups_once(tmp_path: Path) -> None:
    options = {"tuning": "full", "tuning_cache": str(tmp_path)}
    first, measured = compiled(**options)
    second, again = compiled(**options)
    assert (len(measured), len(again)) == (1, 0)
    (tiling,) = first.executable.spec.tuned.values()
    assert list(first.executable.spec.tuned) == [GROUPED]
    assert isinstance(tiling.tile, GroupTile)
    assert first.executable.spec.source == second.executable.spec.source
    x = random(75, 133)
    (right,) = ReferenceEvaluator(plain_product()).run(None, {"x": x})
    for partition in (first, second):
        np.testing.assert_allclose(partition.run([x])[0], right, rtol=1e-4, atol=1e-4)
        partition.release()


def test_by_the_rule_the_same_model_gives_the_same_kernels_of_work_groups() -> None:
    sources = []
    for _ in range(2):
        partition, measured = compiled()
        assert not measured
        sources.append(partition.executable.spec.source)
        partition.release()
    assert sources[0] == sources[1]
    assert "barrier(CLK_LOCAL_MEM_FENCE)" in sources[0]


def test_kernels_are_made_again_where_the_device_runs_smaller_groups(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a GPU with too few registers for a kernel: here by groups beyond the device's most."""
    most = FOUND.device.max_work_group_size

    def describe_too_large(*arguments: Any) -> Target:
        target = describe_target(*arguments)
        assert target.groups is not None
        return replace(target, groups=replace(target.groups, size=2 * most, local=0))

    monkeypatch.setattr(provider, "describe_target", describe_too_large)
    with caplog.at_level(logging.INFO):
        partition, _ = compiled()
    (runs,) = re.findall(r"of at most (\d+) items", caplog.text)  # a kernel's, or the device's
    assert int(runs) <= most
    assert {call.group for call in partition.executable.spec.calls} == {int(runs)}
    x = random(75, 133)
    (right,) = ReferenceEvaluator(plain_product()).run(None, {"x": x})
    np.testing.assert_allclose(partition.run([x])[0], right, rtol=1e-4, atol=1e-4)
    partition.release()


def test_smaller_groups_forget_what_was_measured_for_larger_ones() -> None:
    groups = Groups(size=256, units=8, local=1 << 15)
    target = replace(
        describe_target(FOUND, "gpu"),
        groups=groups,
        tuned={GROUPED: Tiling(TILE, 4), replace(GROUPED, depth=7): Tiling(LARGE, 4)},
    )
    smaller = in_smaller_groups(target, 100)
    assert smaller is not None
    assert smaller.groups == replace(groups, size=64)
    assert list(smaller.tuned) == [GROUPED]
    alone = in_smaller_groups(target, 1)
    assert alone is not None
    assert alone.groups == Groups(size=1, units=8, local=0)
    assert in_smaller_groups(target, 256) is None
    assert in_smaller_groups(describe_target(FOUND, "cpu"), 1) is None


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"down": 1 << 8}, "a tile of a work-group"),
        ({"pixels": 1 << 10}, "a tile of a work-group"),
        ({"step": 1 << 8}, "a tile of a work-group"),
        ({"step": 6}, "a tile of a work-group"),
        ({"vector": 4}, "a tile of a work-group"),
        ({"vector": 3}, "a tile of a work-group"),
        ({"across": 0}, r"tuned\.across"),
        ({"grouped": None}, r"tuned\.grouped"),
        ({"grouped": False}, r"tuned\.high"),
    ],
)
def test_a_tiling_of_groups_that_cannot_be_is_refused(
    changed: dict[str, object], told: str
) -> None:
    (row,) = rows_of({GROUPED: Tiling(TILE, 4)})
    assert read_tuned_rows([json.loads(json.dumps(row))]) == {GROUPED: Tiling(TILE, 4)}
    with pytest.raises(FormatError, match=told):
        read_tuned_rows([{**json.loads(json.dumps(row)), **changed}])


ROWS = ((3, 1), (2, 300), (700, 9), (2, 700, 40), (2, 3, 5, 130))
"""From rows that a group shares among many to one that all of its items fold, along and across."""


def folds(shape: tuple[int, ...]) -> NodeSet:
    """Everything that folds, along each axis of floats and of integers, and over two axes."""
    nodes = NodeSet()
    x = random(*shape)
    for axis in range(len(shape)):
        axes = np.array([axis])
        for kind in ("ReduceMean", "ReduceMax"):
            nodes.add(kind, [x, axes], fixed=[1], keepdims=axis % 2)
        nodes.add("ReduceMin", [(x * 100).astype(np.int32), axes], fixed=[1])
        nodes.add("Softmax", [x], axis=axis)
        equal = (x * 2).astype(np.int32).astype(np.float32)
        nodes.add("ArgMax", [equal], axis=axis, select_last_index=axis % 2)
    nodes.add("LogSoftmax", [x], axis=0)
    nodes.add("ReduceSum", [x, np.array([0, len(shape) - 1])], fixed=[1])
    nodes.add("LayerNormalization", [x, random(shape[-1]), random(shape[-1])], fixed=[1, 2])
    return nodes


@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_rows_of_every_length_fold_to_the_references_numbers(shape: tuple[int, ...]) -> None:
    nodes = folds(shape)
    right = ReferenceEvaluator(nodes.model).run(None, nodes.feeds)
    found = nodes.run_with({"templates": "gpu"}, times=2)
    for info, mine, theirs in zip(nodes.model.graph.output, found, right, strict=True):
        assert mine.dtype == theirs.dtype, info.name
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=info.name)


def test_the_first_of_several_nans_is_the_largest() -> None:
    """As numpy has it, wherever they lie among the lanes of a row."""
    x = random(6, 900)
    for row, columns in enumerate([(0,), (899,), (3, 700), (511, 512), (64, 128, 256)]):
        x[row, list(columns)] = np.nan
    nodes = NodeSet()
    nodes.add("ArgMax", [x], axis=1, keepdims=0)
    nodes.add("ArgMin", [x], axis=1, keepdims=0, select_last_index=1)
    nodes.add("ArgMax", [np.ascontiguousarray(x.T)], axis=0, keepdims=0)
    largest, smallest, across = nodes.run_with({"templates": "gpu"})
    np.testing.assert_array_equal(largest, np.argmax(x, 1))
    np.testing.assert_array_equal(smallest, np.argmin(x, 1))
    np.testing.assert_array_equal(across, np.argmax(x, 1))
