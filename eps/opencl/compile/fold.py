"""Evaluates a node whose inputs are all known when compiling, by ONNX's own reference."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import replace
from ctx_formats.model_writer import model_bytes
from ctx_formats.onnx_model import GraphDef, Model, TensorType, ValueInfo
from eps.opencl.compile.ir import Unsupported
from ort_lite.model.tensor_values import onnx_data_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Node

    Array = np.ndarray[Any, np.dtype[Any]]

RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial")
_FAILURES = (ValueError, TypeError, RuntimeError, IndexError, KeyError, AttributeError)
"""What onnx.reference raises for nodes that it cannot evaluate (seen with onnx 1.23)."""
_IR_VERSION = 10


def evaluate(node: Node, values: Sequence[Array | None], opsets: Mapping[str, int]) -> list[Array]:
    """The outputs of a node, given its inputs (None where one is omitted).

    Raises:
        Unsupported: The reference has no such operator, or it gives no tensors.
    """
    import onnx  # noqa: PLC0415 - lazy: rare
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - lazy: rare

    if node.op_type in RANDOM:
        raise Unsupported("random numbers differ from run to run")
    feeds = {n: v for n, v in zip(node.inputs, values, strict=True) if n and v is not None}
    graph = GraphDef(
        name="fold",
        nodes=(replace(node, name=""),),
        inputs=tuple(
            ValueInfo(n, TensorType(onnx_data_type(v.dtype), v.shape)) for n, v in feeds.items()
        ),
        outputs=tuple(ValueInfo(name) for name in node.outputs if name),
    )
    model = Model(graph=graph, ir_version=_IR_VERSION, opset_imports=dict(opsets))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            proto = onnx.load_model_from_string(model_bytes(model))
            found = ReferenceEvaluator(proto).run(None, feeds)
    except _FAILURES as exc:
        raise Unsupported(f"its constant value cannot be computed: {exc}".split("\n")[0]) from exc
    if not all(isinstance(v, np.ndarray | np.generic) for v in found):
        raise Unsupported("its constant value is no tensor")
    return [np.asarray(v) for v in found]
