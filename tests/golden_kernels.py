"""One small model for each generator of OpenCL C, compiled for targets that depend on no machine.

The kernels are checked in at tests/unit/opencl/kernels, to be read and to be compared with. After a
change of a generator, write them again and look at the difference:

    python tests/golden_kernels.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from device_models import NodeSet
from onnx import TensorProto, parser

from ctx_formats.lean_dataclass import dataclass, replace
from eps.opencl.compile.codegen.emit import PART
from eps.opencl.compile.compile_partition import compile_partition, schedule_partition
from eps.opencl.custom.declarations import parse_custom_kernels
from eps.opencl.program_spec import WeightArgument
from eps.opencl.target import Groups, Target
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    import onnx

    from eps.opencl.compile.ir import Op
    from eps.opencl.program_spec import LaunchSpec
    from ort_lite.model.graph import Graph

FOLDER = Path(__file__).parent / "unit" / "opencl" / "kernels"

CPU = Target(
    vector=8,
    accumulators=12,
    tasks=16,
    attributes="",
    double=True,
    alignment=128,
    late_binaries=False,
    calls_builtins=False,
    units=2,
    winograd=True,
)
"""A CPU with registers of eight floats, whose kernels have work-items that work alone."""
QUADS = replace(CPU, vector=16, quad_sums="OL_VNNI_NAME", multiplies_pairs=True)
"""A CPU with AVX-512 VNNI."""
GPU = Target(
    vector=4,
    accumulators=8,
    tasks=1 << 14,
    attributes="",
    double=True,
    alignment=128,
    late_binaries=False,
    calls_builtins=False,
    units=8,
    groups=Groups(size=64, units=8, local=1 << 15),
)
"""A GPU whose work-groups of 64 items share operands in local memory."""


@dataclass(frozen=True, slots=True)
class Case:
    """A model and the target that it is compiled for."""

    model: onnx.ModelProto
    target: Target = CPU


def _zeros(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype)


def _product_and_sum(rows: int) -> onnx.ModelProto:
    """A product with weights of few bits, whose sum with another value is all that is asked for."""
    nodes = NodeSet()
    weights = _zeros(40, 2, 16, dtype="uint8"), _zeros(40, 2)
    product = nodes.add(
        "MatMulNBits", [_zeros(rows, 64), *weights], (1, 2), K=64, N=40, block_size=32,
        domain="com.microsoft",
    )  # fmt: skip
    nodes.add("Add", [product, _zeros(rows, 40)])
    del nodes.model.graph.output[0]
    return nodes.model


def _node(op_type: str, *inputs: Any, fixed: tuple[int, ...] = (), **attributes: Any) -> Any:
    """A model of one node; `fixed` are the positions of its constants."""
    nodes = NodeSet()
    nodes.add(op_type, inputs, fixed, **attributes)
    return nodes.model


def _text(text: str) -> Any:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": 21, "com.acme": 1]>\n{text}')


POINTWISE = "main (float[64, 48] x, float[48] b) => (float[64, 48] y) {s = Add(x, b) y = Relu(s)}"
CUSTOM = """
#pragma ort_lite operator com.acme.Scaled <by: float = 1.0> \\
    (float[N, C] x, float[C] s) => (float[N, C] y)
void scaled(int item, __global const float* x, __global const float* s, __global float* y,
            int N, int C, float by) {
  y[item] = x[item] * s[item % C] * by;
}
"""
CUSTOM_NODE = (
    "main (float[64, 48] x, float[48] s) => (float[64, 48] y) {y = com.acme.Scaled (x, s)}"
)
X = _zeros(64, 48)
IMAGE = _zeros(1, 8, 12, 12)
SCALE, ZERO = np.float32(0.5), np.uint8(3)
BYTES = _zeros(6, 16, dtype="uint8")
ROWS = np.zeros((4, 1), np.int64)

CASES = {
    "pointwise": Case(_text(POINTWISE)),
    "pointwise_groups": Case(_text(POINTWISE), GPU),
    "transpose": Case(_node("Transpose", X, perm=[1, 0])),
    "concat": Case(_node("Concat", X, X, axis=1)),
    "reduce_rows": Case(_node("ReduceSum", X, np.array([1]), fixed=(1,))),
    "reduce_columns": Case(_node("ReduceMax", X, np.array([0]), fixed=(1,))),
    "reduce_groups": Case(_node("ReduceSum", X, np.array([1]), fixed=(1,)), GPU),
    "softmax_rows": Case(_node("Softmax", X, axis=1)),
    "softmax_columns": Case(_node("Softmax", X, axis=0)),
    "softmax_groups": Case(_node("Softmax", X, axis=1), GPU),
    "layer_norm": Case(_node("LayerNormalization", X, _zeros(48), _zeros(48), fixed=(1, 2))),
    "matmul": Case(_node("MatMul", X, _zeros(48, 32), fixed=(1,))),
    "matmul_groups": Case(_node("MatMul", X, _zeros(48, 32), fixed=(1,)), GPU),
    "gemm_epilogue": Case(_node("Gemm", X, _zeros(48, 32), _zeros(32), fixed=(1, 2))),
    "convolution": Case(_node("Conv", IMAGE, _zeros(16, 8, 3, 3), fixed=(1,), strides=[2, 2])),
    "convolution_depthwise": Case(_node("Conv", IMAGE, _zeros(8, 1, 3, 3), fixed=(1,), group=8)),
    "convolution_winograd": Case(
        _node("Conv", _zeros(1, 64, 24, 24), _zeros(64, 64, 3, 3), fixed=(1,), pads=[1] * 4)
    ),
    "convolution_transposed": Case(
        _node("ConvTranspose", IMAGE, _zeros(8, 4, 2, 2), fixed=(1,), strides=[2, 2])
    ),
    "pool": Case(_node("MaxPool", IMAGE, kernel_shape=[2, 2], strides=[2, 2])),
    "sample": Case(
        _node("Resize", IMAGE, None, np.array([1, 1, 2, 2], np.float32), fixed=(2,), mode="linear")
    ),
    "gather": Case(_node("Gather", X, np.zeros(5, np.int64))),
    "gather_nd": Case(_node("GatherND", X, ROWS)),
    "gather_elements": Case(_node("GatherElements", X, np.zeros((4, 48), np.int64))),
    "scatter_elements": Case(
        _node("ScatterElements", X, np.zeros((4, 48), np.int64), _zeros(4, 48), reduction="add")
    ),
    "scatter_nd": Case(_node("ScatterND", X, ROWS, _zeros(4, 48))),
    "fill": Case(_node("Pad", X, np.array([0, 2, 0, 1]), fixed=(1,))),
    "arg_max": Case(_node("ArgMax", X, axis=1)),
    "top_k": Case(_node("TopK", X, np.array([3]), fixed=(1,), outputs=2)),
    "cumulative_sum": Case(_node("CumSum", X, np.array(1), fixed=(1,))),
    "matmul_integer": Case(
        _node("MatMulInteger", BYTES, _zeros(16, 8, dtype="int8"), ZERO, fixed=(1, 2))
    ),
    "convolution_quantised": Case(
        _node(
            *("QLinearConv", _zeros(1, 8, 6, 6, dtype="uint8"), SCALE, ZERO),
            *(_zeros(16, 8, 3, 3, dtype="int8"), SCALE, np.int8(0), SCALE, ZERO),
            fixed=tuple(range(1, 8)),
        )
    ),
    "lstm": Case(
        _node(
            *("LSTM", _zeros(5, 2, 8), _zeros(1, 64, 8), _zeros(1, 64, 16)),
            fixed=(1, 2),
            hidden_size=16,
        )
    ),
    **{
        f"{kind.lower()}_shared": Case(
            _node(
                *(kind, _zeros(50, 1, 8), _zeros(1, gates * 112, 8), _zeros(1, gates * 112, 112)),
                *(None, np.zeros(1, np.int32) if kind == "LSTM" else None),
                fixed=(1, 2),
                hidden_size=112,
                **more,
            ),
            replace(CPU, multiplies_pairs=True),
        )
        for kind, gates, more in (("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1}))
    },
    **{
        f"lstm_quantised{name}": Case(
            _node(
                *("DynamicQuantizeLSTM", _zeros(5, batch, 8), _zeros(1, 8, 64, dtype="int8")),
                *(_zeros(1, 16, 64, dtype="int8"), None, None, None, None, None),
                *(np.ones(1, np.float32), np.zeros(1, np.int8)) * 2,
                fixed=(1, 2, 8, 9, 10, 11),
                hidden_size=16,
                domain="com.microsoft",
            ),
            target,
        )
        for name, batch, target in (("", 2, CPU), ("_rest", 6, CPU), ("_quads", 5, QUADS))
    },
    **{
        f"weights_4bit{name}": Case(
            _node(
                *("MatMulNBits", _zeros(rows, 64), _zeros(40, 2, 16, dtype="uint8"), _zeros(40, 2)),
                fixed=(1, 2),
                K=64,
                N=40,
                block_size=32,
                domain="com.microsoft",
            ),
            target,
        )
        for name, rows, target in (("", 1, CPU), ("_rows", 16, CPU), ("_groups", 2, GPU))
    },
    **{
        f"weights_4bit_bytes{name}": Case(
            _node(
                *("MatMulNBits", _zeros(rows, 64), _zeros(40, 1, 32, dtype="uint8"), _zeros(40, 1)),
                _zeros(40, 1, dtype="uint8"),
                fixed=(1, 2, 3),
                K=64,
                N=40,
                block_size=64,
                accuracy_level=4,
                domain="com.microsoft",
            ),
            replace(CPU, multiplies_pairs=True, prefetches=True),
        )
        for name, rows in (("", 1), ("_rows", 8))
    },
    **{
        f"weights_4bit_quads{name}": Case(
            _node(
                *("MatMulNBits", _zeros(rows, 64), _zeros(48, 2, 16, dtype="uint8"), _zeros(48, 2)),
                fixed=(1, 2),
                K=64,
                N=48,
                block_size=32,
                accuracy_level=4,
                domain="com.microsoft",
            ),
            QUADS,
        )
        for name, rows in (("", 1), ("_rows", 10))
    },
    "weights_4bit_sum": Case(_product_and_sum(1)),
    **{
        f"experts{name}": Case(
            _node(
                *("QMoE", _zeros(rows, 32), _zeros(rows, 2), _zeros(2, 64, 16, dtype="uint8")),
                *(_zeros(2, 64, 2), _zeros(2, 64), _zeros(2, 32, 16, dtype="uint8")),
                _zeros(2, 32, 2),
                fixed=(2, 3, 4, 5, 6),
                k=1,
                block_size=16,
                activation_type="swiglu",
                swiglu_fusion=1,
                domain="com.microsoft",
            ),
            target,
        )
        for name, rows, target in (("", 1, CPU), ("_rows", 5, CPU), ("_groups", 1, GPU))
    },
    "weight_rows": Case(
        _node(
            *("GatherBlockQuantized", _zeros(40, 32, dtype="uint8"), np.zeros(3, np.int64)),
            _zeros(40, 2),
            fixed=(0, 2),
            bits=4,
            block_size=32,
            domain="com.microsoft",
        )
    ),
    "group_attention": Case(
        _node(
            *("GroupQueryAttention", _zeros(1, 1, 64), None, None, _zeros(1, 1, 8, 16)),
            *(_zeros(1, 1, 8, 16), np.zeros(1, np.int32), np.int32(8)),
            *(_zeros(8, 8), _zeros(8, 8)),
            fixed=(6, 7, 8),
            outputs=3,
            num_heads=2,
            kv_num_heads=1,
            do_rotary=1,
            domain="com.microsoft",
        )
    ),
    "group_attention_prompt": Case(
        _node(
            *("GroupQueryAttention", _zeros(1, 16, 64), None, None, _zeros(1, 1, 24, 16)),
            *(_zeros(1, 1, 24, 16), np.zeros(1, np.int32), np.int32(24)),
            fixed=(6,),
            outputs=3,
            num_heads=2,
            kv_num_heads=1,
            local_window_size=9,
            domain="com.microsoft",
        )
    ),
    "group_attention_groups": Case(
        _node(
            *("GroupQueryAttention", _zeros(1, 6, 64), None, None, _zeros(1, 1, 24, 16)),
            *(_zeros(1, 1, 24, 16), np.zeros(1, np.int32), np.int32(24)),
            fixed=(6,),
            outputs=3,
            num_heads=2,
            kv_num_heads=1,
            local_window_size=9,
            domain="com.microsoft",
        ),
        GPU,
    ),
    "group_attention_half": Case(
        _node(
            *("GroupQueryAttention", np.zeros((1, 1, 64), np.float16), None, None),
            *(np.zeros((1, 1, 8, 16), np.float16), np.zeros((1, 1, 8, 16), np.float16)),
            *(np.zeros(1, np.int32), np.int32(8)),
            *(np.zeros((8, 8), np.float16), np.zeros((8, 8), np.float16)),
            fixed=(6, 7, 8),
            outputs=3,
            num_heads=2,
            kv_num_heads=1,
            do_rotary=1,
            domain="com.microsoft",
        )
    ),
    "half_cast": Case(_node("Cast", _zeros(3, 8), to=TensorProto.FLOAT16)),
    "custom": Case(_text(CUSTOM_NODE), replace(CPU, custom=parse_custom_kernels(CUSTOM))),
    "gru": Case(
        _node(
            *("GRU", _zeros(5, 2, 8), _zeros(1, 48, 8), _zeros(1, 48, 16)),
            fixed=(1, 2),
            hidden_size=16,
        )
    ),
}
"""By the name of the file."""


def write_kernels(case: Case) -> str:
    """The kernels of a model as OpenCL C, with their launches as comments."""
    spec = compile_partition(*_load(case), case.target)
    beginnings = (f"void {PART}", "__attribute__((reqd_work_group_size")
    kernels = spec.source[min(spec.source.find(text) % len(spec.source) for text in beginnings) :]
    nodes = [
        f"// {node.op_type}({', '.join(filter(None, node.input))})"
        for node in case.model.graph.node
    ]
    launches = [_launch(number, call) for number, call in enumerate(spec.calls)]
    return "\n".join([*nodes, "//", *launches, "", kernels])


def list_operations(case: Case) -> set[type[Op]]:
    """The kinds of operations of the kernel graph that a case has kernels generated for."""
    graph, shapes = _load(case)
    return {type(step.op) for step in schedule_partition(graph, shapes, case.target.custom).steps}


def _load(case: Case) -> tuple[Graph, dict[str, tuple[int, ...]]]:
    """The partition, and the shapes of its inputs."""
    loaded = loader.load(case.model.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    graph = whole.extract(range(len(whole.nodes)), "whole")
    shapes = {info.name: tuple(info.type.shape) for info in graph.inputs}  # type: ignore[union-attr, arg-type]
    return graph, shapes


def _launch(number: int, call: LaunchSpec) -> str:
    operands = ", ".join(
        f"weight {one.index}"
        if isinstance(one, WeightArgument)
        else f"arena[{one.offset}, +{one.size}]"
        for one in call.arguments
    )
    items = f"{call.tasks} work-items in groups of {call.group}"
    return f"// launch {number}: {call.kernel}({operands}), {items}"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        (FOLDER / f"{name}.cl").write_text(write_kernels(case), encoding="utf-8")
