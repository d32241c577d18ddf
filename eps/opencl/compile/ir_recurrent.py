"""Operations of the kernel graph that step through a sequence."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.ir import Op


@dataclass(eq=False, slots=True, kw_only=True)
class Recurrence(Op):
    """ONNX LSTM, GRU or RNN after the products with the input, which are made for all steps.

    inputs[0] are those products with their biases, [T, B, D * gates * H], in ONNX's order of
    gates; inputs[1] the weights of the recurrence [D, gates * H, H], a constant. The output is
    [T + states, D, B, H]: the sequence, then the last hidden and, of LSTM, cell state.

    Attributes:
        kind: "LSTM", "GRU" or "RNN".
        reverse: For each direction, whether it runs from the end.
        activations: Their names, the same for each direction.
        initial_h, initial_c: Index of the input [D, B, H], 0 where there is none.
        peepholes: Index of the input [D, 3 * H] for the input, output and forget gates, or 0.
        hidden_bias: GRU with `linear_before_reset`: index of the bias [D, H] that is inside
            of the reset, or 0.
        lengths: Index of the input [B], int32, or 0.
        linear_before_reset: Of GRU.
    """

    kind: str
    reverse: tuple[bool, ...]
    activations: tuple[str, ...]
    initial_h: int = 0
    initial_c: int = 0
    peepholes: int = 0
    hidden_bias: int = 0
    lengths: int = 0
    linear_before_reset: bool = False
