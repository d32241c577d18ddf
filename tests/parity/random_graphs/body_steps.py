"""Random steps with bodies: If, Loop and Scan, which read values of the graphs around them."""

from __future__ import annotations

from onnx import TensorProto, helper
from parity.random_graphs.graph import RandomGraph, Value, step, tensor

SMALL = 2000
"""Elements that a body may compute with in each iteration."""


@step()
def branches(graph: RandomGraph, value: Value) -> Value | None:
    """If, on a condition that data or a constant decides."""
    if value.size > SMALL:
        return None
    condition = graph.constant(graph.chance(0.5), "bool")
    if graph.chance(0.7):
        total = graph.node("ReduceSum", value, keepdims=0)
        condition = graph.node("Greater", total, graph.constant(0))
    bodies = {}
    for key in ("then_branch", "else_branch"):
        body = graph.body()
        bodies[key] = body.to_graph([], [tensor(mixed(body, value))])
    return graph.add("If", condition, shape=value.shape, **bodies)


@step()
def loop(graph: RandomGraph, value: Value) -> Value | None:
    """Loop over a carried value; its sums of all iterations are a scan output."""
    if value.size > SMALL:
        return None
    times = graph.integer(1, 4)
    iteration, condition = graph.new_name(), graph.new_name()
    carried = Value(graph.new_name(), value.shape)
    body = graph.body(carried)
    after = body.add("Tanh", mixed(body, carried), shape=value.shape)
    total = Value(body.node("ReduceMean", after, keepdims=0), ())
    goes_on = body.node("Identity", condition)
    inputs = [
        helper.make_tensor_value_info(iteration, TensorProto.INT64, []),
        helper.make_tensor_value_info(condition, TensorProto.BOOL, []),
        tensor(carried),
    ]
    outputs = [
        helper.make_tensor_value_info(goes_on, TensorProto.BOOL, []), tensor(after), tensor(total),
    ]  # fmt: skip
    trips = graph.constant(times, "int64")
    names = graph.node("Loop", trips, "", value, outputs=2, body=body.to_graph(inputs, outputs))
    graph.values += [Value(names[0], value.shape), Value(names[1], (times,))]
    return graph.values[-2]


@step(ranks=range(2, 5))
def scan(graph: RandomGraph, value: Value) -> Value | None:
    """Scan over the first axis, forwards or backwards, with one state."""
    if value.size > SMALL or value.shape[0] > 12:
        return None
    shape = value.shape[1:]
    state, element = Value(graph.new_name(), shape), Value(graph.new_name(), shape)
    body = graph.body(state, element)
    together = body.add("Add", state, element, shape=shape)
    after = body.add("Tanh", mixed(body, together), shape=shape)
    result = body.add("Mul", after, element, shape=shape)
    inner = body.to_graph([tensor(state), tensor(element)], [tensor(after), tensor(result)])
    names = graph.node(
        "Scan", graph.constant(graph.floats(*shape)), value, outputs=2, body=inner,
        num_scan_inputs=1, scan_input_directions=[graph.pick(0, 1)],
    )  # fmt: skip
    graph.values += [Value(names[0], shape), Value(names[1], value.shape)]
    return graph.values[-1]


def mixed(body: RandomGraph, value: Value) -> Value:
    """A few steps in a body, whose last value's mean is added to `value`."""
    last = body.grow(body.integer(1, 4))
    mean = body.add("ReduceMean", last, shape=(), keepdims=0)
    scaled = body.add("Mul", mean, body.constant(0.1), shape=())
    return body.add("Add", value, scaled, shape=value.shape)
