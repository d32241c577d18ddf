"""Constants of a graph as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.ep import dense_array, to_numpy

if TYPE_CHECKING:
    from eps.cpu.arrays import Array
    from ort_lite.ep import Graph


def constants_of(graph: Graph) -> dict[str, Array]:
    """Every initializer by name, read-only, over the model's own bytes where they are aligned.

    In an ONNX file tensors begin anywhere. BLAS takes none that is not aligned to its element
    type, and numpy would copy it for every product: 60 times the time of a matrix by a vector.
    """
    found = {name: _align(to_numpy(tensor)) for name, tensor in graph.initializers.items()}
    for name, sparse in graph.definition.sparse_initializers.items():
        found[name] = dense_array(name, sparse)
    return found


def _align(values: Array) -> Array:
    if values.flags.aligned:
        return values
    result = values.copy()
    result.flags.writeable = False
    return result
