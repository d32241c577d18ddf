"""What random cases of operators are drawn with, and the writers that many operators have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from device_models import NodeSet

    Array = np.ndarray[Any, np.dtype[Any]]
    Writer = Callable[["Chance"], None]

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


class Chance:
    """Draws values, and adds one operator's nodes to a set."""

    def __init__(self, nodes: NodeSet, op_type: str, domain: str, seed: int) -> None:
        self.nodes = nodes
        self.op_type = op_type
        self.domain = domain
        self.random = np.random.default_rng(seed)

    def pick(self, *values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def shape(self, low: int = 1, high: int = 4) -> tuple[int, ...]:
        """Of a rank from `low` to `high`; a dimension is often no multiple of a vector."""
        rank = int(self.random.integers(low, high + 1))
        return tuple(int(n) for n in self.random.choice([1, 2, 3, 5, 7, 8, 17], rank))

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to another."""
        kept = [n if self.pick(1, 1, 0) else 1 for n in shape]
        return tuple(kept[self.pick(0, 0, len(shape) - 1) :])

    def floats(self, *shape: int, low: float = -3, high: float = 3) -> Array:
        return self.random.uniform(low, high, shape).astype(np.float32)

    def integers(self, dtype: str, *shape: int, low: int = 0, high: int = 20) -> Array:
        low = max(low, int(np.iinfo(dtype).min))
        return self.random.integers(low, high, shape).astype(dtype)

    def values(self, *shape: int, types: Sequence[str] = ("float32",)) -> Array:
        dtype = str(self.pick(*types))
        if dtype == "bool":
            return self.random.integers(0, 2, shape) > 0
        if dtype.startswith("float"):
            return self.floats(*shape).astype(dtype)
        return self.integers(dtype, *shape, low=-20)

    def add(
        self,
        *inputs: Array | str | None,
        fixed: Sequence[int] = (),
        outputs: int | Sequence[int] = 1,
        **attributes: Any,
    ) -> None:
        if self.domain:
            attributes["domain"] = self.domain
        self.nodes.add(self.op_type, inputs, fixed, outputs, **attributes)


def unary(low: float = -3, high: float = 3, **attributes: Any) -> Writer:
    """float32 of any rank between two bounds."""
    return lambda c: c.add(c.floats(*c.shape(), low=low, high=high), **attributes)


def typed_unary(*types: str) -> Writer:
    return lambda c: c.add(c.values(*c.shape(), types=types))


def binary(*types: str, **attributes: Any) -> Writer:
    """Two operands of one type that broadcast against each other."""

    def write(c: Chance) -> None:
        shape, dtype = c.shape(), (str(c.pick(*types)),)
        x = c.values(*shape, types=dtype)
        c.add(x, c.values(*c.broadcast(shape), types=dtype), **attributes)

    return write


def some_axes(c: Chance, rank: int) -> list[int]:
    return sorted({int(a) for a in c.random.integers(0, rank, c.pick(1, 2))})


def reduction(low: float = -3, high: float = 3, types: Sequence[str] = ("float32",)) -> Writer:
    def write(c: Chance) -> None:
        shape = c.shape(2)
        dtype = str(c.pick(*types))
        x = c.floats(*shape, low=low, high=high)
        if dtype != "float32":
            x = c.integers(dtype, *shape)
        axes = np.array(some_axes(c, len(shape)))
        c.add(x, axes, fixed=(1,), keepdims=c.pick(0, 1))

    return write


def on_axis(**attributes: Any) -> Writer:
    def write(c: Chance) -> None:
        shape = c.shape(2)
        c.add(c.floats(*shape), axis=int(c.random.integers(-len(shape), len(shape))), **attributes)

    return write
