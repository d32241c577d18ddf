"""Memory layout of tensors: axis orders, zero borders, parts of concatenations, copies.

Images are channels last, so that a vector is one pixel's channels. A convolution's padding is
a border around its input, of zeros or of an integer's zero point, so that its kernel tests no
bounds. The parts of a concatenation are written into the whole. Everything else is strides.
"""

from __future__ import annotations

from collections import defaultdict

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.custom_op import CustomOp
from eps.opencl.compile.decoder_op import BlockGather, BlockMatMul, CacheAppend, GroupAttention
from eps.opencl.compile.expert_op import ExpertMatMul
from eps.opencl.compile.expression import Arg
from eps.opencl.compile.half_op import HalfCast
from eps.opencl.compile.ir import (
    EIGHT_BITS,
    Alias,
    Concat,
    Convolution,
    IrTensor,
    KernelGraph,
    LayerNorm,
    MatMul,
    Op,
    Permute,
    Pointwise,
    Pool,
    Slice,
    TransposedConvolution,
)
from eps.opencl.compile.views import Storage, View, ordered_strides, plain_strides

CHANNELS_LAST = (0, 2, 3, 1)
ROW_WRITERS = (
    *(LayerNorm, BlockGather, BlockMatMul, ExpertMatMul, CacheAppend, GroupAttention, CustomOp),
    HalfCast,
)
"""Operations whose kernels write row-major results, rows one after another."""
Border = tuple[int, int, int, int]
NO_BORDER: Border = (0, 0, 0, 0)
FEW_CHANNELS = 4
"""An image of so few channels is read in place: its pixels are not vectors anyway."""


def assign_orders(graph: KernelGraph) -> None:
    """Set `order` of every tensor: images channels last, others as what they are made of."""
    users: dict[int, list[Op]] = defaultdict(list)
    for op in graph.ops:
        for tensor in dict.fromkeys(op.inputs):
            users[id(tensor)].append(op)
    results = {id(t) for t in graph.outputs}
    for op in graph.ops:
        op.output.order = _order(op, users[id(op.output)], is_result=id(op.output) in results)


def _order(op: Op, users: list[Op], *, is_result: bool) -> tuple[int, ...]:
    if isinstance(op, Convolution | TransposedConvolution | Pool):
        return CHANNELS_LAST
    if isinstance(op, Alias):
        return _alias_order(op)
    if isinstance(op, ROW_WRITERS):
        return ()
    if is_result and isinstance(op, Pointwise | Concat):
        return ()
    if _is_quantised_image(op, users):
        return CHANNELS_LAST
    if isinstance(op, MatMul):
        return _product_order(users)
    rank = len(op.output.shape)
    same = [t for t in op.inputs if len(t.shape) == rank and t.order and t.constant is None]
    return max(same, key=lambda t: t.size).order if same else ()


def _is_quantised_image(op: Op, users: list[Op]) -> bool:
    """Whether it is made for convolutions of integers, which read several channels at once."""
    made = isinstance(op, Pointwise) and op.output.dtype in EIGHT_BITS
    return made and bool(users) and all(isinstance(user, Convolution) for user in users)


def _alias_order(op: Alias) -> tuple[int, ...]:
    source: IrTensor = op.inputs[0]
    if isinstance(op.how, Slice):
        return source.order
    if isinstance(op.how, Permute):
        axes = op.how.axes
        order = source.order or tuple(range(len(axes)))
        permutation = tuple(axes.index(a) for a in order)
        return () if permutation == tuple(range(len(axes))) else permutation
    return ()


def _product_order(users: list[Op]) -> tuple[int, ...]:
    """As its only user will see it, so that a transposition afterwards moves nothing."""
    if len(users) == 1 and isinstance(users[0], Alias) and isinstance(users[0].how, Permute):
        axes = users[0].how.axes
        if axes[-1] == len(axes) - 1:
            return axes
    return ()


@dataclass(frozen=True, slots=True)
class PlacedOp:
    """One operation with the place of everything it touches; `more` are outputs after the first."""

    op: Op
    inputs: tuple[View, ...]
    output: View
    more: tuple[View, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedGraph:
    """Steps in the order in which they run; inputs and outputs are plain views."""

    steps: tuple[PlacedOp, ...]
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]


def assign_layouts(graph: KernelGraph) -> PlacedGraph:
    """Give every tensor its place."""
    assign_orders(graph)
    return _Layout(graph).run()


class _Layout:
    def __init__(self, graph: KernelGraph) -> None:
        self._graph = graph
        self._makers = {id(t): op for op in graph.ops for t in op.outputs}
        self._borders: dict[int, Border] = {}
        self._outside: dict[int, int] = {}
        self._parts: dict[int, tuple[Concat, int]] = {}
        self._views: dict[int, View] = {}
        self._steps: list[PlacedOp] = []

    def run(self) -> PlacedGraph:
        for op in self._graph.ops:
            if isinstance(op, Convolution | TransposedConvolution):
                self._demand_border(op)
        for op in reversed(self._graph.ops):
            if isinstance(op, Concat):
                self._adopt_parts(op)
        for op in self._graph.ops:
            if isinstance(op, Concat):
                self._share_border(op)
        for tensor in self._graph.inputs:
            self._views[id(tensor)] = _plain_view(tensor.shape, tensor.dtype)
        for op in self._graph.ops:
            self._place(op)
        taken: set[int] = set()
        outputs = tuple(self._output(tensor, taken) for tensor in self._graph.outputs)
        inputs = tuple(self._views[id(tensor)] for tensor in self._graph.inputs)
        return PlacedGraph(tuple(self._steps), inputs, outputs)

    def _demand_border(self, op: Convolution | TransposedConvolution) -> None:
        """Have the input made with a border, where a kernel of ours makes it as an image."""
        x = op.inputs[0]
        if self._is_made_here(x) and x.order == CHANNELS_LAST:
            needed, outside = border_of(op), outside_of(op)
            if needed == NO_BORDER or self._outside.setdefault(id(x), outside) != outside:
                return
            held = self._borders.get(id(x), NO_BORDER)
            self._borders[id(x)] = tuple(map(max, needed, held))  # type: ignore[assignment]

    def _is_made_here(self, tensor: IrTensor) -> bool:
        maker = self._makers.get(id(tensor))
        return maker is not None and not isinstance(maker, Alias)

    def _adopt_parts(self, op: Concat) -> None:
        """Have parts made in their place; images only side by side in their channels."""
        at = 0
        for tensor in op.inputs:
            strided = not isinstance(self._makers.get(id(tensor)), ROW_WRITERS)
            fits = self._is_made_here(tensor) and tensor.order == op.output.order and strided
            free = id(tensor) not in self._parts and tensor not in self._graph.outputs
            alone = op.inputs.count(tensor) == 1
            if fits and free and alone and (op.axis == 1 or tensor.order != CHANNELS_LAST):
                self._parts[id(tensor)] = (op, at)
            at += tensor.shape[op.axis]

    def _share_border(self, op: Concat) -> None:
        """A part's border is the border of the whole."""
        parts = [t for t in op.inputs if self._parts.get(id(t), (None, 0))[0] is op]
        borders = [self._borders.get(id(t), NO_BORDER) for t in (op.output, *parts)]
        self._borders[id(op.output)] = tuple(map(max, *borders, NO_BORDER))
        widths = (self._outside[id(t)] for t in (op.output, *parts) if id(t) in self._outside)
        self._outside[id(op.output)] = next(widths, 0)

    def _view(self, tensor: IrTensor) -> View:
        """The view of a tensor, created on first use."""
        view = self._views.get(id(tensor))
        if view is None:
            view = self._views[id(tensor)] = self._new_view(tensor)
        return view

    def _new_view(self, tensor: IrTensor) -> View:
        if tensor.constant is not None:
            buffer = Storage(tensor.size, tensor.dtype, tensor.constant)
            return View(buffer, tensor.shape, plain_strides(tensor.shape))
        part = self._parts.get(id(tensor))
        if part is not None:
            return _part_of(self._view(part[0].output), part[0].axis, part[1], tensor.shape)
        border = self._borders.get(id(tensor), NO_BORDER)
        if border == NO_BORDER:
            return _ordered_view(tensor)
        return image_view(tensor, border, self._outside.get(id(tensor), 0))

    def _place(self, op: Op) -> None:
        if isinstance(op, Alias):
            self._views[id(op.output)] = self._alias(op)
        elif isinstance(op, Concat):
            self._join(op)
        else:
            inputs = [self._view(t) for t in op.inputs]
            if isinstance(op, Convolution | TransposedConvolution):
                inputs[0] = self._image(op, inputs[0])
            elif isinstance(op, MatMul):
                if op.inputs[1].constant is None:
                    inputs[1] = self._with_unit_stride(inputs[1])
                if op.inputs[0].dtype != "float32":
                    inputs[0] = self._with_unit_stride(inputs[0])
            elif isinstance(op, LayerNorm | BlockGather | HalfCast) and not inputs[0].is_plain:
                inputs[0] = self._copy_to_plain(inputs[0])
            elif isinstance(op, CacheAppend | GroupAttention):
                inputs[0] = self._with_unit_stride(inputs[0])
                inputs[1:] = [x if x.is_plain else self._copy_to_plain(x) for x in inputs[1:]]
            elif isinstance(op, BlockMatMul | ExpertMatMul | CustomOp):
                inputs = [x if x.is_plain else self._copy_to_plain(x) for x in inputs]
            output, *more = map(self._view, op.outputs)
            self._steps.append(PlacedOp(op, tuple(inputs), output, tuple(more)))

    def _alias(self, op: Alias) -> View:
        source = self._view(op.inputs[0])
        view = op.how.apply(source)
        if view is None:
            view = op.how.apply(self._copy_to_plain(source))
        assert view is not None, "a plain view can be reshape_view"
        return view

    def _join(self, op: Concat) -> None:
        whole, at = self._view(op.output), 0
        for tensor in op.inputs:
            owner = self._parts.get(id(tensor))
            if owner is None or owner[0] is not op:
                target = _part_of(whole, op.axis, at, tensor.shape)
                self._copy(self._view(tensor), target)
            at += tensor.shape[op.axis]

    def _image(self, op: Convolution | TransposedConvolution, view: View) -> View:
        """The input as the kernel needs it: channels last, with the border."""
        x, needed = op.inputs[0], border_of(op)
        fits = needed == NO_BORDER or view.buffer.border == outside_of(op)
        if fits and self._is_made_here(x) and x.order == CHANNELS_LAST:
            return view
        few = x.shape[1] <= FEW_CHANNELS and op.groups == 1 and x.dtype == "float32"
        if needed == NO_BORDER and (view.strides[1] == 1 or few):
            return view
        copy = IrTensor(x.shape, x.dtype, order=CHANNELS_LAST)
        target = image_view(copy, needed, outside_of(op))
        self._copy(view, target)
        return target

    def _with_unit_stride(self, view: View) -> View:
        return view if view.strides[-1] == 1 or view.shape[-1] == 1 else self._copy_to_plain(view)

    def _copy_to_plain(self, view: View) -> View:
        target = _plain_view(view.shape, view.buffer.dtype)
        self._copy(view, target)
        return target

    def _copy(self, source: View, target: View) -> None:
        dtype = source.buffer.dtype
        op = Pointwise((), IrTensor(source.shape, dtype), Arg(0, dtype))
        self._steps.append(PlacedOp(op, (source,), target))

    def _output(self, tensor: IrTensor, taken: set[int]) -> View:
        if not tensor.size:
            return _plain_view(tensor.shape, tensor.dtype)
        view = self._view(tensor)
        held = view.buffer.constant is not None or id(view.buffer) in taken
        is_input = any(view.buffer is self._views[id(x)].buffer for x in self._graph.inputs)
        if held or is_input or not view.is_plain:
            view = self._copy_to_plain(view)
        taken.add(id(view.buffer))
        return view


def outside_of(op: Convolution | TransposedConvolution) -> int:
    """The value of the border."""
    return op.outside if isinstance(op, Convolution) else 0


def border_of(op: Convolution | TransposedConvolution) -> Border:
    """Widths that the kernel reads around its input: (top, left, bottom, right)."""
    if isinstance(op, Convolution):
        return op.window.pads
    rows, columns = (
        (reach, reach)
        for reach in (
            (op.window.kernel[axis] - 1) * op.window.dilations[axis] // op.window.strides[axis] + 1
            for axis in (0, 1)
        )
    )
    if op.window.kernel == op.window.strides and not any(op.window.pads):
        return NO_BORDER
    return rows[0], columns[0], rows[1], columns[1]


def _plain_view(shape: tuple[int, ...], dtype: str) -> View:
    tensor = IrTensor(shape, dtype)
    return _ordered_view(tensor)


def _ordered_view(tensor: IrTensor) -> View:
    order = tensor.order or tuple(range(len(tensor.shape)))
    buffer = Storage(tensor.size, tensor.dtype)
    return View(buffer, tensor.shape, ordered_strides(tensor.shape, order))


def image_view(tensor: IrTensor, border: Border, outside: int) -> View:
    """[N, C, H, W] channels last, `border` around rows and columns that holds `outside`."""
    n, channels, rows, columns = tensor.shape
    top, left, bottom, right = border
    wide, high = columns + left + right, rows + top + bottom
    line = wide * channels
    strides = (high * line, 1, line, channels)
    geometry = (n, high, wide, channels, *border)
    buffer = Storage(n * high * line, tensor.dtype, geometry=geometry, border=outside)
    return View(buffer, tensor.shape, strides, top * line + left * channels)


def _part_of(whole: View, axis: int, start: int, shape: tuple[int, ...]) -> View:
    starts = tuple(start if a == axis else 0 for a in range(len(shape)))
    part = Slice(starts, (1,) * len(shape), shape).apply(whole)
    assert part is not None, "a slice is always a view"
    return part
