"""Operators that draw random numbers, and Dropout.

A node's seed makes every run draw the same numbers; without one each run draws afresh,
repeatably after `ort_lite.set_seed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.cpu.arrays import FLOAT32, check_allocation, widen_floats
from ort_lite.ep import KernelDef, kernel, new_generator, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from eps.cpu.arrays import Array, DType
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo

    Draw = Callable[[np.random.Generator, Sequence[int]], Array]


def generator(info: KernelInfo) -> np.random.Generator:
    """A new generator, seeded by the node's attribute if there is one."""
    if not info.has_attr("seed"):
        return new_generator()
    return np.random.default_rng(int(np.float32(info.attr("seed")).view(np.uint32)))


def _normal(info: KernelInfo) -> Draw:
    mean, scale = float(info.attr("mean", 0.0)), float(info.attr("scale", 1.0))
    return lambda rng, shape: rng.standard_normal(tuple(shape)) * scale + mean


def _uniform(info: KernelInfo) -> Draw:
    low, high = float(info.attr("low", 0.0)), float(info.attr("high", 1.0))
    return lambda rng, shape: rng.uniform(low, high, tuple(shape))


def _random_of_shape(distribution: Callable[[KernelInfo], Draw]) -> KernelFactory:
    """RandomNormal and RandomUniform: of a given shape."""

    def factory(info: KernelInfo) -> KernelFn:
        draw, dtype = distribution(info), numpy_dtype(info.attr("dtype", 1))
        shape = info.attr("shape")

        def run() -> Array:
            return draw(generator(info), check_allocation(shape, dtype)).astype(dtype)

        return run

    return factory


def _like(distribution: Callable[[KernelInfo], Draw]) -> KernelFactory:
    """RandomNormalLike and RandomUniformLike: of an input's shape."""

    def factory(info: KernelInfo) -> KernelFn:
        draw, data_type = distribution(info), info.attr("dtype")

        def run(x: Array) -> Array:
            dtype = x.dtype if data_type is None else numpy_dtype(data_type)
            return draw(generator(info), x.shape).astype(dtype)

        return run

    return factory


def _element_dtype(info: KernelInfo, x: Array) -> DType:
    data_type = info.attr("dtype")
    return numpy_dtype(data_type) if data_type else x.dtype


def _bernoulli(info: KernelInfo) -> KernelFn:
    def bernoulli(x: Array) -> Array:
        drawn: Array = generator(info).random(x.shape) < widen_floats(x)
        return drawn.astype(_element_dtype(info, x))

    return bernoulli


def _multinomial(info: KernelInfo) -> KernelFn:
    """ONNX Multinomial-7: classes by unnormalised log-probabilities [batch, classes]."""
    count, dtype = info.attr("sample_size", 1), numpy_dtype(info.attr("dtype", 6))

    def multinomial(x: Array) -> Array:
        check_allocation((x.shape[0], count), dtype)
        scores = widen_floats(x).astype(np.float64)
        weights = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
        edges = np.cumsum(weights, 1)
        drawn = generator(info).random((x.shape[0], count)) * edges[:, -1:]
        return np.asarray((edges[:, None] <= drawn[..., None]).sum(2)).astype(dtype)

    return multinomial


def _training_dropout(x: Array, ratio: float, seed: int | None) -> tuple[Array, Array]:
    """A share `ratio` of elements set to 0, the others scaled up; and which were kept."""
    # The legacy generator is the one that the conformance suite's answers come from.
    drawn = np.random.RandomState(seed).uniform(0, 1, x.shape)
    mask = np.asarray(drawn >= ratio)
    scale = 0.0 if ratio >= 1 else 1 / (1 - ratio)
    return (mask * widen_floats(x) * FLOAT32.type(scale)).astype(x.dtype), mask


def _dropout(info: KernelInfo) -> KernelFn:
    """ONNX Dropout: identity but in training, which inputs (12) or is_test (6) ask for."""
    seed, both = info.attr("seed"), info.n_outputs > 1
    fixed_ratio = float(info.attr("ratio", 0.5))
    always = info.since_version <= 6 and not info.attr("is_test", 0)
    mask_like_data = info.since_version < 10

    def dropout(
        x: Array, ratio: Array | None = None, training: Array | None = None
    ) -> Array | tuple[Array, Array]:
        is_training = always or (training is not None and bool(training.reshape(-1)[0]))
        share = fixed_ratio if ratio is None else float(ratio.reshape(-1)[0])
        if is_training and share != 0:
            y, mask = _training_dropout(x, share, seed)
        else:
            y, mask = x, np.ones(x.shape, np.bool_)
        if not both:
            return y
        return y, mask.astype(x.dtype) if mask_like_data else mask

    return dropout


KERNELS: tuple[KernelDef, ...] = (
    kernel("RandomNormal", since=(1, 22))(_random_of_shape(_normal)),
    kernel("RandomUniform", since=(1, 22))(_random_of_shape(_uniform)),
    kernel("RandomNormalLike", since=(1, 22))(_like(_normal)),
    kernel("RandomUniformLike", since=(1, 22))(_like(_uniform)),
    kernel("Bernoulli", since=(15, 22))(_bernoulli),
    kernel("Multinomial", since=(7, 22))(_multinomial),
    kernel("Dropout", since=(1, 22))(_dropout),
)
