"""Kernels made of work-groups, as GPUs get them, on the platforms that are here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from small_models import model

from eps.opencl import FACTORY
from eps.opencl.codegen.group_tiling import SHAPES, STEPS
from eps.opencl.device import choose, find_devices
from eps.opencl.identity import read_identity
from eps.opencl.options import OpenCLOptions
from eps.opencl.tilings import GroupTile, Problem, Tiling
from eps.opencl.tuning_cache import TuningCache
from ort_lite.execution_provider import FusedNode
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

    from ort_lite.model.graph import Graph

FOUND = choose(find_devices(), OpenCLOptions())


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
    blueprint = partition.executable.blueprint
    assert blueprint.tuned == {problem: tiling}
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
