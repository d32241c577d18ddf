"""LabelEncoder and OneHotEncoder of ai.onnx.ml: every element is looked up in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.arrays import check_allocation
from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFn, KernelInfo

DOMAIN = "ai.onnx.ml"
ABSENT = -1
NAN_IS_KEY = 4


class _Table:
    """Keys and their places; of equal keys the last counts.

    NaN is a key if `nan_is_key`, as in ONNX Runtime from LabelEncoder-4 on.
    """

    def __init__(self, keys: Array, *, nan_is_key: bool = False) -> None:
        self._nan_is_key = nan_is_key
        self._texts: dict[str, int] | None = None
        if keys.dtype == object:
            self._texts = {key: i for i, key in enumerate(keys.tolist())}
            return
        order = np.argsort(keys, kind="stable")
        self._sorted, self._order = keys[order], order

    def places(self, x: Array) -> Array:
        """Of each element its place among the keys, or ABSENT; in the shape of `x`."""
        if self._texts is not None:
            texts = self._texts
            rows = [texts.get(item, ABSENT) for item in x.reshape(-1).tolist()]
            return np.array(rows, np.intp).reshape(x.shape)
        if not self._sorted.size:
            return np.full(x.shape, ABSENT, np.intp)
        x = x.astype(self._sorted.dtype, copy=False)
        at = np.maximum(np.searchsorted(self._sorted, x, side="right") - 1, 0)
        key = self._sorted[at]
        same = key == x
        if self._nan_is_key and x.dtype.kind == "f":
            same |= np.isnan(key) & np.isnan(x)
        return np.where(same, self._order[at], ABSENT)


def _present_attribute(info: KernelInfo, prefix: str) -> Array:
    """The attribute `prefix`_* that the node has, as an array.

    Raises:
        ValueError: It has none.
    """
    if info.has_attr(f"{prefix}_tensor"):
        tensor: Array = info.attr(f"{prefix}_tensor")
        return tensor.reshape(-1)
    for kind, dtype in _KINDS:
        values = info.attr(f"{prefix}_{kind}")
        if values:
            return _array(values, dtype)
    raise ValueError(f"{info.op_type}: neither of {prefix}_*")


_KINDS: tuple[tuple[str, Any], ...] = (
    ("strings", object),
    ("int64s", np.int64),
    ("floats", np.float32),
)


def _array(values: Sequence[object], dtype: Any) -> Array:  # noqa: ANN401 - of numpy
    result = np.empty(len(values), dtype)
    result[:] = values
    return result


def _default(info: KernelInfo, values: Array) -> object:
    """The value for elements that are not a key."""
    if info.has_attr("default_tensor"):
        return info.attr("default_tensor").reshape(-1)[0]
    if values.dtype == object:
        return info.attr("default_string", "_Unused")
    if values.dtype.kind in "iu":
        return info.attr("default_int64", -1)
    return info.attr("default_float", -0.0)


def _label_encoder(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml LabelEncoder-2 and 4."""
    keys, values = _present_attribute(info, "keys"), _present_attribute(info, "values")
    if keys.size != values.size:
        raise ValueError(f"LabelEncoder: {keys.size} keys for {values.size} values")
    table = _Table(keys, nan_is_key=info.since_version >= NAN_IS_KEY)
    last = np.append(values, _array([_default(info, values)], values.dtype))

    def encode(x: Array) -> Array:
        return np.asarray(last[table.places(x)])  # ABSENT is the last

    return encode


def _first_label_encoder(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml LabelEncoder-1: strings to their places among the classes, or back."""
    classes = _array(info.attr("classes_strings") or [], object)
    table, number = _Table(classes), int(info.attr("default_int64", -1))
    texts = np.append(classes, _array([info.attr("default_string", "_Unused")], object))

    def encode(x: Array) -> Array:
        if x.dtype == object:
            places = table.places(x)
            return np.where(places == ABSENT, number, places).astype(np.int64)
        known = (x >= 0) & (x < classes.size)
        return np.asarray(texts[np.where(known, x, ABSENT)])

    return encode


def _one_hot_encoder(info: KernelInfo) -> KernelFn:
    """ai.onnx.ml OneHotEncoder-1: 1 at the element's category along a new last axis."""
    categories = _present_attribute(info, "cats")
    table, zeros = _Table(categories), bool(info.attr("zeros", 1))

    def encode(x: Array) -> Array:
        numbers = x if x.dtype == object else x.astype(np.int64)
        places = table.places(numbers)
        if not zeros and bool((places == ABSENT).any()):
            wrong = x.reshape(-1)[places.reshape(-1) == ABSENT][0]
            raise ValueError(f"Unknown Category and zeros = 0: {wrong}")
        shape = check_allocation((*x.shape, categories.size), np.dtype(np.float32))
        result = np.zeros(shape, np.float32)
        flat = places.reshape(-1)
        rows = np.flatnonzero(flat != ABSENT)
        result.reshape(-1, shape[-1])[rows, flat[rows]] = 1
        return result

    return encode


KERNELS: tuple[KernelDef, ...] = (
    kernel("LabelEncoder", domain=DOMAIN, since=(1, 1))(_first_label_encoder),
    kernel("LabelEncoder", domain=DOMAIN, since=(2, 4))(_label_encoder),
    kernel("OneHotEncoder", domain=DOMAIN)(_one_hot_encoder),
)
