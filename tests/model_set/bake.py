"""Gives seeded weights to the topologies that the onnx package carries without them.

In `light_*.onnx` every weight is a ConstantOfShape: all channels are equal, so a wrong channel
order goes unnoticed and an optimiser can fold what it could not in a real model. Here each
becomes an initializer drawn from He's uniform distribution (bound sqrt(6 / fan in)), which keeps
activations at the same scale through the depth. Only exact IEEE operations on the generator's
integers are used, so that the bytes are the same on every machine.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper

if TYPE_CHECKING:
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[np.float32]]

IR_VERSION = 8
"""From 4 on an initializer need not be a graph input, so that weights are constants."""

_RANGES = {
    ("BatchNormalization", 1): (0.6, 0.8),  # two of three convolutions add up: see _weights
    ("BatchNormalization", 2): (-0.1, 0.1),
    ("BatchNormalization", 3): (-0.1, 0.1),
    ("BatchNormalization", 4): (0.9, 1.1),
    ("Conv", 2): (-0.1, 0.1),
    ("Gemm", 2): (-0.1, 0.1),
    ("Mul", 1): (1.3, 1.5),  # DenseNet's own scale after a normalisation
    ("Add", 1): (-0.1, 0.1),
}
"""Bounds of the uniform distribution by operator and input, for all but weight matrices."""


def bake(source: bytes, target: Path) -> None:
    """Write the model `source` with every generated constant turned into a weight."""
    model = onnx.load_from_string(source)
    graph = model.graph
    roles = _roles(graph)
    shapes = _shapes(graph)
    weights = [
        numpy_helper.from_array(_weights(name, shapes[name], roles[name]), name)
        for name in sorted(roles)
    ]
    others = [t for t in graph.initializer if t.name not in roles]
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {name for node in nodes for name in node.input}
    kept = [t for t in others if t.name in used]
    constant = {t.name for t in [*weights, *kept]}
    inputs = [info for info in graph.input if info.name in used - constant]
    for field, values in (("node", nodes), ("initializer", [*weights, *kept]), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    target.write_bytes(model.SerializeToString(deterministic=True))


def _roles(graph: onnx.GraphProto) -> dict[str, tuple[str, int]]:
    """Constants that are weights, and which input of which operator each is."""
    made = {node.output[0] for node in graph.node if node.op_type == "ConstantOfShape"}
    made |= {t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    through = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Unsqueeze"}
    found: dict[str, tuple[str, int]] = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            origin = through.get(name, name)
            if origin in made and node.op_type != "Unsqueeze":
                found[origin] = (node.op_type, position)
    return found


def _shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    tensors = {t.name: t for t in graph.initializer}
    found = {name: tuple(t.dims) for name, t in tensors.items()}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            dims = numpy_helper.to_array(tensors[node.input[0]])
            found[node.output[0]] = tuple(int(d) for d in dims)
    return found


def _weights(name: str, shape: tuple[int, ...], role: tuple[str, int]) -> Array:
    """Uniform values seeded by `name`.

    The scale of BatchNormalization has a mean square of about 1/2: with the sums of a residual
    network the activations then neither grow nor vanish over its depth.
    """
    if role in _RANGES:
        low, high = _RANGES[role]
    else:
        fan_in = math.prod(shape[1:])
        low, high = -math.sqrt(6 / fan_in), math.sqrt(6 / fan_in)
    random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    unit = random.random(shape, dtype=np.float32)
    return np.float32(low) + unit * np.float32(high - low)
