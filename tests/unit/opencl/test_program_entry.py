"""On Intel's CPU runtime a program has one kernel, which calls what else would be kernels."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from opencl_devices import all_devices

from ctx_formats.lean_dataclass import replace
from eps.opencl import FACTORY
from eps.opencl.program_spec import ENTRY
from eps.opencl.runtime.describe_target import describe_target
from ort_lite.ep.interface import FusedNode, PartitionIo
from ort_lite.model import loader
from ort_lite.options import SessionOptions
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from eps.opencl.runtime.device import ListedDevice
    from ort_lite.model.graph import Graph

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
picking (int64[6] i, float[40, 24] table, float[24, 24] w, float[24] b) => (float[6, 24] y) {
  rows = Gather <axis = 0> (table, i)
  product = MatMul (rows, w)
  shifted = Add (product, b)
  sum = Add (shifted, rows)
  p = Softmax <axis = -1> (sum)
  y = Mul (p, b)
}"""
"""Kernels of few and of more parameters; that of Gather, with its flag, is none of the longest."""
MODEL = parser.parse_model(TEXT)
DEVICES = all_devices()


def is_intels_cpu(found: ListedDevice) -> bool:
    return found.kind == "CPU" and found.platform.vendor.startswith("Intel")


INTEL = [found for found in DEVICES if is_intels_cpu(found)]


@pytest.fixture(scope="module")
def graph() -> Graph:
    loaded = loader.load(MODEL.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "picking")


@pytest.fixture(params=INTEL, ids=lambda found: found.name)
def device(request: pytest.FixtureRequest) -> str:
    found: ListedDevice = request.param
    return found.name


def feed(index: int = 39) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(6)
    shapes = {"table": (40, 24), "w": (24, 24), "b": (24,)}
    values = {name: random.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    return {"i": np.array([0, 7, 3, 3, 21, index], np.int64), **values}


def values(graph: Graph, index: int = 39) -> list[np.ndarray[Any, Any]]:
    given = feed(index)
    return [given[info.name] for info in graph.inputs]


def compiled(graph: Graph, device: str, *, entry: bool = True) -> tuple[Any, Any]:
    """The EP, and the partition that it made."""
    ep: Any = FACTORY.create({"device": device})
    ep._builder._target = replace(ep._target, one_entry=entry)
    (partition,) = ep.compile([FusedNode(name="picking", graph=graph)])
    return ep, partition


def test_intels_cpus_alone_get_programs_of_one_kernel() -> None:
    for found in DEVICES:
        assert describe_target(found).one_entry == is_intels_cpu(found), found.label
        assert not describe_target(found, "gpu").one_entry


def test_the_entry_calls_what_would_be_kernels_to_the_same_bits(graph: Graph, device: str) -> None:
    _, one = compiled(graph, device)
    _, many = compiled(graph, device, entry=False)
    names = many.executable.spec.kernels
    assert len(names) > 2
    assert one.executable.spec.functions == names
    assert one.executable.spec.kernels == (ENTRY,)
    theirs = cl.Program.from_int_ptr(one.executable.programs[0].handle)
    assert theirs.get_info(cl.program_info.KERNEL_NAMES) == ENTRY
    (mine,), (right,) = one.run(values(graph)), many.run(values(graph))
    np.testing.assert_array_equal(mine, right)
    (expected,) = ReferenceEvaluator(MODEL).run(None, feed())
    np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)


def test_a_bad_index_is_told_though_other_functions_have_more_parameters(
    graph: Graph, device: str
) -> None:
    _, partition = compiled(graph, device)
    (checking,) = [call for call in partition.executable.spec.calls if call.checks]
    assert len(checking.arguments) + 1 < partition.executable.spec.most_arguments
    with pytest.raises(InvalidArgument, match="out of the range"):
        partition.run(values(graph, index=40))
    partition.run(values(graph))


def test_a_payload_says_whether_its_program_has_an_entry(graph: Graph, device: str) -> None:
    declared = PartitionIo(inputs=graph.inputs, outputs=graph.outputs)
    given, found = values(graph), []
    for entry in (True, False):
        ep, partition = compiled(graph, device, entry=entry)
        out = io.BytesIO()
        ep.export_model(partition, out)
        payload = out.getvalue()
        restored = ep.import_model(memoryview(payload), declared)
        assert restored.executable.spec.entry == entry
        found += [partition.run(given)[0], restored.run(given)[0]]
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
