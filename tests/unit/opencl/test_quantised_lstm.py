"""DynamicQuantizeLSTM on the device, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from device_models import NodeSet

from ort_lite.status import NotImplemented as NotImplementedByAny

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


@pytest.mark.parametrize("platform", ["", "portable"])
def test_a_quantised_lstm_agrees_with_onnxruntime(platform: str) -> None:
    nodes = NodeSet()
    add_lstm(nodes, (6, 1, 8, 48), "bhc", direction="bidirectional")
    add_lstm(nodes, (5, 2, 3, 7), "bh")
    add_lstm(nodes, (4, 3, 5, 6), "z", direction="reverse")
    add_lstm(nodes, (9, 1, 4, 40), "bhcz", kind="uint8", direction="bidirectional")
    add_lstm(nodes, (1, 1, 1, 1), "b")
    expected = onnxruntime.InferenceSession(
        nodes.model.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, nodes.feeds)
    found = nodes.run(platform)
    for info, mine, theirs in zip(nodes.model.graph.output, found, expected, strict=True):
        assert mine.shape == theirs.shape
        # A state at the border of two steps may fall to either side: by then results differ by one.
        np.testing.assert_allclose(mine, theirs, atol=0.02, err_msg=info.name)
        assert np.median(np.abs(mine - theirs)) < 1e-4, info.name


def test_lengths_stay_on_the_cpu_ep() -> None:
    nodes = NodeSet()
    add_lstm(nodes, (2, 1, 3, 4), "n")
    (reason,) = nodes.refusals().values()
    assert "lengths or peepholes" in reason


@pytest.mark.parametrize(
    ("given", "attributes", "reason"),
    [
        ("p", {}, "peepholes"),
        ("", {"clip": 1.0}, "clip"),
        ("", {"input_forget": 1}, "input_forget"),
    ],
)
def test_what_no_provider_computes_is_an_error_with_the_reason(
    given: str, attributes: dict[str, float], reason: str
) -> None:
    nodes = NodeSet()
    add_lstm(nodes, (2, 1, 3, 4), given, **attributes)
    with pytest.raises(NotImplementedByAny, match=f"OpenCL: .*{reason}"):
        nodes.refusals()
