"""Random steps that move, repeat and choose elements, with shapes that are constant or computed."""

from __future__ import annotations

from math import prod

import numpy as np
from parity.random_graphs.graph import LARGEST, RandomGraph, Value, step


@step()
def transpose(graph: RandomGraph, value: Value) -> Value:
    order = [int(axis) for axis in graph.random.permutation(value.rank)]
    return graph.add("Transpose", value, shape=[value.shape[i] for i in order], perm=order)


@step(ranks=range(6))
def reshape(graph: RandomGraph, value: Value) -> Value:
    first = graph.pick(*divisors(value.size))
    second = graph.pick(*divisors(value.size // first))
    shape = [first, second, value.size // first // second]
    if graph.chance(0.4):
        shape = [first, value.size // first]
    asked = list(shape)
    asked[graph.integer(0, len(asked) - 1)] = -1
    return graph.add("Reshape", value, graph.integers(*asked), shape=shape)


@step(ranks=range(2, 6))
def reshape_to_a_computed_shape(graph: RandomGraph, value: Value) -> Value:
    """The first dimensions of the value and -1, as exporters write `x.reshape(n, -1)`."""
    kept = graph.integer(1, value.rank - 1)
    whole = graph.node("Shape", value)
    if graph.chance(0.5):
        head = graph.node("Slice", whole, graph.integers(0), graph.integers(kept))
    else:
        head = graph.node("Gather", whole, graph.integers(*range(kept)), axis=0)
    asked = graph.node("Concat", head, graph.integers(-1), axis=0)
    shape = (*value.shape[:kept], prod(value.shape[kept:]))
    return graph.add("Reshape", value, asked, shape=shape)


@step()
def slices(graph: RandomGraph, value: Value) -> Value:
    """Of some axes, forwards and backwards, with bounds from either end."""
    rows, shape = [], list(value.shape)
    for axis in sorted({graph.integer(0, value.rank - 1) for _ in range(value.rank)}):
        extent = value.shape[axis]
        start = graph.integer(0, extent - 1)
        end = graph.integer(start + 1, extent)
        stride = graph.integer(1, 2)
        shape[axis] = (end - start + stride - 1) // stride
        if graph.chance(0.25):
            last = start - 1 if start > 0 else -extent - 1
            rows.append((end - 1, last, axis, -stride))
        else:
            past = 2**31 - 1 if end == extent and graph.chance(0.5) else end
            rows.append((start - graph.pick(0, extent), past, axis, stride))
    columns = [graph.integers(*column) for column in zip(*rows, strict=True)]
    return graph.add("Slice", value, *columns, shape=shape)


@step()
def concatenation(graph: RandomGraph, value: Value) -> Value | None:
    axis = graph.integer(0, value.rank - 1)
    around = without(value.shape, axis)
    fits = [
        each
        for each in graph.values
        if each.rank == value.rank and without(each.shape, axis) == around
    ]
    parts = [graph.pick(*fits) for _ in range(graph.integer(1, 3))] + [value]
    if sum(part.size for part in parts) > LARGEST:
        return None
    shape = list(value.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return graph.add("Concat", *parts, shape=shape, axis=axis - graph.pick(0, value.rank))


@step()
def split(graph: RandomGraph, value: Value) -> Value | None:
    axis = graph.integer(0, value.rank - 1)
    if value.shape[axis] < 2:
        return None
    first = graph.integer(1, value.shape[axis] - 1)
    sizes = first, value.shape[axis] - first
    names = graph.node("Split", value, graph.integers(*sizes), outputs=2, axis=axis)
    for name, size in zip(names, sizes, strict=True):
        shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
        graph.values.append(Value(name, shape))
    return graph.values[-1]


@step()
def gather(graph: RandomGraph, value: Value) -> Value | None:
    axis = graph.integer(0, value.rank - 1)
    extent = value.shape[axis]
    indices = graph.random.integers(-extent, extent, graph.pick((), (3,), (2, 2), (1,)))
    shape = (*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :])
    if prod(shape) > LARGEST or len(shape) > 5:
        return None
    return graph.add("Gather", value, graph.constant(indices, "int64"), shape=shape, axis=axis)


@step()
def pad(graph: RandomGraph, value: Value) -> Value | None:
    mode = graph.pick("constant", "reflect", "edge")
    sizes = [graph.integer(0, 2) for _ in range(2 * value.rank)]
    if mode == "reflect":
        sizes = [min(size, value.shape[i % value.rank] - 1) for i, size in enumerate(sizes)]
    shape = [d + sizes[i] + sizes[i + value.rank] for i, d in enumerate(value.shape)]
    if prod(shape) > LARGEST:
        return None
    inputs = [graph.integers(*sizes)]
    if mode == "constant" and graph.chance(0.5):
        inputs.append(graph.constant(1.5))
    return graph.add("Pad", value, *inputs, shape=shape, mode=mode)


@step(ranks=[4])
def resize(graph: RandomGraph, value: Value) -> Value | None:
    """Not with aligned corners, where onnxruntime departs from the specification."""
    scales = [1, 1, graph.pick(2, 1.5, 0.5, 3), graph.pick(2, 1.5, 0.5, 1)]
    shape = [int(np.floor(d * scale)) for d, scale in zip(value.shape, scales, strict=True)]
    if min(shape) < 1 or value.size > 8000:
        return None
    more = {}
    mode = graph.pick("nearest", "linear", "cubic")
    if mode == "nearest":
        more["nearest_mode"] = graph.pick("floor", "round_prefer_floor", "ceil")
    kind = graph.pick("half_pixel", "asymmetric", "pytorch_half_pixel")
    return graph.add(
        "Resize", value, "", graph.constant(scales), shape=shape, mode=mode,
        coordinate_transformation_mode=kind, **more,
    )  # fmt: skip


@step()
def another_rank(graph: RandomGraph, value: Value) -> Value | None:
    ones = [i for i, d in enumerate(value.shape) if d == 1]
    if graph.chance(0.5):
        axis = graph.integer(0, value.rank)
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        return (
            None
            if value.rank == 5
            else graph.add("Unsqueeze", value, graph.integers(axis), shape=shape)
        )
    if ones:
        axis = graph.pick(*ones)
        return graph.add("Squeeze", value, graph.integers(axis), shape=without(value.shape, axis))
    shape = (value.shape[0], prod(value.shape[1:]))
    return graph.add("Flatten", value, shape=shape, axis=1)


@step()
def tile(graph: RandomGraph, value: Value) -> Value | None:
    repeats = [graph.integer(1, 2) for _ in value.shape]
    shape = [d * times for d, times in zip(value.shape, repeats, strict=True)]
    if prod(shape) > LARGEST:
        return None
    return graph.add("Tile", value, graph.integers(*repeats), shape=shape)


@step()
def expand(graph: RandomGraph, value: Value) -> Value | None:
    shape = [graph.integer(2, 3) if d == 1 and graph.chance(0.7) else d for d in value.shape]
    if value.rank < 5 and graph.chance(0.3):
        shape = [2, *shape]
    if prod(shape) > LARGEST:
        return None
    return graph.add("Expand", value, graph.integers(*shape), shape=shape)


@step(ranks=[4])
def depth_and_space(graph: RandomGraph, value: Value) -> Value | None:
    batch, channels, height, width = value.shape
    if channels % 4 == 0:
        shape = (batch, channels // 4, height * 2, width * 2)
        mode = graph.pick("DCR", "CRD")
        return graph.add("DepthToSpace", value, shape=shape, blocksize=2, mode=mode)
    if height % 2 or width % 2:
        return None
    shape = (batch, channels * 4, height // 2, width // 2)
    return graph.add("SpaceToDepth", value, shape=shape, blocksize=2)


def divisors(number: int) -> list[int]:
    """Up to 64."""
    return [d for d in range(1, min(number, 64) + 1) if number % d == 0]


def without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
