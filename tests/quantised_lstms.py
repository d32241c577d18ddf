"""Nodes of com.microsoft DynamicQuantizeLSTM with random weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from device_models import NodeSet

GIVEN = {"b": 3, "n": 4, "h": 5, "c": 6, "p": 7}
"""Optional inputs by letter."""


def add_lstm(
    nodes: NodeSet, sizes: tuple[int, ...], given: str = "", kind: str = "int8", **attributes: Any
) -> str:
    """An LSTM of (steps, batch, input, hidden); `z` in `given`: a scale for each column."""
    steps, batch, width, hidden = sizes
    random = np.random.default_rng(hidden)
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    columns = 4 * hidden
    # Without VNNI onnxruntime adds two products with int8 in 16 bits, which saturate beyond this.
    low, high = (0, 255) if kind == "uint8" else (-63, 63)

    def floats(*shape: int) -> np.ndarray[Any, Any]:
        return random.standard_normal(shape).astype(np.float32)

    def weights(rows: int) -> np.ndarray[Any, Any]:
        return random.integers(low, high, (ways, rows, columns), kind, endpoint=True)

    def scales() -> list[np.ndarray[Any, Any]]:
        shape = (ways, columns) if "z" in given else (ways,)
        # onnxruntime accepts int8 with a zero point of 0 only, and uint8 with one for all columns.
        zero = np.full(shape, 135 if kind == "uint8" else 0, kind)
        factor = random.random(shape).astype(np.float32) + np.float32(0.5)
        return [factor / np.float32(100 * hidden**0.5), zero]

    every: dict[str, np.ndarray[Any, Any]] = {
        "b": floats(ways, 2 * columns),
        "n": np.full(batch, steps, np.int32),
        "h": floats(ways, batch, hidden),
        "c": floats(ways, batch, hidden),
        "p": floats(ways, 3 * hidden),
    }
    optional = [every[letter] if letter in given else None for letter in GIVEN]
    inputs = [floats(steps, batch, width), weights(width), weights(hidden), *optional]
    return nodes.add(
        "DynamicQuantizeLSTM",
        [*inputs, *scales(), *scales()],
        (1, 2, 3, 8, 9, 10, 11),
        3,
        domain="com.microsoft",
        hidden_size=hidden,
        **attributes,
    )
