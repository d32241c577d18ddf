"""One-node cases with special values among their float inputs: of ONNX's suite, and drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from contrib_operator_cases import CONTRIB_WRITERS
from device_models import NodeSet
from operator_cases import WRITERS
from operator_chance import Chance
from parity.ieee.written_cases import sum_of, written_cases

from eps.openvino.evidence.cases import suite_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Array = np.ndarray[Any, np.dtype[Any]]

POISONS: Mapping[str, float] = {
    "nan": np.nan,
    "+inf": np.inf,
    "-inf": -np.inf,
    "-0.0": -0.0,
    "denormal": 1e-40,
}
"""Special values by name; all but NaN and the infinities are finite."""

EVERY = 5
"""One element in so many is replaced, so that each output of a reduction meets one or none."""
DRAWS = 3
"""Drawn cases for each operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonedCase:
    """One node with its inputs.

    Attributes:
        name: Of the case.
        operator: "Relu", "com.microsoft:Gelu".
        model: With every float input a runtime input, apart from weights of drawn cases.
        feed: Inputs by name, unpoisoned.
        twin: A model that computes the same with an operator that others know, or empty.
    """

    name: str
    operator: str
    model: bytes
    feed: Mapping[str, Array] = field(repr=False)
    twin: bytes = field(default=b"", repr=False)

    def poisoned(self, value: float) -> dict[str, Array]:
        """The inputs with `value` at the first and every fifth place after it of float ones."""
        return {name: _poisoned(array, value) for name, array in self.feed.items()}


def node_cases() -> Iterator[PoisonedCase]:
    """Cases of one node with a float input, whose inputs and outputs are all tensors."""
    yield from _suite()
    yield from _drawn()


def _suite() -> Iterator[PoisonedCase]:
    for case in suite_cases():
        model = onnx.ModelProto.FromString(case.model)
        nodes = model.graph.node
        if len(nodes) != 1 or not all(isinstance(x, np.ndarray | np.generic) for x in case.inputs):
            continue
        names = [info.name for info in model.graph.input]
        feed = {n: np.asarray(x) for n, x in zip(names, case.inputs, strict=False)}
        if _has_floats(feed):
            yield PoisonedCase(
                name=case.name, operator=operator_of(nodes[0]), model=case.model, feed=feed
            )


def _drawn() -> Iterator[PoisonedCase]:
    """Drawn cases of the operators that the OpenCL EP computes, and of some others."""
    for domain, writers in (("", WRITERS), ("com.microsoft", CONTRIB_WRITERS)):
        for op_type, write in writers.items():
            for seed in range(DRAWS):
                nodes = NodeSet()
                write(Chance(nodes, op_type, domain, seed))
                if len(nodes.model.graph.node) == 1 and _has_floats(nodes.feeds):
                    yield _of_nodes(nodes, f"drawn {op_type} {seed}")
    for name, nodes in written_cases():
        yield _of_nodes(nodes, f"drawn {name}")


def _of_nodes(nodes: NodeSet, name: str) -> PoisonedCase:
    model = onnx.shape_inference.infer_shapes(nodes.model)
    operator = operator_of(model.graph.node[0])
    return PoisonedCase(
        name=name,
        operator=operator,
        model=model.SerializeToString(),
        feed=nodes.feeds,
        twin=sum_of(nodes) if operator == "com.microsoft:BiasAdd" else b"",
    )


def operator_of(node: onnx.NodeProto) -> str:
    """ "Relu", or "com.microsoft:Gelu"."""
    return f"{node.domain}:{node.op_type}" if node.domain else node.op_type


def _has_floats(feed: Mapping[str, Array]) -> bool:
    return any(array.dtype.kind == "f" and array.size for array in feed.values())


def _poisoned(array: Array, value: float) -> Array:
    if array.dtype.kind != "f" or not array.size:
        return array
    with np.errstate(under="ignore"):
        special = array.dtype.type(value)
    found = array.copy()
    found.reshape(-1)[::EVERY] = special
    return found
