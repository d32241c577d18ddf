"""Constants of a graph as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import check_allocation
from ort_lite.model.tensor_values import to_numpy

if TYPE_CHECKING:
    from ctx_formats.onnx_model import SparseTensor
    from eps.cpu.arrays import Array
    from ort_lite.model.graph import Graph


def constants_of(graph: Graph) -> dict[str, Array]:
    """Every initializer by name, read-only, over the model's own bytes where they are aligned.

    In an ONNX file tensors begin anywhere. BLAS takes none that is not aligned to its element
    type, and numpy would copy it for every product: 60 times the time of a matrix by a vector.
    """
    found = {name: _aligned(to_numpy(tensor)) for name, tensor in graph.initializers.items()}
    for name, sparse in graph.definition.sparse_initializers.items():
        found[name] = dense(sparse)
    return found


def _aligned(values: Array) -> Array:
    if values.flags.aligned:
        return values
    result = values.copy()
    result.flags.writeable = False
    return result


def dense(sparse: SparseTensor) -> Array:
    """A sparse tensor with its zeros: onnx.proto, SparseTensorProto.

    Raises:
        ValueError: An index is outside the shape, or the array would not fit into memory.
    """
    values = to_numpy(sparse.values)
    indices = to_numpy(sparse.indices)
    result = np.zeros(check_allocation(sparse.dims, values.dtype), values.dtype)
    if indices.ndim == 2:  # one row of coordinates for each value
        indices = np.ravel_multi_index(tuple(indices.T), sparse.dims)
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < result.size:
        raise ValueError(f"sparse tensor: an index is outside shape {list(sparse.dims)}")
    result.reshape(-1)[indices] = values
    result.flags.writeable = False
    return result
