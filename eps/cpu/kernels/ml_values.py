"""Operators of ai.onnx.ml on categories, maps and columns of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import check_allocation
from eps.cpu.post_transform import transform_of
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "ai.onnx.ml"


def _look_up(x: Array, table: Mapping[Any, Any], default: object, dtype: Any) -> Array:  # noqa: ANN401 - of numpy
    values = [table.get(item, default) for item in x.reshape(-1).tolist()]
    result = np.empty(x.shape, dtype)
    result.reshape(-1)[:] = values
    return result


def _category_mapper(info: KernelInfo) -> KernelFn:
    """Strings to integers or back: ai.onnx.ml CategoryMapper-1."""
    numbers, texts = info.attr("cats_int64s") or [], info.attr("cats_strings") or []
    if len(numbers) != len(texts):
        raise ValueError(f"CategoryMapper: {len(numbers)} integers for {len(texts)} strings")
    to_number, to_text = (
        dict(zip(texts, numbers, strict=True)),
        dict(zip(numbers, texts, strict=True)),
    )
    number, text = int(info.attr("default_int64", -1)), info.attr("default_string", "_Unused")

    def run(x: Array) -> Array:
        if x.dtype == object:
            return _look_up(x, to_number, number, np.int64)
        return _look_up(x, to_text, text, object)

    return run


def _feature_vectorizer(info: KernelInfo) -> KernelFn:
    """Inputs [N, d] side by side, each cut or filled with 0 to its width, as float32.

    ai.onnx.ml FeatureVectorizer-1. Inputs [d] are one row.
    """
    widths = [int(width) for width in info.attr("inputdimensions") or []]

    def run(*inputs: Array) -> Array:
        if len(widths) != len(inputs):
            raise ValueError(f"{len(widths)} inputdimensions for {len(inputs)} inputs")
        rows = [x.reshape(x.shape[0] if x.ndim > 1 else 1, -1) if x.size else x for x in inputs]
        rows = [x.reshape(len(x), 0) if x.ndim < 2 else x for x in rows]
        if len({len(x) for x in rows}) != 1:
            raise ValueError(f"inputs of {[len(x) for x in rows]} rows")
        check_allocation((len(rows[0]), sum(widths)), np.dtype(np.float32))
        result = np.zeros((len(rows[0]), sum(widths)), np.float32)
        start = 0
        for x, width in zip(rows, widths, strict=True):
            taken = min(width, x.shape[1])
            result[:, start : start + taken] = x[:, :taken]
            start += width
        return result

    return run


def _zip_map(info: KernelInfo) -> KernelFn:
    """Rows of scores as maps from label to score: ai.onnx.ml ZipMap-1."""
    labels = info.attr("classlabels_strings") or info.attr("classlabels_int64s") or []

    def run(x: Array) -> list[dict[Any, float]]:
        rows = x if x.ndim == 2 else x.reshape(1, -1)
        if rows.shape[1] != len(labels):
            raise ValueError(f"{rows.shape[1]} columns for {len(labels)} class labels")
        return [dict(zip(labels, row, strict=True)) for row in rows.tolist()]

    return run


def _cast_map(info: KernelInfo) -> KernelFn:
    """The values of a map in the order of its keys, one row: ai.onnx.ml CastMap-1."""
    cast_to = info.attr("cast_to", "TO_FLOAT")
    kinds: dict[str, tuple[type, Callable[[Any], object]]] = {
        "TO_FLOAT": (np.float32, float),
        "TO_INT64": (np.int64, lambda value: int(float(value))),
        "TO_STRING": (object, str),
    }
    if cast_to not in kinds:
        raise ValueError(f"CastMap: cast_to is '{cast_to}', expected one of {sorted(kinds)}")
    sparse, width = info.attr("map_form", "DENSE") == "SPARSE", int(info.attr("max_map", 1))
    dtype, convert = kinds[cast_to]

    def run(x: Mapping[int, object]) -> Array:
        if not sparse:
            row = [convert(x[key]) for key in sorted(x)]
        else:
            check_allocation((width,), np.dtype(dtype))
            row = [convert(x[key]) if key in x else dtype(0) for key in range(width)]
        return np.array([row], dtype)

    return run


def _dict_vectorizer(info: KernelInfo) -> KernelFn:
    """The values of a map for the keys of a vocabulary, one row: ai.onnx.ml DictVectorizer-1."""
    keys = info.attr("string_vocabulary") or info.attr("int64_vocabulary") or []

    def run(x: Mapping[Any, Any]) -> Array:
        kind = next((type(value) for value in x.values()), float)
        if kind is str:
            return np.array([[x.get(key, "") for key in keys]], object)
        dtype = np.int64 if kind is int else np.float32
        return np.array([[x.get(key, 0) for key in keys]], dtype)

    return run


def _normalizer(info: KernelInfo) -> KernelFn:
    """Each row over its maximum, its sum of magnitudes or its length: ai.onnx.ml Normalizer-1."""
    norm = info.attr("norm", "MAX")
    norms: dict[str, Callable[[Array], Array]] = {
        "MAX": lambda x: x.max(-1, keepdims=True),
        "L1": lambda x: np.abs(x).sum(-1, keepdims=True),
        "L2": lambda x: np.sqrt(np.square(x).sum(-1, keepdims=True)),
    }
    if norm not in norms:
        raise ValueError(f"Normalizer: norm is '{norm}', expected one of {sorted(norms)}")

    def run(x: Array) -> Array:
        wide = x.astype(np.float32)
        by = norms[norm](wide)
        return np.asarray(wide / np.where(by == 0, np.float32(1), by))

    return run


def _scaler(info: KernelInfo) -> KernelFn:
    """(x - offset) * scale as float32: ai.onnx.ml Scaler-1."""
    offset = np.array(info.attr("offset") or [0.0], np.float32)
    scale = np.array(info.attr("scale") or [1.0], np.float32)
    return lambda x: np.asarray((x.astype(np.float32) - offset) * scale)


def _linear_regressor(info: KernelInfo) -> KernelFn:
    """x times coefficients plus intercepts: ai.onnx.ml LinearRegressor-1."""
    targets = int(info.attr("targets", 1))
    weights = np.array(info.attr("coefficients"), np.float32).reshape(targets, -1).T
    bias = np.array(info.attr("intercepts") or [0.0], np.float32)
    finish = transform_of(info)

    def run(x: Array) -> Array:
        rows = x.astype(np.float32).reshape(-1, x.shape[-1])
        return finish(rows @ weights + bias)

    return run


KERNELS: tuple[KernelDef, ...] = (
    kernel("FeatureVectorizer", domain=DOMAIN)(_feature_vectorizer),
    kernel("CategoryMapper", domain=DOMAIN)(_category_mapper),
    kernel("ZipMap", domain=DOMAIN)(_zip_map),
    kernel("CastMap", domain=DOMAIN)(_cast_map),
    kernel("DictVectorizer", domain=DOMAIN)(_dict_vectorizer),
    kernel("Normalizer", domain=DOMAIN)(_normalizer),
    kernel("Scaler", domain=DOMAIN)(_scaler),
    kernel("LinearRegressor", domain=DOMAIN)(_linear_regressor),
)
