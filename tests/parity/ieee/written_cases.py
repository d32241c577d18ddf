"""Cases of operators that neither ONNX's suite nor a drawn case measures with float inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from contrib_operator_cases import CONTRIB_WRITERS
from device_models import NodeSet
from operator_chance import Chance

if TYPE_CHECKING:
    from collections.abc import Iterator

CAST_TARGETS = (
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.BOOL,
    onnx.TensorProto.INT8,
    onnx.TensorProto.UINT8,
    onnx.TensorProto.INT32,
    onnx.TensorProto.INT64,
)
CONTRIB = "com.microsoft"
ZERO = np.array(3, np.uint8)


def written_cases() -> Iterator[tuple[str, NodeSet]]:
    """Names, and one node each."""
    for target in CAST_TARGETS:
        yield f"Cast to {onnx.TensorProto.DataType.Name(target)}", _cast(target)
    yield "CastLike", _cast_like()
    yield "NonZero", _non_zero()
    yield "GatherND", _gather_nd()
    yield "ReduceLogSumExp", _reduce_log_sum_exp()
    yield "STFT", _stft()
    yield "QLinearConv", _qlinear_conv()
    yield "MatMulNBits", _matmul_nbits()
    yield "MatMulIntegerToFloat", _matmul_integer_to_float()
    yield "EmbedLayerNormalization", _embed_layer_normalization()
    yield "GatherBlockQuantized", _gather_block_quantized()
    yield "GroupQueryAttention", _group_query_attention()


def sum_of(nodes: NodeSet) -> bytes:
    """A model of Sum nodes instead of BiasAdd, which adds its inputs; nobody else computes it."""
    model = onnx.ModelProto.FromString(nodes.model.SerializeToString())
    for node in model.graph.node:
        node.op_type, node.domain = "Sum", ""
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def _line(*shape: int) -> np.ndarray:
    return np.linspace(-3, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _scales(count: int) -> list[np.ndarray]:
    return [np.full((), 0.05, np.float32) for _ in range(count)]


def _cast(target: int) -> NodeSet:
    nodes = NodeSet()
    nodes.add("Cast", [np.linspace(0, 20, 12, dtype=np.float32).reshape(3, 4)], to=target)
    return nodes


def _cast_like() -> NodeSet:
    nodes = NodeSet()
    nodes.add("CastLike", [_line(3, 4), np.zeros(1, np.float16)], fixed=(1,))
    return nodes


def _non_zero() -> NodeSet:
    nodes = NodeSet()
    nodes.add("NonZero", [np.arange(-6, 6, dtype=np.float32).reshape(3, 4)])
    return nodes


def _gather_nd() -> NodeSet:
    """Indices are constant, because an EP may not check those that it gets at runtime."""
    nodes = NodeSet()
    nodes.add("GatherND", [_line(4, 5), np.array([[0, 1], [2, 4], [1, 3], [0, 0]])], fixed=(1,))
    return nodes


def _reduce_log_sum_exp() -> NodeSet:
    """ReduceLogSumExp-11, which OpenVINO converts; it refuses -13 and later."""
    nodes = NodeSet(11)
    nodes.add("ReduceLogSumExp", [_line(3, 4, 5)], axes=[1])
    return nodes


def _stft() -> NodeSet:
    nodes = NodeSet()
    window = np.hanning(16).astype(np.float32)
    nodes.add("STFT", [_line(1, 64, 1), np.array(8), window, np.array(16)], fixed=(1, 2, 3))
    return nodes


def _qlinear_conv() -> NodeSet:
    random = np.random.default_rng(0)
    x, w = random.integers(0, 99, (1, 3, 6, 6)), random.integers(0, 99, (5, 3, 3, 3))
    x_scale, w_scale, y_scale = _scales(3)
    inputs = [x.astype(np.uint8), x_scale, ZERO, w.astype(np.uint8), w_scale, ZERO, y_scale, ZERO]
    nodes = NodeSet()
    nodes.add("QLinearConv", inputs, fixed=(2, 3, 5, 7))
    return nodes


def _matmul_nbits() -> NodeSet:
    """A [3, 32] times int4 weights [32, 8] in blocks of 16; com.microsoft MatMulNBits."""
    random = np.random.default_rng(0)
    nodes = NodeSet()
    weights = random.integers(0, 256, (8, 2, 8)).astype(np.uint8)
    scales = random.uniform(0.1, 1, 16).astype(np.float32)
    a = random.standard_normal((3, 32)).astype(np.float32)
    nodes.add(
        "MatMulNBits",
        [a, weights, scales],
        fixed=(1, 2),
        domain=CONTRIB,
        K=32,
        N=8,
        bits=4,
        block_size=16,
    )
    return nodes


def _matmul_integer_to_float() -> NodeSet:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 255, (5, 7)), random.integers(-63, 63, (7, 9))
    inputs = [a.astype(np.uint8), b.astype(np.int8), *_scales(2), ZERO, np.zeros((), np.int8)]
    nodes = NodeSet()
    nodes.add("MatMulIntegerToFloat", [*inputs, _line(9)], fixed=(1, 4, 5), domain=CONTRIB)
    return nodes


def _embed_layer_normalization() -> NodeSet:
    """A table of words that is an input; the other tables are constants."""
    drawn = NodeSet()
    CONTRIB_WRITERS["EmbedLayerNormalization"](Chance(drawn, "EmbedLayerNormalization", CONTRIB, 0))
    nodes, graph = NodeSet(), drawn.model.graph
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    values = [drawn.feeds.get(name, constants.get(name)) for name in graph.node[0].input]
    nodes.add("EmbedLayerNormalization", values, fixed=(3, 4, 5, 6), outputs=2, domain=CONTRIB)
    return nodes


def _gather_block_quantized() -> NodeSet:
    """Scales are an input."""
    random = np.random.default_rng(0)
    table, ids = random.integers(0, 256, (20, 64)).astype(np.uint8), np.arange(6).reshape(2, 3)
    sizes = {"bits": 8, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
    nodes = NodeSet()
    nodes.add(
        "GatherBlockQuantized", [table, ids, _line(20, 2)], fixed=(0,), domain=CONTRIB, **sizes
    )
    return nodes


def _group_query_attention() -> NodeSet:
    """Two new positions after a past of three, with 4 heads of 8 in 2 groups."""
    lengths, whole = np.full(1, 4, np.int32), np.array(5, np.int32)
    past = [_line(1, 2, 3, 8) for _ in range(2)]
    heads = {"num_heads": 4, "kv_num_heads": 2}
    nodes = NodeSet()
    nodes.add(
        "GroupQueryAttention",
        [_line(1, 2, 64), None, None, *past, lengths, whole],
        fixed=(6,),
        outputs=3,
        domain=CONTRIB,
        **heads,
    )
    return nodes
