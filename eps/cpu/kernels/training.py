"""Kernels of the optimizers in ai.onnx.preview.training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ort_lite.ep import KernelDef, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from eps.cpu.arrays import Array
    from ort_lite.ep import KernelFactory, KernelFn, KernelInfo

    Update = Callable[..., tuple[Array, ...]]

DOMAIN = "ai.onnx.preview.training"


def _update_each(make: Callable[[KernelInfo], Update], parts: int) -> KernelFactory:
    """`make(info)` for every optimised tensor.

    Inputs are rate, count, then `parts` lists of tensors one after the other; outputs are
    lists of all parts but the gradients.
    """

    def factory(info: KernelInfo) -> KernelFn:
        update = make(info)

        def run(rate: Array, count: Array, *tensors: Array) -> tuple[Array, ...]:
            size = len(tensors) // parts
            steps = [
                update(float(rate), int(count), *tensors[i::size][:parts]) for i in range(size)
            ]
            return tuple(
                step[p].astype(tensors[i].dtype, copy=False)
                for p in range(parts - 1)
                for i, step in enumerate(steps)
            )

        return run

    return factory


def _adagrad(info: KernelInfo) -> Update:
    decay, epsilon = float(info.attr("decay_factor", 0.0)), float(info.attr("epsilon", 0.0))
    norm = float(info.attr("norm_coefficient", 0.0))

    def update(rate: float, count: int, x: Array, g: Array, h: Array) -> tuple[Array, ...]:
        gradient = norm * x + g
        squares = h + gradient * gradient
        step = rate / (1 + count * decay)
        return x - step * gradient / (np.sqrt(squares) + epsilon), squares

    return update


def _adam(info: KernelInfo) -> Update:
    alpha, beta = float(info.attr("alpha", 0.9)), float(info.attr("beta", 0.999))
    epsilon, norm = float(info.attr("epsilon", 0.0)), float(info.attr("norm_coefficient", 0.0))
    after = float(info.attr("norm_coefficient_post", 0.0))

    def update(rate: float, count: int, *tensors: Array) -> tuple[Array, ...]:
        x, g, v, h = tensors
        gradient = norm * x + g
        mean = alpha * v + (1 - alpha) * gradient
        squares = beta * h + (1 - beta) * gradient * gradient
        step = rate
        if count > 0:
            step = rate * (1 - beta**count) ** 0.5 / (1 - alpha**count)
        moved = x - step * mean / (np.sqrt(squares) + epsilon)
        return (1 - after) * moved, mean, squares

    return update


def _momentum(info: KernelInfo) -> Update:
    alpha, beta = float(info.attr("alpha")), float(info.attr("beta"))
    norm, mode = float(info.attr("norm_coefficient")), info.attr("mode")
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"Momentum: mode is '{mode}', expected 'standard' or 'nesterov'")

    def update(rate: float, count: int, x: Array, g: Array, v: Array) -> tuple[Array, ...]:
        gradient = norm * x + g
        velocity = alpha * v + (beta if count > 0 else 1) * gradient
        move = velocity if mode == "standard" else gradient + alpha * velocity
        return x - rate * move, velocity

    return update


KERNELS: tuple[KernelDef, ...] = (
    kernel("Adagrad", domain=DOMAIN)(_update_each(_adagrad, 3)),
    kernel("Adam", domain=DOMAIN)(_update_each(_adam, 4)),
    kernel("Momentum", domain=DOMAIN)(_update_each(_momentum, 3)),
)
