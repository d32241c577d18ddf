"""Random steps that move elements, of floats and of integers alike."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from parity.quantised_graphs.graph import (
    LARGEST,
    Exact,
    QuantisedGraph,
    on_floats,
    on_integers,
)

if TYPE_CHECKING:
    from parity.quantised_graphs.graph import Operand


def moved(
    graph: QuantisedGraph, value: Operand, op_type: str, *inputs: str, shape: tuple[int, ...],
    **attributes: Any,
) -> None:  # fmt: skip
    """Add a node whose result has the steps of its input."""
    if 0 < prod(shape) <= LARGEST:
        name = graph.node(op_type, value, *inputs, **attributes)
        graph.keep(replace(value, name=name, shape=shape))


@on_floats(4)
@on_integers(4)
def move(graph: QuantisedGraph, value: Operand) -> None:
    if isinstance(value, Exact) or value.is_byte:
        graph.pick(transpose, reshape, slices, concatenation, gather, split, pad, resize, pool)(
            graph, value
        )


def transpose(graph: QuantisedGraph, value: Operand) -> None:
    order = [int(axis) for axis in graph.random.permutation(value.rank)]
    moved(graph, value, "Transpose", shape=tuple(value.shape[i] for i in order), perm=order)


def reshape(graph: QuantisedGraph, value: Operand) -> None:
    shape: tuple[int, ...]
    match graph.pick("flat", "split", "join"):
        case "flat":
            shape = (value.shape[0], prod(value.shape[1:]))
        case "split" if value.shape[-1] % 2 == 0 and value.rank < 5:
            shape = (*value.shape[:-1], 2, value.shape[-1] // 2)
        case _:
            shape = (prod(value.shape[:2]), *value.shape[2:])
    asked = list(shape)
    asked[graph.integer(0, len(asked) - 1)] = -1
    moved(graph, value, "Reshape", graph.integers(*asked), shape=shape)


def slices(graph: QuantisedGraph, value: Operand) -> None:
    axis = graph.integer(0, value.rank - 1)
    start = graph.integer(0, value.shape[axis] - 1)
    end = graph.integer(start + 1, value.shape[axis])
    stride = graph.pick(1, 1, 2)
    shape = (*value.shape[:axis], (end - start + stride - 1) // stride, *value.shape[axis + 1 :])
    bounds = [graph.integers(each) for each in (start, end, axis, stride)]
    moved(graph, value, "Slice", *bounds, shape=shape)


def concatenation(graph: QuantisedGraph, value: Operand) -> None:
    """With values that have the same steps."""
    axis = graph.integer(0, value.rank - 1)
    around = value.shape[:axis] + value.shape[axis + 1 :]

    def fits(other: Operand) -> bool:
        return (
            other.rank == value.rank
            and other.shape[:axis] + other.shape[axis + 1 :] == around
            and type(other) is type(value)
            and (isinstance(other, Exact) or is_alike(other))
        )

    def is_alike(other: Operand) -> bool:
        return all(getattr(other, key) == getattr(value, key) for key in ("dtype", "scale", "zero"))

    other = graph.pick(*(v for v in graph.pool if fits(v)))
    shape = (*value.shape[:axis], value.shape[axis] + other.shape[axis], *value.shape[axis + 1 :])
    if prod(shape) > LARGEST:
        return
    made = replace(value, name=graph.node("Concat", value, other, axis=axis), shape=shape)
    if isinstance(made, Exact):
        made = replace(
            made, step=min(value.step, other.step), largest=max(value.largest, other.largest),
            typical=max(value.typical, other.typical),
        )  # fmt: skip
        if made.multiples > 2**24:
            return
    graph.keep(made)


def gather(graph: QuantisedGraph, value: Operand) -> None:
    axis = graph.integer(0, value.rank - 1)
    extent = value.shape[axis]
    indices = graph.random.integers(-extent, extent, graph.pick((3,), (1,)))
    shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
    moved(graph, value, "Gather", graph.constant(indices, "int64"), shape=shape, axis=axis)


def split(graph: QuantisedGraph, value: Operand) -> None:
    axis = graph.integer(0, value.rank - 1)
    if value.shape[axis] < 2:
        return
    first = graph.integer(1, value.shape[axis] - 1)
    sizes = first, value.shape[axis] - first
    names = graph.node("Split", value, graph.integers(*sizes), outputs=2, axis=axis)
    for name, size in zip(names, sizes, strict=True):
        shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
        graph.keep(replace(value, name=name, shape=shape))


def pad(graph: QuantisedGraph, value: Operand) -> None:
    """With what stands for 0, with nothing, or with another constant."""
    sizes = [graph.integer(0, 1) for _ in range(2 * value.rank)]
    shape = tuple(d + sizes[i] + sizes[i + value.rank] for i, d in enumerate(value.shape))
    inputs = [graph.integers(*sizes)]
    if isinstance(value, Exact):
        if graph.chance(0.3):
            inputs.append(graph.constant(8 * value.step))
    elif graph.chance(0.7):
        inputs.append(graph.constant(value.zero, value.dtype))
    mode = graph.pick("constant", "constant", "edge") if len(inputs) == 1 else "constant"
    moved(graph, value, "Pad", *inputs, shape=shape, mode=mode)


def resize(graph: QuantisedGraph, value: Operand) -> None:
    if value.rank != 4:
        return
    shape = (*value.shape[:2], value.shape[2] * 2, value.shape[3] * 2)
    scales = graph.constant([1, 1, 2, 2])
    mode, kind = "nearest", graph.pick("half_pixel", "asymmetric")
    more = {"nearest_mode": graph.pick("floor", "round_prefer_floor")}
    if isinstance(value, Exact) and value.multiples < 2**20 and graph.chance(0.5):
        mode, more, value = "linear", {}, replace(value, step=value.step / 16)
    moved(graph, value, "Resize", "", scales, shape=shape, mode=mode,
          coordinate_transformation_mode=kind, **more)  # fmt: skip


def pool(graph: QuantisedGraph, value: Operand) -> None:
    if value.rank != 4:
        return
    kernel, stride, edge = graph.integer(2, 3), graph.integer(1, 2), graph.integer(0, 1)
    sides = [(d + 2 * edge - kernel) // stride + 1 for d in value.shape[2:]]
    if min(sides) > 0:
        moved(graph, value, "MaxPool", shape=(*value.shape[:2], *sides), pads=[edge] * 4,
              kernel_shape=[kernel] * 2, strides=[stride] * 2)  # fmt: skip
