"""A random case for every operator that has OpenCL kernels: shapes, types, attributes, values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto
from operator_chance import binary, on_axis, reduction, typed_unary, unary
from quantised_operator_cases import (
    conv_integer,
    dequantize,
    matmul_integer,
    qlinear_conv,
    qlinear_matmul,
    quantize,
    recurrent,
)

if TYPE_CHECKING:
    from operator_chance import Chance, Writer

    Array = np.ndarray[Any, np.dtype[Any]]


def divisor(c: Chance, dtype: str, shape: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """Not zero; an integer one is positive and constant, as kernels take it."""
    if dtype == "float32":
        return c.floats(*c.broadcast(shape), low=0.5), ()
    return c.integers(dtype, *c.broadcast(shape), low=1), (1,)


def division(c: Chance) -> None:
    shape, dtype = c.shape(), str(c.pick("float32", "int32", "int64", "uint8"))
    y, fixed = divisor(c, dtype, shape)
    c.add(c.values(*shape, types=(dtype,)), y, fixed=fixed)


def modulo(c: Chance) -> None:
    shape, dtype = c.shape(), str(c.pick("int32", "int64", "float32"))
    y, fixed = divisor(c, dtype, shape)
    c.add(c.values(*shape, types=(dtype,)), y, fixed=fixed, fmod=int(dtype == "float32"))


def power(c: Chance) -> None:
    shape = c.shape()
    c.add(c.floats(*shape, low=0.1), c.floats(*c.broadcast(shape)))


def variadic(c: Chance) -> None:
    shape = c.shape()
    operands = [c.floats(*shape), *(c.floats(*c.broadcast(shape)) for _ in range(c.pick(0, 1, 2)))]
    c.add(*operands)


def shift(c: Chance) -> None:
    shape, dtype = c.shape(), str(c.pick("uint8", "uint32", "uint64"))
    amount = c.integers(dtype, *shape, high=8)
    c.add(c.integers(dtype, *shape, high=200), amount, direction=c.pick("LEFT", "RIGHT"))


def clip(c: Chance) -> None:
    low, high = np.array(-1, np.float32), np.array(1.5, np.float32)
    c.add(c.floats(*c.shape()), c.pick(low, None), c.pick(high, None), fixed=(1, 2))


def cast(c: Chance) -> None:
    kinds = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "bool": TensorProto.BOOL}
    x = c.values(*c.shape(), types=("float32", "int64", "uint8", "bool"))
    c.add(x, to=kinds[str(c.pick(*kinds))])


def prelu(c: Chance) -> None:
    shape = c.shape()
    c.add(c.floats(*shape), c.floats(*c.broadcast(shape)))


def where(c: Chance) -> None:
    shape = c.shape()
    condition = c.values(*c.broadcast(shape), types=("bool",))
    dtype = str(c.pick("float32", "int64", "bool"))
    values = c.values(*shape, types=(dtype,)), c.values(*c.broadcast(shape), types=(dtype,))
    c.add(condition, *values)


def special(c: Chance) -> None:
    x = c.floats(*c.shape())
    x[x > 2] = c.pick(np.nan, np.inf)
    x[x < -2] = -np.inf
    c.add(x)


def image(c: Chance, channels: int | None = None) -> Array:
    n = channels or int(c.pick(1, 3, 8, 9))
    return c.floats(c.pick(1, 2), n, c.pick(6, 9), c.pick(7, 10))


def window(c: Chance) -> dict[str, Any]:
    kernel = [c.pick(1, 2, 3), c.pick(2, 3)]
    pads = [int(c.random.integers(0, k)) for k in kernel]
    return {
        "kernel_shape": kernel,
        "strides": [c.pick(1, 2), c.pick(1, 2)],
        "pads": [*pads, *pads],
    }


def convolution(c: Chance) -> None:
    groups = c.pick(1, 1, 3)
    depth, width = c.pick(1, 4, 5), c.pick(1, 2, 9, 17)
    chosen = window(c)
    w = c.floats(groups * width, depth, *chosen["kernel_shape"])
    bias = [c.floats(groups * width)] if c.pick(0, 1) else []
    c.add(image(c, groups * depth), w, *bias, fixed=(1, 2), group=groups, **chosen)


def transposed(c: Chance) -> None:
    groups, depth, width = c.pick(1, 2), c.pick(1, 4), c.pick(1, 2, 9)
    chosen = {**window(c), "pads": [0, 0, 0, 0]}
    w = c.floats(groups * depth, width, *chosen["kernel_shape"])
    c.add(image(c, groups * depth), w, fixed=(1,), group=groups, **chosen)


def pool(**attributes: Any) -> Writer:
    return lambda c: c.add(image(c), **window(c), **attributes)


def over_image(c: Chance) -> None:
    c.add(image(c))


def matmul(c: Chance) -> None:
    batch, m, k, n = c.shape(1, 2), c.pick(1, 5, 17), c.pick(1, 3, 16), c.pick(1, 4, 9, 33)
    b = c.floats(*(batch if c.pick(0, 1) else ()), k, n)
    c.add(c.floats(*batch, m, k), b, fixed=c.pick((), (1,)))


def gemm(c: Chance) -> None:
    m, k, n, turned = c.pick(1, 5, 17), c.pick(3, 16), c.pick(1, 9, 33), c.pick(0, 1)
    b = c.floats(*((n, k) if turned else (k, n)))
    c.add(
        c.floats(m, k), b, c.floats(n), fixed=c.pick((), (1, 2)), transB=turned, alpha=0.5, beta=2.0
    )


def einsum(c: Chance) -> None:
    equation, shapes = c.pick(
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))), ("ij,kj->ik", ((3, 8), (9, 8)))
    )
    c.add(*(c.floats(*s) for s in shapes), equation=equation)


def batch_norm(c: Chance) -> None:
    x = image(c)
    n = x.shape[1]
    rest = [c.floats(n), c.floats(n), c.floats(n), c.floats(n, low=0.5)]
    c.add(x, *rest, fixed=(1, 2, 3, 4))


def instance_norm(c: Chance) -> None:
    x = image(c)
    c.add(x, c.floats(x.shape[1]), c.floats(x.shape[1]), fixed=(1, 2))


def group_norm(c: Chance) -> None:
    c.add(image(c, 6), c.floats(6), c.floats(6), num_groups=c.pick(2, 3))


def layer_norm(c: Chance) -> None:
    shape = c.shape(2)
    c.add(c.floats(*shape), c.floats(shape[-1]), c.pick(None, c.floats(shape[-1])), fixed=(1, 2))


def root_mean_norm(c: Chance) -> None:
    shape = c.shape(2)
    c.add(c.floats(*shape), c.floats(shape[-1]), fixed=(1,), axis=-1)


def concat(c: Chance) -> None:
    shape = list(c.shape(2))
    axis = int(c.random.integers(0, len(shape)))
    parts = [[*shape[:axis], c.pick(1, 3, 8), *shape[axis + 1 :]] for _ in range(3)]
    c.add(*(c.floats(*part) for part in parts), axis=axis)


def depth_to_space(c: Chance) -> None:
    c.add(c.floats(2, 8, 3, 5), blocksize=2, mode=c.pick("DCR", "CRD"))


def space_to_depth(c: Chance) -> None:
    c.add(c.floats(2, 3, 4, 6), blocksize=2)


def expand(c: Chance) -> None:
    shape = c.shape()
    c.add(c.floats(*c.broadcast(shape)), np.array(shape), fixed=(1,))


def eye(c: Chance) -> None:
    c.add(c.floats(5, 7), k=c.pick(-1, 0, 2))


def flatten(c: Chance) -> None:
    shape = c.shape(2)
    c.add(c.floats(*shape), axis=c.pick(0, 1, len(shape)))


def picks(c: Chance, n: int, *shape: int) -> Array:
    return c.random.integers(-n, n, shape)


def gather(c: Chance) -> None:
    shape = c.shape(2)
    axis = int(c.random.integers(0, len(shape)))
    x = c.values(*shape, types=("float32", "int64", "uint8"))
    c.add(x, picks(c, shape[axis], 2, 3), axis=axis)


def gather_elements(c: Chance) -> None:
    x = c.floats(4, 5, 6)
    c.add(x, picks(c, 5, 4, 7, 6), axis=1)


def gather_nd(c: Chance) -> None:
    c.add(c.floats(4, 4, 5), picks(c, 4, 3, 2))


def scatter_elements(c: Chance) -> None:
    x = c.floats(4, 5, 3)
    places = np.argsort(c.random.random((4, 5, 3)), axis=1)[:, :2].copy()
    c.add(x, places, c.floats(4, 2, 3), axis=1)


def scatter_nd(c: Chance) -> None:
    rows = c.random.permutation(6)[:3].reshape(3, 1)
    c.add(c.floats(6, 4), rows, c.floats(3, 4))


def one_hot(c: Chance) -> None:
    c.add(c.random.integers(-5, 7, (3, 4)), np.array(5), np.array([2.0, 9.0]), fixed=(1, 2))


def pad(c: Chance) -> None:
    shape = c.shape(2)
    amounts = c.random.integers(0, 3, 2 * len(shape))
    c.add(c.floats(*shape), amounts, np.array(1.5, np.float32), fixed=(1, 2))


def reshape(c: Chance) -> None:
    c.add(c.floats(2, 6, 5), np.array(c.pick([3, -1], [0, 10, 3], [60])), fixed=(1,))


def resize(c: Chance) -> None:
    scales = np.array([1, 1, 2, c.pick(1.5, 2)], np.float32)
    c.add(image(c), None, scales, fixed=(2,), mode=c.pick("nearest", "linear"))


def upsample(c: Chance) -> None:
    c.add(image(c), np.array([1, 1, 2, 2], np.float32), fixed=(1,), mode="nearest")


def reverse_sequence(c: Chance) -> None:
    c.add(c.floats(5, 3, 4), np.array([5, 1, 3]), time_axis=0, batch_axis=1)


def slice_(c: Chance) -> None:
    starts, ends, axes, steps = [1, -1], [7, -9], [0, 2], [c.pick(1, 2), -1]
    x = c.values(8, 3, 6, types=("float32", "int64"))
    c.add(x, *(np.array(v) for v in (starts, ends, axes, steps)), fixed=(1, 2, 3, 4))


def split(c: Chance) -> None:
    c.add(c.floats(3, 9, 2), np.array([2, 7]), fixed=(1,), outputs=2, axis=1)


def squeeze(c: Chance) -> None:
    c.add(c.floats(3, 1, 5), np.array([1]), fixed=(1,))


def unsqueeze(c: Chance) -> None:
    c.add(c.floats(3, 5), np.array([0, 2]), fixed=(1,))


def tile(c: Chance) -> None:
    shape = c.shape(1, 3)
    c.add(c.floats(*shape), c.random.integers(1, 4, len(shape)), fixed=(1,))


def top_k(c: Chance) -> None:
    c.add(c.floats(3, 17), np.array([4]), fixed=(1,), outputs=2, largest=c.pick(0, 1))


def transpose(c: Chance) -> None:
    shape = c.shape(2)
    c.add(c.floats(*shape), perm=[int(a) for a in c.random.permutation(len(shape))])


def trilu(c: Chance) -> None:
    c.add(c.floats(2, 5, 6), np.array(c.pick(-1, 0, 2)), fixed=(1,), upper=c.pick(0, 1))


def running(c: Chance) -> None:
    c.add(c.floats(3, 5, 4), np.array(1), fixed=(1,), reverse=c.pick(0, 1), exclusive=c.pick(0, 1))


def attention(c: Chance) -> None:
    batch, heads, words, seen, size = 2, c.pick(1, 3), c.pick(1, 5), c.pick(4, 9), c.pick(4, 8)
    q, k, v = (c.floats(batch, heads, n, size) for n in (words, seen, seen))
    c.add(q, k, v)


def rotary(c: Chance) -> None:
    angles = c.floats(7, 4)
    c.add(c.floats(2, 3, 5, 8), np.cos(angles), np.sin(angles), np.array([[0, 1, 2, 3, 6]] * 2))


def dropout(c: Chance) -> None:
    c.add(c.floats(*c.shape()))


FLOATS_AND_INTEGERS = ("float32", "int32", "int64", "uint8")
ARITHMETIC = binary(*FLOATS_AND_INTEGERS)
COMPARISON = binary("float32", "int32", "int64")
LOGIC = binary("bool")
BITS = binary("int32", "uint8", "int64")

WRITERS: dict[str, Writer] = {
    **dict.fromkeys(("Add", "Mul", "Sub"), ARITHMETIC),
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), COMPARISON),
    **dict.fromkeys(("And", "Or", "Xor"), LOGIC),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), BITS),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), variadic),
    **dict.fromkeys(("Acos", "Asin"), unary(-0.9, 0.9)),
    **dict.fromkeys(("Log", "Sqrt", "Reciprocal", "Acosh"), unary(1.1, 5)),
    **dict.fromkeys(
        (
            "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
            "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Round", "Selu", "Shrink",
            "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Swish", "Tanh", "ThresholdedRelu",
        ),
        unary(),
    ),
    "Atanh": unary(-0.9, 0.9), "Tan": unary(-1.2, 1.2), "Celu": unary(alpha=0.7),
    **dict.fromkeys(("Abs", "Neg", "Sign"), typed_unary("float32", "int32", "int64")),
    **dict.fromkeys(("Identity", "Shape", "Size"), typed_unary("float32", "int64", "bool")),
    "Not": typed_unary("bool"), "BitwiseNot": typed_unary("int32", "uint8"),
    **dict.fromkeys(("IsInf", "IsNaN"), special),
    "Div": division, "Mod": modulo, "Pow": power, "PRelu": prelu, "BitShift": shift,
    "Clip": clip, "Cast": cast, "CastLike": lambda c: c.add(c.floats(3, 5), np.array([1])),
    "Where": where, "Dropout": dropout,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceMean", "ReduceSumSquare"), reduction()),
    "ReduceSum": reduction(types=("float32", "int64")), "ReduceProd": reduction(0.5, 1.5),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), reduction(types=("float32", "int32"))),
    "ReduceLogSum": reduction(0.1), "ReduceLogSumExp": reduction(),
    **dict.fromkeys(("ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "Softmax"), on_axis()),
    "LpNormalization": on_axis(p=2), "MeanVarianceNormalization": over_image,
    "Conv": convolution, "ConvTranspose": transposed, "AveragePool": pool(),
    "MaxPool": pool(), "LpPool": pool(p=2), "GlobalLpPool": lambda c: c.add(image(c), p=2),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), over_image),
    "LRN": lambda c: c.add(image(c), size=3), "MatMul": matmul, "Gemm": gemm, "Einsum": einsum,
    "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm, "LayerNormalization": layer_norm,
    "RMSNormalization": root_mean_norm, "SimplifiedLayerNormalization": root_mean_norm,
    "Concat": concat, "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth,
    "Expand": expand, "EyeLike": eye, "Flatten": flatten, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "OneHot": one_hot, "Pad": pad,
    **dict.fromkeys(("Scatter", "ScatterElements"), scatter_elements), "ScatterND": scatter_nd,
    "Reshape": reshape, "Resize": resize, "Upsample": upsample, "Slice": slice_, "Split": split,
    "ReverseSequence": reverse_sequence, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Tile": tile, "TopK": top_k, "Transpose": transpose, "Trilu": trilu,
    **dict.fromkeys(("CumProd", "CumSum"), running),
    "LSTM": recurrent(4), "GRU": recurrent(3), "RNN": recurrent(1),
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": lambda c: c.add(c.floats(*c.shape()), outputs=3),
    "MatMulInteger": matmul_integer, "ConvInteger": conv_integer,
    "QLinearMatMul": qlinear_matmul, "QLinearConv": qlinear_conv,
    "Attention": attention, "RotaryEmbedding": rotary,
}  # fmt: skip
"""Operators of ai.onnx."""
