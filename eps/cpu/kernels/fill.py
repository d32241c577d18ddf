"""Operators that make tensors from shapes and numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import SparseTensor, SparseTensorType
from eps.cpu.arrays import FLOAT32, check_allocation, computing_wide
from eps.cpu.kernels.shape import integers
from ort_lite.ep import KernelDef, dense_array, kernel, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array, DType
    from ort_lite.ep import KernelFn, KernelInfo, Value


def _texts(values: list[str], shape: tuple[int, ...]) -> Array:
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


def _sparse(info: KernelInfo, constant: SparseTensor) -> Value:
    """With its zeros, unless the graph declares a sparse tensor."""
    if info.output_types and isinstance(info.output_types[0], SparseTensorType):
        from ort_lite.ep import SparseTensor as SparseValue  # noqa: PLC0415 - lazy: rare

        return SparseValue.of_constant(constant)
    return dense_array(info.node.outputs[0], constant)


def _constant_value(info: KernelInfo) -> Value:
    """The one attribute of a Constant node."""
    if info.has_attr("value"):
        value = info.attr("value")
        return _sparse(info, value) if isinstance(value, SparseTensor) else value
    if info.has_attr("sparse_value"):
        return _sparse(info, info.attr("sparse_value"))
    for name, kind in (("value_float", np.float32), ("value_int", np.int64)):
        if info.has_attr(name):
            return np.array(info.attr(name), kind)
        if info.has_attr(f"{name}s"):
            return np.array(info.attr(f"{name}s"), kind)
    if info.has_attr("value_string"):
        return _texts([info.attr("value_string")], ())
    if info.has_attr("value_strings"):
        texts = info.attr("value_strings")
        return _texts(texts, (len(texts),))
    raise ValueError(f"Constant node '{info.node.name}' has no value")


def _constant(info: KernelInfo) -> KernelFn:
    value = _constant_value(info)
    return lambda: value


def _constant_of_shape(info: KernelInfo) -> KernelFn:
    value = info.attr("value")
    fill = np.zeros((), FLOAT32) if value is None else value.reshape(-1)[0]
    dtype = fill.dtype

    def constant_of_shape(shape: Array) -> Array:
        sizes = check_allocation(integers(shape), dtype)
        return np.full(sizes, fill, dtype)

    return constant_of_shape


MOST_KEPT_BYTES = 1 << 20
"""Of a range of whole numbers that the next run takes from the last one: masks of lengths."""


def _range(_: KernelInfo) -> KernelFn:
    """ONNX Range-11: ceil((limit - start) / delta) values, none if that is negative."""
    kept: list[tuple[object, Array]] = []  # of whole numbers: start, delta and dtype, and values

    def values(start: Array, limit: Array, delta: Array) -> Array:
        first, last, step = start.item(0), limit.item(0), delta.item(0)
        if step == 0:
            raise ValueError("delta in Range operator can not be zero!")
        if isinstance(first, int):
            count = max(-((first - last) // step), 0)
        else:
            count = max(math.ceil((last - first) / step), 0)
        check_allocation((count,), start.dtype)
        if not isinstance(first, int) or count * start.dtype.itemsize > MOST_KEPT_BYTES:
            return make_range(first, step, count, start.dtype)
        key = first, step, start.dtype
        for known, numbers in kept:
            if known == key and numbers.size >= count:
                return numbers[:count]
        numbers = make_range(first, step, count, start.dtype)
        numbers.flags.writeable = False
        kept[:] = [(key, numbers)]
        return numbers

    return values


def make_range(first: float, step: float, count: int, dtype: DType) -> Array:
    """first + i * step for i below `count`, as ONNX Range-11 computes it."""
    numbers: Array = np.arange(count, dtype=dtype)
    if step != 1:
        numbers *= dtype.type(step)
    if first != 0:
        numbers += dtype.type(first)
    return numbers


def _range_kernel(info: KernelInfo) -> KernelFn:
    return computing_wide(info, _range(info))


def _eye_like(info: KernelInfo) -> KernelFn:
    data_type, offset = info.attr("dtype"), info.attr("k", 0)

    def eye_like(x: Array) -> Array:
        if x.ndim != 2:
            raise ValueError(f"EyeLike : Input tensor dimension is not 2, it is {x.ndim}")
        dtype = x.dtype if data_type is None else numpy_dtype(data_type)
        return np.eye(x.shape[0], x.shape[1], offset).astype(dtype)

    return eye_like


def _hann(phase: Array) -> Array:
    return np.asarray(0.5 - 0.5 * np.cos(phase))


def _hamming(phase: Array) -> Array:
    """ONNX HammingWindow-17 takes 25/46, where others round to 0.54."""
    return np.asarray(25 / 46 - 21 / 46 * np.cos(phase))


def _blackman(phase: Array) -> Array:
    return np.asarray(0.42 - 0.5 * np.cos(phase) + 0.08 * np.cos(2 * phase))


def _window(shape: Callable[[Array], Array]) -> Callable[[KernelInfo], KernelFn]:
    def factory(info: KernelInfo) -> KernelFn:
        dtype = numpy_dtype(info.attr("output_datatype", 1))
        periodic = bool(info.attr("periodic", 1))

        def window(size: Array) -> Array:
            (count,) = check_allocation((integers(size)[0],), np.dtype(np.float64))
            steps = count if periodic else count - 1
            phase = np.arange(count) * (2 * np.pi / max(steps, 1))
            return shape(phase).astype(dtype)

        return window

    return factory


def _hertz_to_mel(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)


def _mel_weight_matrix(info: KernelInfo) -> KernelFn:
    """ONNX MelWeightMatrix-17: triangular filters, evenly spaced in mel, as columns."""
    dtype = numpy_dtype(info.attr("output_datatype", 1))

    def weights(*inputs: Array) -> Array:
        bins, length, rate, low, high = (x.reshape(-1)[0].item() for x in inputs)
        count = length // 2 + 1
        check_allocation((count, bins), np.dtype(np.float64))
        mel_low, mel_high = _hertz_to_mel(low), _hertz_to_mel(high)
        step = (mel_high - mel_low) / (bins + 2)
        mel = np.arange(bins + 2) * step + mel_low
        hertz = 700 * (10 ** (mel / 2595) - 1)
        edges = ((length + 1) * hertz // rate).astype(np.int64)
        if rate <= 0 or edges.min() < 0 or edges.max() >= count:
            raise ValueError(f"edges {low} and {high} Hz of a signal of {rate} samples a second")
        result = np.zeros((count, bins))
        for i in range(bins):
            left, peak, right = edges[i : i + 3]
            if peak == left:
                result[peak, i] = 1
            else:
                rising = np.arange(left, peak + 1)
                result[rising, i] = (rising - left) / (peak - left)
            if right > peak:
                falling = np.arange(peak, right)
                result[falling, i] = (right - falling) / (right - peak)
        return result.astype(dtype)

    return weights


KERNELS: tuple[KernelDef, ...] = (
    kernel("Constant", since=(1, 25))(_constant),
    kernel("ConstantOfShape", since=(9, 25))(_constant_of_shape),
    kernel("Range", since=(11, 27))(_range_kernel),
    kernel("EyeLike", since=(9, 22))(_eye_like),
    kernel("HannWindow", since=(17, 17))(_window(_hann)),
    kernel("HammingWindow", since=(17, 17))(_window(_hamming)),
    kernel("BlackmanWindow", since=(17, 17))(_window(_blackman)),
    kernel("MelWeightMatrix", since=(17, 17))(_mel_weight_matrix),
)
