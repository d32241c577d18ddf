"""Stages of the OpenCL compiler, each by itself: views, memory, expressions, fusion, layout."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import helper, numpy_helper
from opencl_devices import first_working_device, skip_without_cpu_first
from small_models import model

from eps.opencl.compile.codegen.kernel import Kernel, share_evenly
from eps.opencl.compile.compile_partition import compile_partition
from eps.opencl.compile.expression import Arg, Call, ExpressionWriter, Literal, is_vectorisable
from eps.opencl.compile.fuse import fuse_pointwise
from eps.opencl.compile.ir import (
    Concat,
    Convolution,
    KernelGraph,
    MatMul,
    Op,
    Pointwise,
    Unsupported,
)
from eps.opencl.compile.layout import assign_layouts
from eps.opencl.compile.lower_graph import lower_graph
from eps.opencl.compile.memory_plan import nbytes, plan_memory
from eps.opencl.compile.port_uses import find_port_uses
from eps.opencl.compile.views import Storage, View, ordered_strides, plain_strides, reshape_view
from eps.opencl.runtime.describe_target import describe_target
from ort_lite.model import loader
from ort_lite.options import SessionOptions

if TYPE_CHECKING:
    import onnx

    from ort_lite.model.graph import Graph


def graph_of(proto: onnx.ModelProto) -> Graph:
    loaded = loader.load(proto.SerializeToString(), SessionOptions())
    whole = loader.resolve(loaded.model, {})
    return whole.extract(range(len(whole.nodes)), "whole")


def traced(proto: onnx.ModelProto) -> KernelGraph:
    graph = graph_of(proto)
    return lower_graph(graph, {info.name: tuple(info.type.shape) for info in graph.inputs})  # type: ignore[union-attr, arg-type, misc]


@pytest.mark.parametrize("seed", range(30))
def test_reshaping_a_view_is_what_numpy_does_without_a_copy(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = [int(n) for n in random.choice([1, 2, 3, 4], 4)]
    order = [int(a) for a in random.permutation(4)]
    flat = np.arange(int(np.prod(shape)), dtype=np.float32)
    strides = ordered_strides(shape, order)
    array = np.lib.stride_tricks.as_strided(flat, shape, [4 * s for s in strides])
    target = tuple(int(n) for n in random.permutation([n for n in shape if n > 1] or [1]))
    found = reshape_view(View(Storage(flat.size, "float32"), tuple(shape), strides), target)
    try:
        array.reshape(target, copy=False)
    except ValueError:
        assert found is None
        return
    if found is None:
        pytest.fail(f"{shape} {strides} reshapes to {target} without a copy")
    mine = np.lib.stride_tricks.as_strided(flat, target, [4 * s for s in found.strides])
    np.testing.assert_array_equal(mine, array.reshape(target))


def test_buffers_that_live_at_once_do_not_overlap() -> None:
    """And memory is less than the sum of all."""
    random = np.random.default_rng(3)
    buffers = [Storage(int(n), "float32") for n in random.integers(1, 5000, 40)]
    geometry = (1, 4, 4, 8, 1, 1, 1, 1)
    buffers += [Storage(128, "float32", geometry=geometry) for _ in range(10)]
    kernels = [
        Kernel("", tuple(buffers[i] for i in random.integers(0, 50, 3)), 1) for _ in range(60)
    ]
    plan = plan_memory(kernels, (), (), 128)
    used = {id(b): b for k in kernels for b in k.operands}
    first = {
        key: min(i for i, k in enumerate(kernels) if b in k.operands) for key, b in used.items()
    }
    last = {
        key: max(i for i, k in enumerate(kernels) if b in k.operands) for key, b in used.items()
    }
    for a, left in used.items():
        assert plan.places[a] % 128 == 0
        assert plan.places[a] + nbytes(left) <= plan.arena
        for b, right in used.items():
            if a == b or first[a] > last[b] or first[b] > last[a]:
                continue
            ends = plan.places[a] + nbytes(left), plan.places[b] + nbytes(right)
            assert ends[0] <= plan.places[b] or ends[1] <= plan.places[a]


def test_memory_with_a_border_is_shared_with_its_like_only() -> None:
    """Nothing writes into the zeros around an image."""
    bordered = Storage(512, "float32", geometry=(1, 8, 8, 8, 1, 1, 1, 1))
    like = Storage(512, "float32", geometry=(1, 8, 8, 8, 1, 1, 1, 1))
    other = Storage(512, "float32", geometry=(1, 4, 16, 8, 1, 1, 1, 1))
    plain = Storage(512, "float32")
    plan = plan_memory([Kernel("", (b,), 1) for b in (bordered, like, other, plain)], (), (), 128)
    places = [plan.places[id(b)] for b in (bordered, like, other, plain)]
    assert places[0] == places[1]
    assert len(set(places)) == 3


def test_a_part_that_occurs_twice_is_computed_once() -> None:
    x = Arg(0, "float32")
    gate = Call("sigmoid", (x,), "float32")
    writer = ExpressionWriter({0: "v"}, vector=8)
    writer.write(Call("mul", (gate, gate), "float32"))
    assert sum("ol_sigmoid" in line for line in writer.lines) == 1


def test_an_expression_with_an_integer_is_no_vector() -> None:
    number = Call("cast", (Arg(0, "int64"),), "float32")
    assert not is_vectorisable(number)
    assert is_vectorisable(Call("add", (Arg(0, "float32"), Literal(1.0, "float32")), "float32"))
    assert not is_vectorisable(Call("lt", (Arg(0, "float32"), Literal(1.0, "float32")), "bool"))


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def residual() -> onnx.ModelProto:
    """Two convolutions, the sum of their results through SiLU."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r"]),
        helper.make_node("Conv", ["r", "w2"], ["c2"]),
        helper.make_node("Add", ["c2", "r"], ["s"]),
        helper.make_node("Sigmoid", ["s"], ["g"]),
        helper.make_node("Mul", ["s", "g"], ["y"]),
    ]
    parts = {"w1": weights(8, 3, 3, 3), "b": weights(8), "w2": weights(8, 8, 1, 1)}
    return model(nodes, [("x", [1, 3, 6, 6])], [("y", [1, 8, 6, 6])], parts)


def kinds(ops: list[Op]) -> list[str]:
    return [type(op).__name__ for op in ops]


def test_bias_activation_and_residual_end_in_the_convolution() -> None:
    fused = fuse_pointwise(traced(residual()))
    assert kinds(fused.ops) == ["Convolution", "Convolution"]


def test_a_value_that_is_used_twice_is_not_computed_twice() -> None:
    """r goes into a convolution and into the sum: it stays a tensor of its own."""
    fused = fuse_pointwise(traced(residual()))
    first, second = fused.ops
    assert first.output in second.inputs


def test_a_product_of_a_batch_of_one_takes_bias_and_activation_in() -> None:
    """As in a transformer: [1, s, k] times a matrix, with no reshape between."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Gelu", ["s"], ["y"]),
    ]
    parts = {"w": weights(6, 8), "b": weights(8)}
    proto = model(nodes, [("x", [1, 4, 6])], [("y", [1, 4, 8])], parts)
    proto.opset_import[0].version = 20
    (op,) = fuse_pointwise(traced(proto)).ops
    assert isinstance(op, MatMul)
    assert op.epilogue is not None


def test_a_graph_output_stays() -> None:
    proto = residual()
    proto.graph.output.append(helper.make_empty_tensor_value_info("s"))
    fused = fuse_pointwise(traced(proto))
    assert len(fused.outputs) == 2
    assert all(any(op.output is t for op in fused.ops) for t in fused.outputs)


def test_what_no_output_needs_is_gone() -> None:
    proto = residual()
    proto.graph.node.append(helper.make_node("Exp", ["r"], ["nobody"]))
    assert kinds(fuse_pointwise(traced(proto)).ops) == ["Convolution", "Convolution"]


def test_parts_of_a_concatenation_are_made_in_place() -> None:
    """And have the border that the convolution after it needs."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"]),
        helper.make_node("Conv", ["x", "w2"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Conv", ["c", "w3"], ["y"], pads=[1, 1, 1, 1]),
    ]
    parts = {"w1": weights(8, 3, 1, 1), "w2": weights(4, 3, 1, 1), "w3": weights(5, 12, 3, 3)}
    graph = fuse_pointwise(
        traced(model(nodes, [("x", [1, 3, 6, 6])], [("y", [1, 5, 6, 6])], parts))
    )
    steps = [s for s in assign_layouts(graph).steps if isinstance(s.op, Convolution)]
    assert not any(isinstance(s.op, Concat) for s in steps)
    first, second, last = steps
    assert first.output.buffer is second.output.buffer is last.inputs[0].buffer
    assert second.output.offset - first.output.offset == 8
    assert last.inputs[0].buffer.geometry == (1, 8, 8, 12, 1, 1, 1, 1)


def test_transposing_heads_moves_nothing() -> None:
    """[b, s, h*d] to [b, h, s, d] and back is strides."""
    split = numpy_helper.from_array(np.array([1, 4, 2, 3], np.int64), "split")
    join = numpy_helper.from_array(np.array([1, 4, 6], np.int64), "join")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Reshape", ["p", "split"], ["q"]),
        helper.make_node("Transpose", ["q"], ["h"], perm=[0, 2, 1, 3]),
        helper.make_node("MatMul", ["h", "v"], ["m"]),
        helper.make_node("Transpose", ["m"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "join"], ["y"]),
    ]
    parts = {"w": weights(6, 6), "v": weights(1, 2, 3, 3)}
    proto = model(nodes, [("x", [1, 4, 6])], [("y", [1, 4, 6])], parts)
    proto.graph.initializer.extend([split, join])
    steps = assign_layouts(fuse_pointwise(traced(proto))).steps
    assert [type(s.op).__name__ for s in steps] == ["MatMul", "MatMul"]
    assert steps[-1].output.shape == (1, 2, 4, 3)
    assert not any(isinstance(s.op, Pointwise) for s in steps)


def test_strides_of_an_order() -> None:
    assert ordered_strides((2, 3, 4, 5), (0, 2, 3, 1)) == (60, 1, 15, 3)
    assert plain_strides((2, 3, 4)) == (12, 4, 1)


def test_a_tensor_beyond_32_bit_indices_is_refused() -> None:
    """Before any memory of that size is asked for."""
    nodes = [helper.make_node("Add", ["x", "y"], ["z"])]
    proto = model(nodes, [("x", [65536, 1]), ("y", [1, 65536])], [("z", [65536, 65536])])
    target = describe_target(first_working_device())
    shapes = {"x": (65536, 1), "y": (1, 65536)}
    with pytest.raises(Unsupported, match="4294967296 elements"):
        compile_partition(graph_of(proto), shapes, target)


@pytest.mark.parametrize(
    ("rows", "width", "prefetches", "fetched"),
    [(64, 256, True, True), (64, 256, False, False), (1, 256, True, False), (64, 64, True, False)],
    ids=["many weights", "another compiler", "one row", "few weights"],
)
def test_weights_are_fetched_ahead_where_there_is_work_meanwhile(
    rows: int, width: int, *, prefetches: bool, fetched: bool
) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    ends = ([("x", [rows, width])], [("y", [rows, width])])
    proto = model(nodes, *ends, {"w": weights(width, width)})
    skip_without_cpu_first()
    target = replace(describe_target(first_working_device()), prefetches=prefetches)
    source = compile_partition(graph_of(proto), {"x": (rows, width)}, target).source
    assert ("__builtin_prefetch" in source) == fetched


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("most", [1, 2, 7, 16, 128])
def test_cores_end_their_tasks_at_about_the_same_time(cores: int, most: int) -> None:
    """Compared with every other size of a task that may be chosen."""
    for total in range(1, 200):
        tasks, each = share_evenly(total, most, cores)
        assert (tasks - 1) * each < total <= tasks * each
        assert tasks <= most
        others = [n for n in range(ceil(total / most), total + 1) if total > n * (2 * cores - 1)]
        if not others:
            continue
        shortest = min(ceil(ceil(total / n) / cores) * n for n in others)
        assert ceil(tasks / cores) * each <= shortest * 1.02


def test_memory_of_an_input_may_be_an_output_s_that_is_written_later() -> None:
    """Or in the same call where the kernel says so; there is no pair for each input and output."""
    count = 300
    sources, results = ([Storage(8, "float32") for _ in range(count)] for _ in "io")
    pairs = frozenset([(0, 1)])
    kernels = [
        Kernel("", (source, result), 1, in_place=pairs if i % 2 else frozenset())
        for i, (source, result) in enumerate(zip(sources, results, strict=True))
    ]
    views = [[View(one, (8,), (1,)) for one in side] for side in (sources, results)]
    uses = find_port_uses(kernels, *views)
    assert uses.in_place == {(i, i) for i in range(1, count, 2)}
    for source in range(0, count, 7):
        for result in range(0, count, 7):
            may = source < result or (source == result and source % 2 == 1)
            assert uses.may_share(source, result) == may
