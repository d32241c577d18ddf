"""Rows that a work-group folds: reductions, softmax, layer normalisation, index of the extreme.

`lanes` items share a row and fold what each has found by halves in local memory, in an order that
is always the same; a group has several short rows at once. If a row's elements are adjacent its
lanes are adjacent items; where instead the rows' do, adjacent items have adjacent rows.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.opencl.compile.codegen.fold import add, larger
from eps.opencl.compile.codegen.kernel import Code, Kernel, decode, offset_of
from eps.opencl.compile.codegen.reduce import combination, start_of
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.ir import ArgExtreme, LayerNorm, Reduce, Softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.compile.views import View
    from eps.opencl.target import Groups, Target

EACH = 4
"""Elements of a row that an item takes at least, where there are as many."""
TOGETHER = 8
"""Adjacent items at least: memory gives 32 bytes at once, and a few long rows want many lanes."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the items of a group share rows.

    Attributes:
        lanes: Items of a row, a power of two.
        apart: Rows of a group; `lanes` times `apart` items are all of it.
        along: Whether the lanes of a row are adjacent items.
    """

    lanes: int
    apart: int
    along: bool

    @staticmethod
    def of(rows: int, length: int, groups: Groups, *, along: bool) -> Sharing:
        """For `rows` of `length` elements, which are contiguous if `along`."""
        lanes, most = 1, groups.size if along else max(1, groups.size // TOGETHER)
        while lanes < most and lanes * EACH < length:
            if not along and rows * lanes >= groups.min_groups * groups.size:
                break
            lanes *= 2
        return Sharing(lanes, groups.size // lanes, along)

    @property
    def stride(self) -> int:
        """Items from a lane to the next one of the same row."""
        return 1 if self.along else self.apart


class _Rows:
    """Writes a kernel: `open` it, `fold` names, `close` it."""

    def __init__(self, step: PlacedOp, rows: int, sharing: Sharing, dtypes: Sequence[str]) -> None:
        """`dtypes` are of the values that are folded side by side."""
        self.code, self.step, self.sharing = Code(), step, sharing
        self._rows = rows
        self._size = sharing.lanes * sharing.apart
        for i, dtype in enumerate(dtypes if sharing.lanes > 1 else ()):
            self.code.add(f"__local {C_TYPES[dtype]} shared{i}[{self._size}];")
        lane, place = ("%", "/") if sharing.along else ("/", "%")
        by = sharing.lanes if sharing.along else sharing.apart
        self.code.add(
            "const int l = get_local_id(0);",
            f"const int lane = l {lane} {by};",
            f"const int asked = get_group_id(0) * {sharing.apart} + l {place} {by};",
            f"const int row = min(asked, {rows - 1});",  # all items meet at the barriers
        )

    def each(self, length: int, name: str = "i") -> None:
        """Open a loop over a lane's elements of the row."""
        lanes = self.sharing.lanes
        self.code.open(f"for (int {name} = lane; {name} < {length}; {name} += {lanes})")

    def fold(self, name: str, combine: Callable[[str, str], str]) -> None:
        """Combine every lane's value of variable `name` into it."""

        def step(other: str) -> Sequence[str]:
            return (f"shared0[l] = {combine('shared0[l]', other.format(0))};",)

        self.fold_by((name,), step)

    def fold_by(self, names: Sequence[str], step: Callable[[str], Sequence[str]]) -> None:
        """As `fold`, of several variables; `step` has `shared<i>[l]` take in the other's.

        Args:
            names: Of the variables.
            step: Statements for the place of the other, a text with `{}` for the number.
        """
        code, lanes, stride = self.code, self.sharing.lanes, self.sharing.stride
        if lanes == 1:
            return
        barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
        code.add(*(f"shared{i}[l] = {name};" for i, name in enumerate(names)), barrier)
        half = lanes // 2
        while half:
            code.open(f"if (lane < {half})")
            code.add(*step(f"shared{{}}[l + {half * stride}]"))
            code.close()
            code.add(barrier)
            half //= 2
        first = f"l - lane * {stride}"
        code.add(*(f"{name} = shared{i}[{first}];" for i, name in enumerate(names)), barrier)

    def open_row(self) -> None:
        """Open what is done for rows that there are, and by all of their lanes."""
        self.code.open(f"if (asked < {self._rows})")

    def kernel(self) -> Kernel:
        """All of it; parameters are the inputs, then the output."""
        groups = -(-self._rows // self.sharing.apart)
        buffers = (*(v.buffer for v in self.step.inputs), self.step.output.buffer)
        return Kernel(self.code.text(), buffers, groups * self._size, self._size)


def _lies_along(view: View, axes: Sequence[int]) -> bool:
    """Whether the axis with the smallest stride is one of `axes`."""
    stepped = [a for a in range(len(view.shape)) if view.shape[a] > 1]
    return not stepped or min(stepped, key=lambda a: abs(view.strides[a])) in axes


def _open_rows(
    step: PlacedOp, reduced: Sequence[int], dtypes: Sequence[str], groups: Groups
) -> tuple[_Rows, list[str]]:
    """The beginning of a kernel for rows along axes of input 0; where a row starts in x and y."""
    x, y = step.inputs[0], step.output
    kept = sorted(set(range(len(x.shape))) - set(reduced), key=lambda a: -abs(x.strides[a]))
    sizes = [x.shape[a] for a in kept]
    along = _lies_along(x, reduced)
    sharing = Sharing.of(prod(sizes), prod(x.shape[a] for a in reduced), groups, along=along)
    rows = _Rows(step, prod(sizes), sharing, dtypes)
    names = decode(rows.code, "row", sizes, "d")
    starts = [
        offset_of(((n, v.strides[a]) for n, a in zip(names, kept, strict=True)), v.offset)
        for v in (x, y)
    ]
    return rows, starts


def softmax_by_groups(op: Softmax, step: PlacedOp, target: Target) -> Kernel:
    """Maximum, sum of exponentials, results: three passes, the second and third out of caches."""
    assert target.groups is not None, "select asks for groups"
    x, y = step.inputs[0], step.output
    n, sx, sy = x.shape[op.axis], x.strides[op.axis], y.strides[op.axis]
    rows, starts = _open_rows(step, (op.axis,), ("float32",), target.groups)
    code = rows.code
    code.add(f"__global const float* x = p0 + {starts[0]};", "float top = -INFINITY, sum = 0.0f;")
    rows.each(n)
    code.add(f"const float v = x[i * {sx}];", f"top = {larger('top', 'v')};")
    code.close()
    rows.fold("top", larger)
    rows.each(n)
    code.add(f"sum += ol_exp_normal(x[i * {sx}] - top);")
    code.close()
    rows.fold("sum", add)
    rows.open_row()
    code.add(f"__global float* y = p1 + {starts[1]};")
    code.add(f"const float scale = {'top + log(sum)' if op.log else '1.0f / sum'};")
    rows.each(n)
    value = f"x[i * {sx}] - scale" if op.log else f"ol_exp_normal(x[i * {sx}] - top) * scale"
    code.add(f"y[i * {sy}] = {value};")
    code.close(2)
    return rows.kernel()


def layer_norm_by_groups(op: LayerNorm, step: PlacedOp, target: Target) -> Kernel:
    """Mean, then variance of what is left, then the result: the two-pass form."""
    assert target.groups is not None, "select asks for groups"
    x, y, n = step.inputs[0], step.output, op.count
    count = x.size // n
    rows = _Rows(step, count, Sharing.of(count, n, target.groups, along=True), ("float32",))
    code, last = rows.code, len(step.inputs)
    code.add(
        f"__global const float* x = p0 + {x.offset} + row * {n};",
        "float mean = 0.0f, square = 0.0f;",
    )
    if not op.root_mean_square:
        rows.each(n)
        code.add("mean += x[i];")
        code.close()
        rows.fold("mean", add)
        code.add(f"mean *= {1.0 / n!r}f;")
    rows.each(n)
    code.add("const float v = x[i] - mean;", "square += v * v;")
    code.close()
    rows.fold("square", add)
    code.add(f"const float scale = 1.0f / sqrt(square * {1.0 / n!r}f + {op.epsilon!r}f);")
    rows.open_row()
    code.add(f"__global float* y = p{last} + {y.offset} + row * {n};")
    rows.each(n)
    bias = " + p2[i]" if last > 2 else ""
    code.add(f"y[i] = (x[i] - mean) * scale * p1[i]{bias};")
    code.close(2)
    return rows.kernel()


def reduce_by_groups(op: Reduce, step: PlacedOp, target: Target) -> Kernel:
    """Lanes take turns at a row's elements, numbered by their order in memory."""
    assert target.groups is not None, "select asks for groups"
    x = step.inputs[0]
    dtype = x.buffer.dtype
    reduced = sorted(op.axes, key=lambda a: -abs(x.strides[a]))
    sizes = [x.shape[a] for a in reduced]
    rows, starts = _open_rows(step, reduced, (dtype,), target.groups)
    code = rows.code
    code.add(f"__global const {C_TYPES[dtype]}* x = p0 + {starts[0]};")
    code.add(f"{C_TYPES[dtype]} a = {start_of(op.kind, dtype) or 'x[0]'};")
    rows.each(prod(sizes))
    names = decode(code, "i", sizes, "r")
    at = offset_of((n, x.strides[a]) for n, a in zip(names, reduced, strict=True))
    code.add(f"const {C_TYPES[dtype]} v = x[{at}];")
    code.add(f"a = {combination(op.kind, dtype)('a', 'v')};")
    code.close()
    rows.fold("a", combination(op.kind, dtype))
    code.open("if (asked == row && lane == 0)")
    code.add(f"p1[{starts[1]}] = {f'a * {1.0 / prod(sizes)!r}f' if op.kind == 'mean' else 'a'};")
    code.close()
    return rows.kernel()


def arg_extreme_by_groups(op: ArgExtreme, step: PlacedOp, target: Target) -> Kernel:
    """Value and index together: a NaN beats every number, then of equal ones the index decides."""
    assert target.groups is not None, "select asks for groups"
    x = step.inputs[0]
    dtype, n, stride = x.buffer.dtype, x.shape[op.axis], x.strides[op.axis]
    rows, starts = _open_rows(step, (op.axis,), (dtype, "int32"), target.groups)
    code = rows.code
    code.add(
        f"__global const {C_TYPES[dtype]}* x = p0 + {starts[0]};",
        f"int at = lane < {n} ? lane : 0;",  # the first element once more changes nothing
        f"{C_TYPES[dtype]} best = x[at * {stride}];",
    )
    rows.each(n)
    code.add(f"const {C_TYPES[dtype]} v = x[i * {stride}];")
    code.add(f"if ({_wins(op, dtype, ('v', 'i'), ('best', 'at'))}) {{ best = v; at = i; }}")
    code.close()

    def step_of(other: str) -> Sequence[str]:
        theirs, mine = (other.format(0), other.format(1)), ("shared0[l]", "shared1[l]")
        taken = f"shared0[l] = {theirs[0]}; shared1[l] = {theirs[1]};"
        return (f"if ({_wins(op, dtype, theirs, mine)}) {{ {taken} }}",)

    rows.fold_by(("best", "at"), step_of)
    code.open("if (asked == row && lane == 0)")
    code.add(f"p1[{starts[1]}] = at;")
    code.close()
    return rows.kernel()


def _wins(op: ArgExtreme, dtype: str, new: tuple[str, str], old: tuple[str, str]) -> str:
    """Whether (value, index) `new` is to be taken for `old`."""
    (v, i), (best, at) = new, old
    sign, later = ">" if op.largest else "<", ">" if op.last else "<"
    better = f"({v} {sign} {best} || ({v} == {best} && {i} {later} {at}))"
    if "float" not in dtype:
        return better
    return f"({v} != {v} ? {best} == {best} || {i} < {at} : {best} == {best} && {better})"


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {
    Softmax: softmax_by_groups,
    LayerNorm: layer_norm_by_groups,
    Reduce: reduce_by_groups,
    ArgExtreme: arg_extreme_by_groups,
}
"""Operations with their own kernels for work-groups."""
