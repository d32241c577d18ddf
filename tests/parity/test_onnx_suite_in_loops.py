"""ONNX's own test suite in bodies of Loops that OpenVINO runs: each iteration gives the same.

OpenVINO writes some results over values from around a body, so that the second iteration would read
others. Every thirtieth case, and those that once were wrong; ORT_LITE_WHOLE_SUITE=1 runs all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx_backend import OpenVinoBackend, PreparedModel, suite

if TYPE_CHECKING:
    from collections.abc import Sequence

ITERATIONS = 3
LEFT_OUT = {
    "BitCast",  # of numbers that no EP but the CPU's holds, which the Reshape before it refuses
    "MeanVarianceNormalization",  # onnx's inference refuses it in a body
    "Resize",  # onnx's inference takes computed sizes for none
}
ALWAYS = ("test_add_", "test_instancenorm_", "test_mul_", "test_scatter", "test_softmax_")
"""Beginnings of names: with such cases iterations differ where OpenVINO overwrites values."""
FIRST_IR_WITH_OPEN_INITIALIZERS = 4


class LoopedModel(PreparedModel):
    """A session of a model whose outputs are those of all iterations, joined."""

    def run(self, inputs: Sequence[Any], **kwargs: Any) -> tuple[Any, ...]:
        joined = super().run(inputs, **kwargs)
        for results in joined:
            assert len(results) == ITERATIONS
            for result in results[1:]:
                assert _bits(result) == _bits(results[0])
        # Not results[-1]: a scalar string would be Python's.
        return tuple(results[-1:].reshape(results.shape[1:]) for results in joined)


class LoopedOpenVino(OpenVinoBackend):
    """Models in the body of a Loop that collects their outputs."""

    views = False
    """Whether the body gets its inputs flat, and gives them their shapes."""
    free = False
    """Whether no dimension of an input is known."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> PreparedModel:
        if not _may_be_looped(model):
            return super().prepare(model, device)
        looped = onnx.ModelProto.FromString(model.SerializeToString())
        _loop(looped.graph, views=cls.views, free=cls.free)
        looped.ir_version = max(looped.ir_version, FIRST_IR_WITH_OPEN_INITIALIZERS)
        return LoopedModel(super().prepare(looped, device)._session)


class LoopedViews(LoopedOpenVino):
    views = True


class LoopedFreeOpenVino(LoopedOpenVino):
    free = True


class LoopedFreeViews(LoopedOpenVino):
    views, free = True, True


def _bits(value: Any) -> Any:
    value = np.asarray(value)
    return value.tolist() if value.dtype == object else value.tobytes()


def _may_be_looped(model: onnx.ModelProto) -> bool:
    """Whether all inputs and outputs are tensors of known shape with elements."""
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    if opsets.get("", 0) < 13 or model.functions:
        return False
    if any(node.op_type in LEFT_OUT for node in model.graph.node):
        return False
    names = {tensor.name for tensor in model.graph.initializer}
    for info in (*model.graph.input, *model.graph.output):
        if not info.type.HasField("tensor_type") or info.name in names:
            return False
        dims = info.type.tensor_type.shape.dim
        if not all(dim.HasField("dim_value") and dim.dim_value > 0 for dim in dims):
            return False
    made = {name for node in model.graph.node for name in node.output}
    return all(info.name in made for info in model.graph.output)


def _loop(graph: onnx.GraphProto, *, views: bool, free: bool) -> None:
    """Put the nodes of a graph into the body of a Loop."""
    before, inside, shapes = [], [], []
    renamed: dict[str, str] = {}
    for info in graph.input:
        dims = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        if views and dims:
            renamed[info.name] = f"{info.name}/in"
            before.append(
                helper.make_node("Reshape", [f"{info.name}/in", "flat"], [f"{info.name}/flat"])
            )
            shapes.append(
                helper.make_tensor(f"{info.name}/dims", TensorProto.INT64, [len(dims)], dims)
            )
            inside.append(
                helper.make_node("Reshape", [f"{info.name}/flat", f"{info.name}/dims"], [info.name])
            )
    inputs = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in graph.input]
    outputs = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in graph.output]
    for info in inputs:
        info.name = renamed.get(info.name, info.name)
        if free:
            for axis, dim in enumerate(info.type.tensor_type.shape.dim):
                dim.dim_param = f"{info.name}_{axis}"
    collected = [f"{info.name}/all" for info in outputs]
    body = helper.make_graph(
        [helper.make_node("Identity", ["loop/go"], ["loop/on"]), *inside, *graph.node],
        "body",
        [
            helper.make_tensor_value_info("loop/number", TensorProto.INT64, []),
            helper.make_tensor_value_info("loop/go", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("loop/on", TensorProto.BOOL, []), *outputs],
    )
    loop = helper.make_node("Loop", ["loop/trips", "loop/first"], collected, body=body)
    constants = [
        helper.make_tensor("loop/trips", TensorProto.INT64, [], [ITERATIONS]),
        helper.make_tensor("loop/first", TensorProto.BOOL, [], [True]),
        helper.make_tensor("flat", TensorProto.INT64, [1], [-1]),
        *shapes,
    ]
    del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:]
    graph.node.extend([*before, loop])
    graph.initializer.extend(constants)
    graph.input.extend(inputs)
    graph.output.extend(
        helper.make_tensor_value_info(name, info.type.tensor_type.elem_type, None)
        for name, info in zip(collected, outputs, strict=True)
    )


BACKENDS = (LoopedOpenVino, LoopedViews, LoopedFreeOpenVino, LoopedFreeViews)
globals().update(
    {
        f"{backend.__name__}{name}": cases
        for backend in BACKENDS
        for name, cases in suite(backend, __name__, every=30, always=ALWAYS).items()
    }
)
