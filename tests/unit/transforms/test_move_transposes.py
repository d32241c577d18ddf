"""Transposes cancel across the nodes between them; answers are onnxruntime's unoptimised ones."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from unit.transforms.transformed import Ran, agrees, floats, parsed, run

import ort_lite as ort

NAME = "TransposeOptimizer"
IN = "Transpose <perm = [0, 2, 3, 1]>"
OUT = "Transpose <perm = [0, 3, 1, 2]>"
CONSTANTS = """float[5] bias = {1, 2, 3, 4, 5}, float[5] slopes = {0.5, 1, 2, 3, 4},
    float one = {1},
    float[1, 3, 4, 5] whole = {WHOLE}, int64[2] space = {1, 2}, int64[1] last = {-1},
    int64[2] halves = {2, 3}, float[1, 1, 2, 5] more = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
    int64[8] edges = {0, 1, 0, 2, 0, 0, 3, 1}, float[5] steps = {0.25, 0.5, 0.125, 1, 2},
    float step = {0.125}, int8[5] zeros = {0, 1, 2, 3, 4}, int8 zero = {3},
    int64[1] gone = {0}""".replace("WHOLE", ", ".join(str(n % 7) for n in range(60)))
X = {"x": floats(2, 5, 3, 4)}


def ran(body: str, *, outputs: str = "y", opset: int = 17) -> tuple[Ran, int]:
    """After the model has given the right answer; and how many Transposes are left."""
    text = f"g (float[n, 5, 3, w] x) => ({outputs}) <{CONSTANTS}> {{ {body} }}"
    done = agrees(parsed(text, opset=opset), X, 1e-5)
    return done, done.left.count("Transpose")


@pytest.mark.parametrize(
    "between",
    [
        "b = Relu(a)",
        "h = LeakyRelu(a) i = Tanh(h) b = Clip(i, , one)",
        "b = Add(a, bias)",
        "b = Sub(bias, a)",
        "b = Mul(one, a)",
        "b = Add(whole, a)",
        "b = PRelu(a, slopes)",
        "h = Sigmoid(a) b = Mul(a, h)",
        "h = Greater(a, bias) b = Where(h, a, whole)",
        "h = ReduceMean <axes = [1, 2]> (a) b = Sub(a, h)",
        "h = ReduceSum <keepdims = 1> (a, space) b = Div(a, h)",
        "h, i = Split <axis = 3> (a, halves) k = Exp(h) b = Concat <axis = -1> (i, k)",
        "h, i = Split <axis = -1> (a, halves) b = Concat <axis = 3> (a, i)",
        "b = Pad(a, edges, one)",
        'b = Pad <mode = "edge"> (a, edges)',
        "q = QuantizeLinear(a, step, zero) b = DequantizeLinear(q, step, zero)",
        "q = QuantizeLinear <axis = 3> (a, steps, zeros) "
        "b = DequantizeLinear <axis = -1> (q, steps, zeros)",
        "h = Cast <to = 11> (a) b = Cast <to = 1> (h)",
    ],
)
def test_both_go(between: str) -> None:
    done, left = ran(f"a = {IN} (x) {between} c = {OUT} (b) y = Abs(c)")
    assert left == 0
    assert done.fired[NAME] == 2


def test_constants_of_the_same_rank_are_joined_in_the_other_order() -> None:
    text = f"""g (float[1, 5, 1, 2] x) => (y) <{CONSTANTS}> {{
        a = {IN} (x) b = Concat <axis = 1> (a, more) c = {OUT} (b) y = Abs(c) }}"""
    done = agrees(parsed(text), {"x": floats(1, 5, 1, 2)})
    assert "Transpose" not in done.left


@pytest.mark.parametrize(
    "between",
    [
        "b = Softmax(a)",  # which is fast along the last axis
        "h = ReduceSum <keepdims = 1> (a, last) b = Div(a, h)",
        "b = LayerNormalization(a, bias)",
        "h = Shape(a) i = Cast <to = 1> (h) k = ReduceSum <keepdims = 0> (i) b = Mul(a, k)",
        "h = CumSum(a, gone) b = Relu(h)",
    ],
)
def test_others_stay_between(between: str) -> None:
    done, left = ran(f"a = {IN} (x) {between} c = {OUT} (b) y = Abs(c)")
    assert left == 2
    assert NAME not in done.fired


def test_a_softmax_over_channels_moves_to_where_they_are_last() -> None:
    done, left = ran(f"a = {OUT} (x) b = Softmax <axis = 1> (a) c = {IN} (b) y = Abs(c)")
    assert left == 0
    assert done.fired[NAME] == 2


def test_a_residual_network_keeps_none() -> None:
    """As TensorFlow's: activations in NHWC, convolutions in NCHW."""
    body = "t0 = Relu(x) v = " + IN + " (t0) "
    for i in range(3):
        last = "v" if i == 0 else f"r{i - 1}"
        body += f"""i{i} = {OUT} ({last}) p{i} = MaxPool <kernel_shape = [1, 1]> (i{i})
            o{i} = {IN} (p{i}) m{i} = Mul(o{i}, slopes) s{i} = Add(m{i}, bias)
            r{i} = Add(s{i}, {last}) """
    done, left = ran(body + "y = ReduceMean <axes = [1, 2], keepdims = 0> (r2)")
    assert left == 0
    assert done.left.count("MaxPool") == 3


def test_a_value_that_others_read_is_transposed_for_them() -> None:
    body = f"a = {IN} (x) b = Relu(a) c = {OUT} (b) d = {OUT} (b) y = Add(c, d) z = Neg(b)"
    done, left = ran(body, outputs="y, z")
    assert left == 1
    assert done.outputs[1].shape == (2, 3, 4, 5)


def test_what_would_only_move_a_transpose_stays() -> None:
    done, left = ran(f"a = {IN} (x) b = Relu(a) c = {OUT} (b) y = Abs(c) z = Neg(a) w = Exp(b)",
                     outputs="y, z, w")  # fmt: skip
    assert left == 2
    assert NAME not in done.fired


def test_an_output_and_a_body_read_the_value_as_it_was() -> None:
    body = f"""a = {IN} (x) b = Relu(a) c = {OUT} (b) e = {OUT} (b) d = Add(c, e)
        s = ReduceSum <keepdims = 0> (x) f = Cast <to = 9> (s)
        y = If (f) <then_branch = t () => (p) {{ p = Neg(b) }},
                    else_branch = u () => (q) {{ q = Exp(b) }}>"""
    done, left = ran(body, outputs="y, d")
    assert left == 1
    assert done.outputs[0].shape == (2, 3, 4, 5)


def test_a_permutation_that_undoes_itself() -> None:
    turn = "Transpose <perm = [0, 3, 2, 1]>"
    done, left = ran(f"a = {turn} (x) b = Add(a, bias) c = {turn} (b) y = Abs(c)")
    assert left == 0
    assert done.fired[NAME] == 2


def test_axes_without_a_dimension_are_read() -> None:
    """Which the standard does not allow, and the CPU EP takes."""
    text = f"""g (float[2, 5, 3, 4] x) => (y) <int64 middle = {{1}}> {{
        a = {IN} (x) h = ReduceSum <keepdims = 1> (a, middle) c = {OUT} (h) y = Abs(c) }}"""
    done = run(parsed(text), X)
    np.testing.assert_allclose(done.outputs[0], np.abs(X["x"].sum(2, keepdims=True)), rtol=1e-5)


def test_permutations_of_too_many_dimensions_are_left_alone() -> None:
    turn = ", ".join(map(str, [*range(1, 100), 0]))
    back = ", ".join(map(str, [99, *range(99)]))
    text = f"""g (float x) => (y) <{CONSTANTS}> {{ a = Transpose <perm = [{turn}]> (x)
        b = Add(a, bias) c = Transpose <perm = [{back}]> (b) y = Abs(c) }}"""
    with pytest.raises(ort.OrtLiteError):
        run(parsed(text), {"x": np.float32(1)})


def test_it_can_be_switched_off() -> None:
    text = f"g (float[n, 5, 3, w] x) => (y) {{ a = {IN} (x) b = Relu(a) y = {OUT} (b) }}"
    with ort.InferenceSession(parsed(text), disabled_optimizers=[NAME]) as session:
        assert NAME not in session.explain().transforms


def random_model(seed: int) -> tuple[bytes, dict[str, np.ndarray[Any, Any]]]:
    """Elementwise nodes and others in two orders of the axes, with Transposes there and back."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    rank = draw.choice([3, 4, 5])
    perm = draw.sample(range(rank), rank)
    back = [int(axis) for axis in np.argsort(perm)]
    shape = [draw.randint(1, 4) for _ in range(rank)]
    sizes = [shape[axis] for axis in perm]
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(array: Any) -> str:
        constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(constants)}"))
        return f"c{len(constants) - 1}"

    def node(op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(nodes)}"
        nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    front, behind = ["x", "z"], []
    for _ in range(draw.randint(8, 24)):
        kind = draw.random()
        if kind < 0.2 or not behind:
            behind.append(node("Transpose", draw.choice(front), perm=perm))
            continue
        value = draw.choice(behind[-4:])
        if kind < 0.4:
            front.append(node("Transpose", value, perm=back))
        elif kind < 0.55:
            behind.append(node(draw.choice(["Relu", "Tanh", "Neg", "Abs"]), value))
        elif kind < 0.75:
            some = sizes[draw.randint(0, rank) :]
            other = numbers.standard_normal([draw.choice([n, 1]) for n in some], np.float32)
            pair = [value, constant(other)]
            behind.append(node(draw.choice(["Add", "Mul", "Sub", "Max"]), *draw.sample(pair, 2)))
        elif kind < 0.85:
            behind.append(node(draw.choice(["Add", "Min"]), value, draw.choice(behind)))
        elif kind < 0.9:
            behind.append(node("Softmax", value, axis=draw.randrange(-rank, rank)))
        else:
            axes = [a - draw.choice([0, rank]) for a in draw.sample(range(rank), 2)]
            total = node("ReduceSum", value, constant(np.array(axes)), keepdims=1)
            behind.append(node("Mul", value, total))
    return build_model(nodes, constants, shape), {"x": floats(*shape), "z": floats(*shape, seed=4)}


def build_model(nodes: list[Any], constants: list[Any], shape: list[int]) -> bytes:
    """A model of nodes that read x and z; what no other node reads is an output."""
    read = {name for each in nodes for name in each.input}
    last = [each.output[0] for each in nodes if each.output[0] not in read]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "z")]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in last]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    proto: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return proto


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_agree_with_onnxruntime(seed: int) -> None:
    model, feed = random_model(seed)
    agrees(model, feed, 2e-5)
