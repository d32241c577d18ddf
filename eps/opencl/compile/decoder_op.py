"""Operations of language models: weights of few bits, caches of keys and values, attention."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.ir import Epilogue, Op


@dataclass(eq=False, slots=True, kw_only=True)
class BlockMatMul(Op):
    """inputs[0] [..., K] times weights of few bits, quantised by blocks along K: MatMulNBits.

    inputs[1] are the weights [N, blocks, block * bits / 8], uint8, in a byte's low bits first;
    inputs[2] the scales [N, blocks]; inputs[3], if given, the zero points [N, blocks], uint8 or
    float32, or else half of the range. All three are constants. The output is [..., N].

    Attributes:
        bits: 4 or 8.
        block: Weights of a block, a power of two from 16 on; the last one of a row may be partial.
        byte_inputs: Whether inputs[0] may be quantised to 8 bits; zero points are then no floats.
    """

    bits: int
    block: int
    byte_inputs: bool = False
    epilogue: Epilogue | None = None

    @property
    def operands(self) -> int:
        """Inputs before those of the epilogue."""
        return len(self.inputs) if self.epilogue is None else self.epilogue.first


@dataclass(eq=False, slots=True, kw_only=True)
class BlockGather(Op):
    """Rows [..., K] that inputs[0], integers, picks of weights as `BlockMatMul` has them."""

    bits: int
    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlace:
    """Where the new positions of a cache begin, and how they are rotated.

    Attributes:
        length: Input of the last valid position of each sequence, [B], int32.
        new: New positions of each sequence.
        starts_empty: Whether the new positions are the first ones, whatever `length` says.
        cos, sin: Inputs of the tables [positions, half]; 0 for no rotation.
        interleaved: Whether pairs are neighbours, and not half a table's width apart.
    """

    length: int
    new: int
    starts_empty: bool
    cos: int = 0
    sin: int = 0
    interleaved: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class CacheAppend(Op):
    """A cache [B, G, L, H]: valid positions, then inputs[0] [B, S, G * H], then zeros.

    Attributes:
        past: Input of the cache before, [B, G, P, H]; 0 for none.
    """

    place: CachePlace
    past: int = 0


@dataclass(eq=False, slots=True, kw_only=True)
class GroupAttention(Op):
    """Causal attention of inputs[0] [B, S, N * H] to caches inputs[1], inputs[2] [B, G, L, H].

    Attributes:
        scale: Of the product of queries and keys.
        softcap: Scores are softcap * tanh(score / softcap) where it is not 0.
        window: How many keys a query sees, up to its own position; 0 for all.
        sink: Input of a score for each head that takes part in its softmax, [N]; 0 for none.
        smooth: Whether such a score of 0 takes part.
    """

    place: CachePlace
    scale: float
    softcap: float = 0.0
    window: int = 0
    sink: int = 0
    smooth: bool = False
