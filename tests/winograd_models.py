"""Convolutions that the OpenCL EP computes by Winograd's transforms, at awkward sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper
from small_models import model

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

    Array = np.ndarray[Any, np.dtype[np.float32]]


def draw(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


def convolution(
    shape: Sequence[int | str | None],
    width: int,
    pads: Sequence[int] = (1, 1, 1, 1),
    **attributes: Any,
) -> onnx.ModelProto:
    """One Conv of 3 by 3 windows with a bias, from x [N, C, H, W] to y."""
    random, depth = np.random.default_rng(7), shape[1]
    assert isinstance(depth, int)
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=pads, **attributes)
    weights = {"w": draw(random, width, depth, 3, 3), "b": draw(random, width)}
    return model([node], [("x", shape)], [("y", [None] * 4)], weights)


def block(channels: int, rows: int, columns: int) -> onnx.ModelProto:
    """A residual block as networks have it, and one that reads and writes parts of a Concat."""
    random = np.random.default_rng(11)
    pads = [1, 1, 1, 1]
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=pads),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], pads=pads),
        helper.make_node("Add", ["c2", "r1"], ["sum"]),
        helper.make_node("Sigmoid", ["sum"], ["gate"]),
        helper.make_node("Mul", ["sum", "gate"], ["silu"]),
        helper.make_node("Concat", ["silu", "r1"], ["both"], axis=1),
        helper.make_node("Conv", ["both", "w3"], ["y"], pads=pads),
    ]
    weights = {
        **{f"w{i}": draw(random, channels, channels, 3, 3) for i in (1, 2)},
        **{f"b{i}": draw(random, channels) for i in (1, 2)},
        "w3": draw(random, channels, 2 * channels, 3, 3),
    }
    shape = [1, channels, rows, columns]
    return model(nodes, [("x", shape)], [("y", shape)], weights)
