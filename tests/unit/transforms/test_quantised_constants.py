"""Constants that a model quantises: steps are folded, weights stay quantised."""

from __future__ import annotations

import pytest
from unit.transforms.transformed import agrees, floats, parsed

X = {"x": floats(2, 4)}
VALUES = """float s = {0.25}, uint8 z = {100}, float[4] k = {-30.0, 0.3, 7.1, 200.0},
 float[1] one = {1.3}, uint8[4] bytes = {0, 90, 101, 255}, uint8 byte = {107}"""


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("q = QuantizeLinear (k, s, z) d = DequantizeLinear (q, s, z) y = Mul (x, d)", 1),
        ("q = QuantizeLinear (one, s, z) d = DequantizeLinear (q, s, z) y = Add (d, x)", 0),
        ("d = DequantizeLinear (bytes, s, z) y = Mul (x, d)", 1),
        ("d = DequantizeLinear (byte, s, z) y = Mul (d, x)", 0),
        ("d = DequantizeLinear (byte, s) y = Mul (d, x)", 0),
    ],
)
def test_steps_are_folded_and_weights_stay_quantised(body: str, left: int) -> None:
    ran = agrees(parsed(f"g (float[2, 4] x) => (float[2, 4] y) <{VALUES}> {{ {body} }}"), X)
    assert "QuantizeLinear" not in ran.left
    assert ran.left.count("DequantizeLinear") == left
