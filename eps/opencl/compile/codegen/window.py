"""Depthwise convolution and pooling: each channel independently, a vector of them at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eps.opencl.compile.codegen.integer import integer_target, pack_taps, pairs, zip_vectors
from eps.opencl.compile.codegen.kernel import (
    UNNAMED,
    Code,
    Kernel,
    finish_of,
    load,
    offset_of,
    pointee_type,
    store,
)
from eps.opencl.compile.codegen.spread import TileUnits
from eps.opencl.compile.expression import vector_type
from eps.opencl.compile.views import Storage
from eps.opencl.program_spec import INTEGER_LABEL

if TYPE_CHECKING:
    from eps.opencl.compile.codegen.kernel import Finish
    from eps.opencl.compile.ir import Convolution, Pool
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.compile.views import View
    from eps.opencl.target import Target

_MAXIMUM = "a = select(v, a, (a > v) | isnan(a));"  # keeps NaN
WIDE = 4
"""Output pixels that share each load of a weight."""
SMALLEST_TASK = 16384


def is_depthwise(op: Convolution) -> bool:
    """Whether every channel has a kernel of its own."""
    return op.groups == op.inputs[0].shape[1] == op.output.shape[1] and op.groups > 1


def depthwise_kernel(op: Convolution, step: PlacedOp, target: Target) -> Kernel:
    """A row of output pixels for each step of a task, channels innermost."""
    x, y = step.inputs[0], step.output
    n, channels, rows, columns = y.shape
    kh, kw = op.window.kernel
    weights = step.inputs[1].buffer.constant
    assert weights is not None, "lowering takes constant weights"
    of_floats = x.buffer.dtype == "float32"
    by_tap = weights.reshape(channels, kh * kw).T
    taps = by_tap.astype(np.float32).reshape(-1) if of_floats else pack_taps(by_tap)
    finish = finish_of(op.epilogue, step.inputs, y.shape, 2)
    vector = _vector(channels, target if of_floats else integer_target(target))
    code = Code()
    wide = min(WIDE, columns)
    sizes = (n, rows, -(-channels // vector), -(-columns // wide))
    strides = tuple(y.strides[a] for a in (0, 2, 1, 3))
    units = TileUnits(code, sizes, 2, strides, y.size * kh * kw // SMALLEST_TASK, target)
    image, row = units.outer
    top, left = op.window.pads[:2]
    start = x.offset - top * x.strides[2] - left * x.strides[3]
    at = offset_of([(image, x.strides[0]), (row, op.window.strides[0] * x.strides[2])], start)
    code.add(f"__global const {pointee_type(x.buffer)}* xr = p0 + {at};")
    panel, stretch = units.open_inner()
    code.add(f"const int n0 = min({panel} * {vector}, {channels - vector});")
    code.add(f"const int c0 = min({stretch} * {wide}, {columns - wide});")
    write_taps = _write_taps if of_floats else _write_tap_pairs
    write_taps(code, op, x, channels, (vector, wide))
    for i in range(wide):
        _write_pixel(code, finish, y, (image, row), (i, vector))
    units.close()
    buffers = (x.buffer, Storage(taps.size, taps.dtype.name, taps))
    operands = (*buffers, *(v.buffer for v in finish.views), y.buffer)
    work, label = 2 * y.size * kh * kw, UNNAMED if of_floats else INTEGER_LABEL
    return Kernel(code.text(), operands, *units.spread, work=work, label=label)


def _vector(channels: int, target: Target) -> int:
    vector = target.vector
    while vector > channels:
        vector //= 2
    return vector


def _kind(vector: int) -> str:
    return f"float{vector}" if vector > 1 else "float"


def _write_taps(code: Code, op: Convolution, x: View, channels: int, tile: tuple[int, int]) -> None:
    vector, wide = tile
    kind = _kind(vector)
    step = op.window.strides[1] * x.strides[3]
    code.add(f"__global const float* xp = xr + c0 * {step} + n0 * {x.strides[1]};")
    code.add(f"{kind} {', '.join(f'a{i} = 0.0f' for i in range(wide))};")
    for tap in range(op.window.kernel[0] * op.window.kernel[1]):
        i, j = divmod(tap, op.window.kernel[1])
        at = i * op.window.dilations[0] * x.strides[2] + j * op.window.dilations[1] * x.strides[3]
        code.add(f"const {kind} w{tap} = {load('p1', f'n0 + {tap * channels}', 1, vector)};")
        for pixel in range(wide):
            text = load("xp", str(at + pixel * step), x.strides[1], vector)
            code.add(f"a{pixel} = mad({text}, w{tap}, a{pixel});")


def _write_tap_pairs(
    code: Code, op: Convolution, x: View, channels: int, tile: tuple[int, int]
) -> None:
    """As `_write_taps`, of integers: two taps at once, which meet in pairs of each channel."""
    vector, wide = tile
    step = op.window.strides[1] * x.strides[3]
    at = f"xr + c0 * {step} + n0 * {x.strides[1]}"
    code.add(f"__global const {pointee_type(x.buffer)}* xp = {at};")
    code.add(f"{vector_type('int32', vector)} {', '.join(f'a{i} = 0' for i in range(wide))};")
    offsets = [
        i * op.window.dilations[0] * x.strides[2] + j * op.window.dilations[1] * x.strides[3]
        for i in range(op.window.kernel[0])
        for j in range(op.window.kernel[1])
    ]
    for pair, taps in enumerate(pairs(len(offsets), quads=False)):
        text = f"vload{2 * vector}(0, p1 + n0 * 2 + {pair * 2 * channels})"
        code.add(f"const short{2 * vector} w{pair} = convert_short{2 * vector}({text});")
        for pixel in range(wide):
            both = [
                ""
                if tap is None
                else load(
                    "xp", str(offsets[tap] + pixel * step), x.strides[1], vector, x.buffer.dtype
                )
                for tap in taps
            ]
            values = zip_vectors(x.buffer.dtype, vector, both[0], both[1])
            code.add(f"a{pixel} += ol_madd({values}, w{pair});")


def _write_pixel(
    code: Code, finish: Finish, y: View, place: tuple[str, str], tile: tuple[int, int]
) -> None:
    (image, row), (pixel, vector) = place, tile
    loads = {}
    for number, view in enumerate((y, *finish.views)):
        sn, sc, sh, sw = view.strides
        terms = [(image, sn), (row, sh), ("c0", sw), ("n0", sc)]
        at = offset_of(terms, view.offset + pixel * sw)
        if number:
            pointer = f"p{finish.first + number - 1}"
            loads[number] = load(pointer, at, sc, vector, view.buffer.dtype)
        else:
            target = at, sc
    value = finish.write(code, f"a{pixel}", loads, vector, f"q{pixel}_")
    pointer = f"p{finish.first + len(finish.views)}"
    code.add(*store(pointer, target[0], target[1], vector, value))


def pool_kernel(op: Pool, step: PlacedOp, target: Target) -> Kernel:
    """Windows cut at the image's edge; the divisor of a mean is what takes part."""
    x, y = step.inputs[0], step.output
    n, channels, rows, columns = y.shape
    vector = _vector(channels, target)
    kind = _kind(vector)
    code = Code()
    worth = y.size * op.window.kernel[0] * op.window.kernel[1] // SMALLEST_TASK
    sizes = (n, rows, columns, -(-channels // vector))
    units = TileUnits(code, sizes, 2, tuple(y.strides[a] for a in (0, 2, 3, 1)), worth, target)
    image, row = units.outer
    code.add(*_range("h", row, op, 0, x.shape[2]))
    column, panel = units.open_inner()
    code.add(*_range("w", column, op, 1, x.shape[3]))
    code.add(f"const int n0 = min({panel} * {vector}, {channels - vector});")
    start = "-INFINITY" if op.kind == "max" else "0.0f"
    code.add(f"{kind} a = {f'({kind})({start})' if vector > 1 else start};")
    code.open(f"for (int i = h0; i < h1; i += {op.window.dilations[0]})")
    code.open(f"for (int j = w0; j < w1; j += {op.window.dilations[1]})")
    sn, sc, sh, sw = x.strides
    at = offset_of([(image, sn), ("i", sh), ("j", sw), ("n0", sc)], x.offset)
    code.add(f"const {kind} v = {load('p0', at, sc, vector)};")
    code.add(_MAXIMUM if op.kind == "max" else "a += v;")
    code.close(2)
    if op.kind == "mean":
        code.add(f"a = a / (float)({_divisor(op)});")
    sn, sc, sh, sw = y.strides
    at = offset_of([(image, sn), (row, sh), (column, sw), ("n0", sc)], y.offset)
    code.add(*store("p1", at, sc, vector, "a"))
    units.close()
    return Kernel(code.text(), (x.buffer, y.buffer), *units.spread)


def _range(name: str, index: str, op: Pool, axis: int, size: int) -> list[str]:
    """First and end input index of a window along an axis, cut at the image."""
    window = op.window
    dilation, reach = window.dilations[axis], window.kernel[axis] * window.dilations[axis]
    begin = f"{index} * {window.strides[axis]} - {window.pads[axis]}"
    low = f"max({begin}, 0)"
    if dilation > 1:  # the first tap inside: whole steps after the begin
        first = f"{begin} + (({dilation - 1} - ({begin})) / {dilation}) * {dilation}"
        low = f"({begin} < 0 ? {first} : {begin})"
    return [f"const int {name}0 = {low}, {name}1 = min({begin} + {reach}, {size});"]


def _divisor(op: Pool) -> str:
    if op.count_pads:
        return str(op.window.kernel[0] * op.window.kernel[1])
    counts = [
        f"((({n}1 - {n}0) + {d - 1}) / {d})" for n, d in zip("hw", op.window.dilations, strict=True)
    ]
    return " * ".join(counts)
