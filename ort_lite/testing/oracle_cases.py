"""Small graphs, seeded inputs for them, and the numbers that the ONNX reference gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.parser
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ort_lite.model.graph import Graph

    Array = np.ndarray[Any, np.dtype[Any]]
    Feed = Mapping[str, Array]

_GRAPHS: Mapping[str, str] = {
    "elementwise": """(float[2,3] x, float[2,3] y) => (float[2,3] z)
        { s = Add(x, y)  p = Mul(s, y)  z = Relu(p) }""",
    "affine": """(float[2,4] x) => (float[2,3] y)
        <float[4,3] w, float[3] b> { p = MatMul(x, w)  s = Add(p, b)  y = Relu(s) }""",
    "matmul": "(float[2,3,4] x, float[4,5] y) => (float[2,3,5] z) { z = MatMul(x, y) }",
    "conv": """(float[1,2,5,5] x) => (float[1,3,3,3] y)
        <float[3,2,3,3] w, float[3] b> { y = Conv(x, w, b) }""",
    "broadcast": "(float[3,1] x, float[1,4] y) => (float[3,4] z) { z = Add(x, y) }",
    "multi_output": """(float[2,3] x) => (float[2,3] up, float[2,3] down)
        { up = Relu(x)  down = Mul(x, x) }""",
    "consumed_inside": """(float[2,3] x) => (float[2,3] y, float[2,3] z)
        { y = Relu(x)  z = Add(y, x) }""",
    "diamond": """(float[4] x) => (float[4] y)
        { l = Relu(x)  r = Mul(x, x)  y = Add(l, r) }""",
    "passed_through": "(float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
    "constant_result": """(float[3] x) => (float[3] y, float[3] c)
        <float[3] w, float[3] v> { c = Add(w, v)  y = Mul(x, w) }""",
    "scalar": "(float x, float y) => (float z) { p = Mul(x, y)  z = Add(p, y) }",
    "zero_size": "(float[0,3] x, float[0,3] y) => (float[0,3] z) { z = Add(x, y) }",
    "empty_sum": "(float[2,0] x, float[0,3] y) => (float[2,3] z) { z = MatMul(x, y) }",
    "dynamic": """(float[n,4] x) => (float[n,3] y)
        <float[4,3] w> { p = MatMul(x, w)  y = Relu(p) }""",
    "int64": "(int64[5] x, int64[5] y) => (int64[5] z) { s = Add(x, y)  z = Sub(s, x) }",
    "int64_wide": "(int64[5] x, int64[5] y) => (int64[5] z) { p = Mul(x, y)  z = Add(p, x) }",
    "int32": "(int32[5] x, int32[5] y) => (int32[5] z) { p = Mul(x, y)  z = Add(p, x) }",
    "uint8": "(uint8[9] x, uint8[9] y) => (uint8[9] z) { z = Add(x, y) }",
    "float64": "(double[5] x, double[5] y) => (double[5] z) { p = Mul(x, y)  z = Add(p, x) }",
    "logic": """(float[4] x, float[4] y) => (bool[4] z)
        { g = Greater(x, y)  z = Not(g) }""",
}
"""In the text form of onnx.parser; a value that no node makes is a weight."""

CASE_NAMES = tuple(_GRAPHS)

_HEADER = '<ir_version: 10, opset_import: ["" : 17]> '
_FREE_SIZES = (3, 1, 5)
"""Sizes of free dimensions, one for each feed of a case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleCase:
    """A model and inputs for it.

    Attributes:
        feeds: Of the same shapes, unless the model has free dimensions.
    """

    name: str
    model: onnx.ModelProto
    feeds: tuple[Feed, ...]

    @property
    def has_weights(self) -> bool:
        """Whether another seed gives a model that computes something else."""
        return bool(self.model.graph.initializer)

    def encode(self) -> bytes:
        """The model as a file holds it."""
        return bytes(self.model.SerializeToString())

    def expected_outputs(self, feed: Feed, names: Sequence[str] | None = None) -> list[Array]:
        """The reference's values of `names`, or of the model's outputs in their order."""
        outputs = ReferenceEvaluator(self._with_outputs(names)).run(None, dict(feed))
        return [np.asarray(value) for value in outputs]

    def expected_partition_outputs(self, graph: Graph, feed: Feed) -> list[Array]:
        """The reference's values of a partition's outputs, in their order."""
        return self.expected_outputs(feed, [info.name for info in graph.outputs])

    def graph(self) -> Graph:
        """The model as an EP sees it: one partition that holds every node."""
        loaded = loader.load(self.encode(), SessionOptions())
        whole = loader.resolve(loaded.model, {})
        return whole.extract(range(len(whole.nodes)), self.name)

    def _with_outputs(self, names: Sequence[str] | None) -> onnx.ModelProto:
        if names is None:
            return self.model
        changed = onnx.ModelProto()
        changed.CopyFrom(self.model)
        del changed.graph.output[:]
        changed.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
        return changed


def oracle_case(name: str, seed: int = 0) -> OracleCase:
    """One of `CASE_NAMES`; `seed` makes the weights, the inputs are the same for all."""
    model = onnx.parser.parse_model(f"{_HEADER}{name} {_GRAPHS[name]}")
    _fill_weights(model.graph, np.random.default_rng(seed))
    for i, node in enumerate(model.graph.node):
        node.name = f"{name}_{i}"
    random = np.random.default_rng(1000)
    feeds = tuple(_feed(model.graph.input, random, size) for size in _FREE_SIZES)
    return OracleCase(name=name, model=model, feeds=feeds)


def contradictory_case() -> OracleCase:
    """A model whose types allow a first feed that the operator does not, and a good second."""
    text = "(float[n,4] x, float[m,4] y) => (float[k,4] z) { z = Add(x, y) }"
    model = onnx.parser.parse_model(f"{_HEADER}contradictory {text}")
    feeds = tuple(
        {name: np.ones((size, 4), np.float32) for name, size in zip("xy", sizes, strict=True)}
        for sizes in ((2, 3), (3, 3))
    )
    return OracleCase(name="contradictory", model=model, feeds=feeds)


def _fill_weights(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    for info in graph.value_info:
        graph.initializer.append(numpy_helper.from_array(_values(info, random, 1), info.name))
    del graph.value_info[:]


def _feed(
    inputs: Sequence[onnx.ValueInfoProto], random: np.random.Generator, free: int
) -> dict[str, Array]:
    return {info.name: _values(info, random, free) for info in inputs}


def _values(info: onnx.ValueInfoProto, random: np.random.Generator, free: int) -> Array:
    """Floats with every bit in use; integers of 31 bits, or of as many as the type has."""
    declared = info.type.tensor_type
    shape = [free if d.dim_param else d.dim_value for d in declared.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(declared.elem_type)
    if dtype.kind in "iu":
        return np.asarray(random.integers(-(1 << 30), 1 << 30, shape)).astype(dtype)
    return np.asarray(random.standard_normal(shape), dtype)
