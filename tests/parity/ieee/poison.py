"""Cases of ONNX's backend suite with special values among their float inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonedCase:
    """One node with the inputs of its suite case.

    Attributes:
        name: Of the case.
        operator: "Relu", "com.microsoft:Gelu".
        model: With every float input a runtime input.
        feed: Inputs by name, unpoisoned.
    """

    name: str
    operator: str
    model: bytes
    feed: Mapping[str, Array]

    def poisoned(self, value: float) -> dict[str, Array]:
        """The inputs with `value` at the first and every fifth place after it of float32 ones."""
        return {name: _poisoned(array, value) for name, array in self.feed.items()}


def node_cases() -> Iterator[PoisonedCase]:
    """Cases of one node with a float32 input, whose inputs and outputs are all tensors."""
    for case in suite_cases():
        model = onnx.ModelProto.FromString(case.model)
        nodes = model.graph.node
        if len(nodes) != 1 or not all(isinstance(x, np.ndarray | np.generic) for x in case.inputs):
            continue
        names = [info.name for info in model.graph.input]
        feed = {n: np.asarray(x) for n, x in zip(names, case.inputs, strict=False)}
        if not any(x.dtype == np.float32 and x.size for x in feed.values()):
            continue
        domain = f"{nodes[0].domain}:" if nodes[0].domain else ""
        yield PoisonedCase(
            name=case.name, operator=f"{domain}{nodes[0].op_type}", model=case.model, feed=feed
        )


def _poisoned(array: Array, value: float) -> Array:
    if array.dtype != np.float32 or not array.size:
        return array
    found = array.copy()
    found.reshape(-1)[::EVERY] = value
    return found
