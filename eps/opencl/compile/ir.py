"""The kernel graph: tensors of static shape, and the operations that make them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ctx_formats.lean_dataclass import dataclass, field
from eps.opencl.compile.views import View, reshape_view

if TYPE_CHECKING:
    from eps.opencl.compile.expression import Expr

    Array = np.ndarray[Any, np.dtype[Any]]


EIGHT_BITS = ("int8", "uint8")
"""Element types of quantised tensors that kernels multiply as integers."""


class Unsupported(Exception):  # noqa: N818 - a signal: the node goes to another EP
    """A node that this EP does not run; the text says why, in one line."""


@dataclass(eq=False, slots=True)
class IrTensor:
    """A value of the kernel graph; compared by identity.

    Attributes:
        dtype: numpy's name of the element type.
        constant: Its content, where that is known when compiling.
        order: Axes in their order in memory, outermost first; () for row-major.
        name: Of the ONNX value that it is, for messages.
        quantised: What it was dequantised from, if it was.
        single: The float32 tensor that a float16 one was made of, if it was.
    """

    shape: tuple[int, ...]
    dtype: str
    constant: np.ndarray | None = None
    order: tuple[int, ...] = ()
    name: str = ""
    quantised: Quantised | None = None
    single: IrTensor | None = None

    @property
    def size(self) -> int:
        """Number of elements of the tensor."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuantParams:
    """Which float an integer stands for: (integer - zero) * scale.

    Attributes:
        dtype: Of the integers, one of `EIGHT_BITS`.
        scale: float32, of one element or one for each index of `axis`.
        zero: int32, of the shape of `scale`.
        axis: From the front; None if one scale is for all.
    """

    dtype: str
    scale: Array
    zero: Array
    axis: int | None

    def is_equal(self, other: QuantParams) -> bool:
        """Whether equal integers stand for equal floats in both."""
        return (
            (self.dtype, self.axis) == (other.dtype, other.axis)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero, other.zero)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Quantised:
    """Integers of the shape of a tensor, and the steps by which they stand for its floats."""

    integers: IrTensor
    steps: QuantParams


@dataclass(eq=False, slots=True)
class Op:
    """One operation; `inputs` may hold a tensor twice."""

    inputs: tuple[IrTensor, ...]
    output: IrTensor

    @property
    def outputs(self) -> tuple[IrTensor, ...]:
        """All that it makes."""
        return (self.output,)


@dataclass(eq=False, slots=True)
class Pointwise(Op):
    """output[i] = expr(inputs[i]), inputs broadcast to the output's shape."""

    expr: Expr


@dataclass(eq=False, slots=True)
class Epilogue:
    """The operations that a kernel applies to its result before it stores it.

    Attributes:
        expr: Arg(0) is the result; Arg(i) is input `first + i - 1` of the operation.
        first: Index of the first extra input.
    """

    expr: Expr
    first: int


@dataclass(eq=False, slots=True)
class MatMul(Op):
    """output[..., m, n] = sum over k of inputs[0][..., m, k] * inputs[1][..., k, n].

    Both are of the output's rank, batch axes broadcast. Integers are summed as int32.
    """

    epilogue: Epilogue | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class Window:
    """A sliding window over rows and columns of [N, C, H, W].

    Attributes:
        kernel, strides, dilations: (rows, columns).
        pads: (top, left, bottom, right).
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]


@dataclass(eq=False, slots=True)
class Convolution(Op):
    """ONNX Conv of inputs[0] [N, C, H, W] with inputs[1] [O, C/groups, kh, kw], a constant.

    Integers are summed as int32; padding holds `outside`.
    """

    window: Window
    groups: int
    epilogue: Epilogue | None = None
    outside: int = 0


@dataclass(eq=False, slots=True)
class TransposedConvolution(Op):
    """ONNX ConvTranspose of inputs[0] [N, C, H, W] with inputs[1] [C, O/groups, kh, kw]."""

    window: Window
    groups: int
    epilogue: Epilogue | None = None


@dataclass(eq=False, slots=True)
class Pool(Op):
    """Maximum or average over a window; padding counts only with `count_pads`."""

    window: Window
    kind: str
    count_pads: bool = False


@dataclass(eq=False, slots=True)
class Reduce(Op):
    """sum, mean, max, min or prod over `axes`, which the output has with size 1."""

    kind: str
    axes: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Softmax(Op):
    """Softmax along `axis`, or its logarithm."""

    axis: int
    log: bool = False


@dataclass(eq=False, slots=True)
class LayerNorm(Op):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the last `count` elements.

    inputs: x, scale [count], and bias [count] if there are three; `root_mean_square` leaves
    the mean out. The output is of x's shape; `count` is the product of its last axes.
    """

    count: int
    epsilon: float
    root_mean_square: bool = False


@dataclass(eq=False, slots=True)
class Gather(Op):
    """ONNX Gather: slices of inputs[0] along `axis` that inputs[1], integers, picks."""

    axis: int


@dataclass(eq=False, slots=True)
class GatherND(Op):
    """ONNX GatherND: inputs[1] [..., k], integers, picks along the k axes from `batch` on."""

    batch: int


@dataclass(eq=False, slots=True)
class Sample(Op):
    """output[i] = sum over taps of weight * inputs[0][source(i)], along each axis independently.

    Attributes:
        sources: For each axis, for each output index, the input indices it reads.
        weights: For each axis, their weights, of the same lengths.
    """

    sources: tuple[tuple[tuple[int, ...], ...], ...]
    weights: tuple[tuple[tuple[float, ...], ...], ...]


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
    """int64 indices of the largest or smallest elements, best first; ties as in ArgExtreme."""

    axis: int
    largest: bool
    last: bool = False


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
        initial_h, initial_c: Index of the input [D, B, H], 0 if absent.
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


@dataclass(eq=False, slots=True, kw_only=True)
class QuantisedLstm(Recurrence):
    """An LSTM whose weights inputs[1] are integers; states become such at each step.

    Each state is quantised by its range over the batch, as by DynamicQuantizeLinear. There are
    neither peepholes nor lengths.

    Attributes:
        scales: Of the weights, [D, 4 * H].
    """

    scales: np.ndarray


@dataclass(eq=False, slots=True)
class Concat(Op):
    """Inputs one after another along `axis`."""

    axis: int


@dataclass(eq=False, slots=True)
class Fill(Op):
    """inputs[0] put into a constant: output[i + starts] = inputs[0][i], the rest `value`."""

    starts: tuple[int, ...]
    value: float | int | bool


@dataclass(eq=False, slots=True)
class Alias(Op):
    """The elements of inputs[0] seen another way; no kernel where strides can say it."""

    how: Reshape | Permute | Slice | Stretch


@dataclass(frozen=True, slots=True)
class Reshape:
    """Another shape, the same order of elements."""

    shape: tuple[int, ...]

    def apply(self, view: View) -> View | None:
        """The elements of `view` seen that way; None if strides cannot express it."""
        return reshape_view(view, self.shape)


@dataclass(frozen=True, slots=True)
class Permute:
    """Axis i of the result is axis axes[i]."""

    axes: tuple[int, ...]

    def apply(self, view: View) -> View | None:
        """The elements of `view` seen that way; never None."""
        shape = tuple(view.shape[a] for a in self.axes)
        return View(view.buffer, shape, tuple(view.strides[a] for a in self.axes), view.offset)


@dataclass(frozen=True, slots=True)
class Slice:
    """Elements starts[i] + n * steps[i] of axis i; steps may be negative."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    shape: tuple[int, ...]

    def apply(self, view: View) -> View | None:
        """The elements of `view` seen that way; never None."""
        offset = sum(a * s for a, s in zip(self.starts, view.strides, strict=True))
        strides = tuple(a * s for a, s in zip(self.steps, view.strides, strict=True))
        return View(view.buffer, self.shape, strides, view.offset + offset)


@dataclass(frozen=True, slots=True)
class Stretch:
    """numpy's broadcasting to `shape`."""

    shape: tuple[int, ...]

    def apply(self, view: View) -> View | None:
        """The elements of `view` seen that way; never None."""
        return view.broadcast(self.shape)


@dataclass(slots=True)
class KernelGraph:
    """Operations in an order in which they can run.

    Attributes:
        notes: For `explain()`: operators that became several operations.
    """

    inputs: tuple[IrTensor, ...]
    outputs: tuple[IrTensor, ...]
    ops: list[Op] = field(default_factory=list)
    notes: tuple[str, ...] = ()
