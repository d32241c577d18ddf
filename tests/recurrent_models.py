"""Models of one recurrent node with random weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Sequence

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
HIDDEN, WIDTH = 8, 4


def recurrence(
    op_type: str,
    direction: str,
    sizes: tuple[int | str, int | str],
    *,
    activations: Sequence[str] = (),
    lengths: Any = None,
) -> bytes:
    """Makes `y` and `last` of `x`.

    Args:
        op_type: GRU, LSTM or RNN.
        direction: As in the node.
        sizes: Steps and rows of `x`.
        activations: As in the node; none for the defaults.
        lengths: The constant sequence_lens, or the name of an input that they are; None for none.
    """
    random = np.random.default_rng(5)
    directions = 2 if direction == "bidirectional" else 1
    shapes = {
        "w": (directions, GATES[op_type] * HIDDEN, WIDTH),
        "r": (directions, GATES[op_type] * HIDDEN, HIDDEN),
        "b": (directions, 2 * GATES[op_type] * HIDDEN),
    }
    constants = [
        numpy_helper.from_array((random.standard_normal(shape) / 4).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*sizes, WIDTH])]
    read = ["x", *shapes]
    if isinstance(lengths, str):
        inputs.append(helper.make_tensor_value_info(lengths, TensorProto.INT32, [sizes[1]]))
        read.append(lengths)
    elif lengths is not None:
        constants.append(numpy_helper.from_array(lengths, "lengths"))
        read.append("lengths")
    attributes: dict[str, Any] = {"hidden_size": HIDDEN, "direction": direction}
    if activations:
        attributes["activations"] = list(activations)
    if op_type == "GRU":
        attributes["linear_before_reset"] = 1
    node = helper.make_node(op_type, read, ["y", "last"], **attributes)
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in node.output]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    proto: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return proto
