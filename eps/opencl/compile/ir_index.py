"""Operations of the kernel graph that find, pick or place elements by index."""

from __future__ import annotations

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.ir import Op


@dataclass(eq=False, slots=True)
class ArgExtreme(Op):
    """int64 index of the largest or smallest element along `axis`, which is 1 in the output.

    A NaN wins, as in numpy; of equal elements the first wins, or the last with `last`.
    """

    axis: int
    largest: bool
    last: bool = False


@dataclass(eq=False, slots=True)
class TopIndices(Op):
    """int64 indices of the `output.shape[axis]` largest or smallest elements, best first.

    Of equal elements the one with the lower index comes first.
    """

    axis: int
    largest: bool


@dataclass(eq=False, slots=True)
class Cumulative(Op):
    """Sum or product of all elements up to this one along `axis`: ONNX CumSum, CumProd."""

    axis: int
    kind: str
    exclusive: bool = False
    reverse: bool = False


@dataclass(eq=False, slots=True)
class GatherElements(Op):
    """output[..., i, ...] = inputs[0][..., inputs[1][..., i, ...], ...] along `axis`."""

    axis: int


@dataclass(eq=False, slots=True)
class ScatterElements(Op):
    """inputs[0] with inputs[2] put where inputs[1] says along `axis`.

    `kind` is "" to replace, or the combination: add, mul, max, min.
    """

    axis: int
    kind: str = ""


@dataclass(eq=False, slots=True)
class ScatterND(Op):
    """inputs[0] with the slices of inputs[2] put where the tuples of inputs[1] [..., k] say."""

    kind: str = ""
