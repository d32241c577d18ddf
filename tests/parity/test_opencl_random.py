"""Random operators, shapes and attributes through OpenCL, against ONNX's reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

OPENCL = "OpenCLExecutionProvider"
FLOAT = TensorProto.FLOAT


class Draft:
    """A model that grows node by node; `x` is its input."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}

    def input(self, *shape: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.random.standard_normal(shape).astype(np.float32)
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(self.random.standard_normal(shape).astype(np.float32))

    def constant(self, value: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = value
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def pick(self, *values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def model(self) -> onnx.ModelProto:
        out = self.nodes[-1].output[0]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(n, FLOAT, v.shape) for n, v in self.inputs.items()],
            [helper.make_empty_tensor_value_info(out)],
            [numpy_helper.from_array(v, n) for n, v in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def convolution(d: Draft, x: str, channels: int, rows: int) -> tuple[str, int]:
    groups = d.pick(1, 1, 1, channels, 2 if channels % 2 == 0 else 1)
    out = d.pick(1, 2, 3, 5, 8, 17) * groups if groups < channels else channels
    kernel, stride, dilation = d.pick(1, 2, 3), d.pick(1, 1, 2), d.pick(1, 1, 2)
    pads = [int(v) for v in d.random.integers(0, 3, 4)]
    if rows + min(pads[0] + pads[2], pads[1] + pads[3]) < (kernel - 1) * dilation + 1:
        kernel = 1
    name = d.node(
        "Conv",
        x,
        d.weight(out, channels // groups, kernel, kernel),
        *([d.weight(out)] if d.pick(1, 0) else []),
        group=groups,
        strides=[stride, stride],
        dilations=[dilation, dilation],
        pads=pads,
    )
    return name, out


def network(d: Draft) -> None:
    """Convolutions with what stands between them in real networks."""
    channels, rows = d.pick(1, 3, 4, 8, 9, 16, 33), d.pick(5, 8, 11)
    x = d.input(d.pick(1, 2), channels, rows, d.pick(rows, rows + 3))
    y, out = convolution(d, x, channels, rows)
    first = y = d.node(d.pick("Relu", "Sigmoid", "HardSwish"), y)
    match d.pick("residual", "concat", "pool", "split", "resize", "gate", "deep"):
        case "residual":
            z = d.node("Conv", y, d.weight(out, out, 1, 1))
            y = d.node("Relu", d.node("Add", z, first))
        case "concat":
            z = d.node("Conv", y, d.weight(7, out, 3, 3), pads=[1, 1, 1, 1])
            both = d.node("Concat", z, first, axis=1)
            again = d.node("Concat", both, d.node("Neg", z), axis=1)
            y = d.node("Conv", again, d.weight(6, 14 + out, 3, 3), pads=[1, 1, 1, 1])
        case "pool":
            kind, pads = (
                d.pick("MaxPool", "AveragePool"),
                d.pick([0] * 4, [1, 1, 1, 1], [0, 1, 1, 0]),
            )
            y = d.node(kind, y, kernel_shape=[2, 2], strides=[1, 1], pads=pads)
        case "split":
            y = d.node("Slice", y, *(d.constant(np.array([v])) for v in (0, max(1, out // 2), 1)))
            y = d.node("Transpose", y, perm=[0, 2, 3, 1])
        case "resize":
            mode = d.pick("nearest", "linear")
            scales = d.constant(np.array([1, 1, 2, 1.5], np.float32))
            y = d.node("Resize", y, "", scales, mode=mode)
        case "gate":
            gate = d.node("Sigmoid", d.node("GlobalAveragePool", y))
            y = d.node("Mul", y, gate)
        case "deep":
            kernel, stride = d.pick(2, 3, 4), d.pick(1, 2, 3)
            w = d.weight(out, 5, kernel, kernel)
            y = d.node("ConvTranspose", y, w, strides=[stride, stride], pads=[0, 0, 0, 0])
            y = d.node("Tanh", d.node("Add", y, d.weight(5, 1, 1)))


def encoder(d: Draft) -> None:
    """Attention by hand, with layer normalisation and GELU."""
    batch, words, heads, size = d.pick(1, 2), d.pick(1, 5, 16), d.pick(1, 3), d.pick(4, 8, 24)
    width = heads * size
    x = d.input(batch, words, width)
    split = d.constant(np.array([batch, words, heads, size], np.int64))
    q, k, v = (
        d.node(
            "Transpose",
            d.node(
                "Reshape",
                d.node("Add", d.node("MatMul", x, d.weight(width, width)), d.weight(width)),
                split,
            ),
            perm=perm,
        )
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = d.node("Mul", d.node("MatMul", q, k), d.constant(np.array(0.3, np.float32)))
    mask = d.input(batch, 1, 1, words)
    weights = d.node("Softmax", d.node("Add", scores, mask), axis=d.pick(-1, 3))
    mixed = d.node("Transpose", d.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    flat = d.node("Reshape", mixed, d.constant(np.array([batch, words, width], np.int64)))
    y = d.node("LayerNormalization", d.node("Add", flat, x), d.weight(width), d.weight(width))
    erf = d.node("Erf", d.node("Div", y, d.constant(np.array(1.4142135, np.float32))))
    one = d.constant(np.array(1.0, np.float32))
    y = d.node("Mul", y, d.node("Add", erf, one))
    d.node(
        d.pick("ReduceMean", "ReduceMax", "ReduceL2"),
        y,
        axes=[d.pick(0, 1, 2)],
        keepdims=d.pick(0, 1),
    )


def arithmetic(d: Draft) -> None:
    """Broadcasts, strides and reductions of odd sizes."""
    shape = [int(n) for n in d.random.integers(1, 9, d.pick(1, 2, 3, 4))]
    x, y = d.input(*shape), d.input(*(n if d.pick(1, 0) else 1 for n in shape))
    z = d.node(d.pick("Add", "Mul", "Sub", "Max", "Min"), x, y)
    z = d.node(d.pick("Exp", "Tanh", "Erf", "Sqrt", "Softplus", "Elu"), d.node("Abs", z))
    axis = int(d.random.integers(len(shape)))
    match d.pick("reduce", "softmax", "pad", "where", "gather", "tile", "cast"):
        case "reduce":
            axes = sorted({axis, int(d.random.integers(len(shape)))})
            kind = d.pick("ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd")
            d.node(kind, d.node("Transpose", z), axes=axes, keepdims=d.pick(0, 1))
        case "softmax":
            d.node(d.pick("Softmax", "LogSoftmax"), z, axis=axis)
        case "pad":
            pads = d.constant(d.random.integers(0, 3, 2 * len(shape)))
            d.node("Pad", z, pads, d.constant(np.array(2.5, np.float32)))
        case "where":
            less = d.node("Less", z, x)
            d.node("Where", d.node("Not", less), z, y)
        case "gather":
            n = shape[axis]
            picks = d.random.integers(-n, n, (2, 3))
            d.node("Gather", z, d.constant(picks), axis=axis)
        case "tile":
            d.node("Tile", z, d.constant(d.random.integers(1, 4, len(shape))))
        case "cast":
            whole = d.node("Cast", z, to=TensorProto.INT64)
            more = d.node("Mul", whole, d.constant(np.array(3, np.int64)))
            d.node("Cast", d.node("Mod", more, d.constant(np.array(5, np.int64))), to=FLOAT)


def check(write: Callable[[Draft], None], seed: int, platform: str) -> None:
    draft = Draft(seed)
    write(draft)
    model = draft.model()
    (right,) = ReferenceEvaluator(model).run(None, draft.inputs)
    providers = [(OPENCL, {"platform": platform})]
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    with ort.InferenceSession(model.SerializeToString(), options, providers) as session:
        (found,) = session.run(None, draft.inputs)
        counts = session.explain().node_counts()
    assert list(counts) == [OPENCL], counts
    assert found.dtype == right.dtype  # type: ignore[union-attr] # an array
    largest = float(np.abs(right).max(initial=0))
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5 * largest + 1e-6)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("write", [network, encoder, arithmetic], ids=lambda w: w.__name__)
def test_it_gives_the_references_numbers(write: Callable[[Draft], None], seed: int) -> None:
    check(write, seed, "")


@pytest.mark.usefixtures("working_pocl")
@pytest.mark.parametrize("seed", range(100, 102))
@pytest.mark.parametrize("write", [network, encoder, arithmetic], ids=lambda w: w.__name__)
def test_pocl_gives_the_references_numbers(write: Callable[[Draft], None], seed: int) -> None:
    check(write, seed, "portable")
