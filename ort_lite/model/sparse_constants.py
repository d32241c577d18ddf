"""Sparse constants of a model with their zeros, which execution providers take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.tensor_size import element_count
from ort_lite.model.tensor_values import from_numpy, to_numpy
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from ctx_formats.onnx_model import SparseTensor, Tensor


def dense_tensor(name: str, sparse: SparseTensor) -> Tensor:
    """The initializer that a sparse initializer stands for.

    Raises:
        InvalidGraph: See `dense_array`.
    """
    return from_numpy(dense_array(name, sparse), name)


def dense_array(name: str, sparse: SparseTensor) -> np.ndarray[Any, Any]:
    """A sparse tensor with its zeros, read-only: onnx.proto, SparseTensorProto.

    Raises:
        InvalidGraph: Indices do not fit the values or the shape, or the array would not fit
            into memory.
    """
    values, indices = to_numpy(sparse.values), to_numpy(sparse.indices)
    rank, count = len(sparse.dims), values.size
    if indices.dtype != np.int64 or indices.shape not in ((count,), (count, rank)):
        raise InvalidGraph(
            f"sparse tensor '{name}': indices are {indices.dtype}{list(indices.shape)}, expected "
            f"int64 [{count}] or [{count}, {rank}]"
        )
    size = element_count(sparse.dims)
    try:
        result = np.zeros(sparse.dims, values.dtype)
    except (MemoryError, ValueError) as exc:
        raise InvalidGraph(
            f"sparse tensor '{name}': {size} elements with the zeros do not fit into memory"
        ) from exc
    if indices.ndim == 2:
        limits = np.array(sparse.dims, np.int64)
        inside = bool(((indices >= 0) & (indices < limits)).all())
        flat = np.ravel_multi_index(tuple(indices.T), sparse.dims) if inside else indices
    else:
        inside, flat = bool(((indices >= 0) & (indices < size)).all()), indices
    if not inside:
        raise InvalidGraph(f"sparse tensor '{name}': an index is outside {list(sparse.dims)}")
    if count:
        result.reshape(-1)[flat] = values.reshape(-1)
    result.flags.writeable = False
    return result
