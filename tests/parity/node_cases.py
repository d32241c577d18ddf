"""Single nodes at realistic sizes, for comparison with onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Array = np.ndarray[Any, Any]

ORT_IR_VERSION = 10
"""Every onnxruntime that the tests run with reads it."""


@dataclass(frozen=True, kw_only=True)
class NodeCase:
    """One node and its inputs.

    Attributes:
        inputs: In order; None for an omitted one.
        constants: Which inputs are initializers.
        outputs: How many.
        rtol: Of the largest magnitude of an output, elementwise; 0 is bit for bit.
    """

    name: str
    op: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 17
    constants: Sequence[int] = ()
    outputs: int = 1
    rtol: float = 2e-6
    domain: str = ""
    domain_version: int = 1

    def model(self) -> bytes:
        """The node as a model."""
        names = ["" if x is None else f"i{i}" for i, x in enumerate(self.inputs)]
        node = helper.make_node(
            self.op,
            names,
            [f"o{i}" for i in range(self.outputs)],
            name="node",
            domain=self.domain,
            **self.attributes,
        )
        given = [(i, x) for i, x in enumerate(self.inputs) if x is not None]
        graph = helper.make_graph(
            [node],
            self.op,
            [
                helper.make_tensor_value_info(
                    f"i{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
                )
                for i, x in given
                if i not in self.constants
            ],
            [onnx.ValueInfoProto(name=f"o{i}") for i in range(self.outputs)],
            [numpy_helper.from_array(x, f"i{i}") for i, x in given if i in self.constants],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, self.domain_version))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ORT_IR_VERSION)
        return onnx.shape_inference.infer_shapes(model).SerializeToString()

    def feed(self) -> dict[str, Array]:
        """Inputs that are not constants."""
        return {
            f"i{i}": x
            for i, x in enumerate(self.inputs)
            if x is not None and i not in self.constants
        }


def normal(*shape: int, seed: int = 0, dtype: type = np.float32) -> Array:
    """Standard normal numbers."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(dtype)


def whole(low: int, high: int, *shape: int, dtype: type = np.int64) -> Array:
    """Integers in [low, high)."""
    return np.random.default_rng((7, *shape)).integers(low, high, shape).astype(dtype)


def ints(*values: int) -> Array:
    """An int64 vector."""
    return np.array(values, np.int64)
