"""Random inputs for a model of which nothing but its signature is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.onnx_model import DataType
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.model.type_text import element_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

RANDOM_BELOW: Mapping[str, int] = {
    **dict.fromkeys(("bool", "int2", "int32", "int64", "uint32", "uint64"), 2),
    "uint2": 4,
    "int4": 8,
}
"""Type to the bound of random integers: an index of 0 or 1 is in range of the smallest tables that
models have (BERT's two kinds of token)."""
RANDOM_BELOW_ELSE = 10


def find_dtype(type_name: str) -> np.dtype[Any] | None:
    """Element type of "tensor(float)" and the like; None for other types."""
    for data_type in DataType:
        if type_name == f"tensor({element_text(data_type)})":
            return numpy_dtype(data_type)
    return None


def make_random_array(
    dtype: np.dtype[Any], shape: Sequence[int], random: np.random.Generator
) -> Array:
    """Normal floats, small integers, or one text."""
    if dtype.kind == "O":
        return np.full(shape, "text", dtype=object)
    if dtype.kind in "iub" or dtype.name in ("int4", "uint4", "int2", "uint2"):
        limit = RANDOM_BELOW.get(dtype.name, RANDOM_BELOW_ELSE)
        return np.asarray(random.integers(0, limit, shape)).astype(dtype)
    return np.asarray(random.standard_normal(shape)).astype(dtype)
