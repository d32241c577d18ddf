"""Where new positions of a cache begin, and their rotation: parts of all kernels that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import offset_of

if TYPE_CHECKING:
    from eps.opencl.compile.codegen.kernel import Code
    from eps.opencl.compile.decoder_op import CachePlace
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target


def fitting_vector(size: int, target: Target) -> int:
    """Floats of the longest vector of the device that divides the size of a head."""
    vector = target.vector
    while size % vector:
        vector //= 2
    return vector


def write_start(code: Code, place: CachePlace, step: PlacedOp, batch: str, room: int) -> None:
    """before: where the new positions of a sequence begin; a length out of range is reported."""
    if place.starts_empty:
        code.add("const int before = 0;")
        return
    lengths = step.inputs[place.length]
    at = offset_of([(batch, lengths.strides[0])], lengths.offset)
    code.add(f"const int given = p{place.length}[{at}] + {1 - place.new};")
    limit = room - place.new
    code.add(f"if (given < 0 || given > {limit}) *wrong = 1;")
    code.add(f"const int before = min(max(given, 0), {limit});")


def write_rotated(
    code: Code,
    place: CachePlace,
    step: PlacedOp,
    size: int,
    turn: tuple[str, str],
    items: tuple[str, int] = ("0", 1),
) -> None:
    """to [size] = from [size] times a scale, pairs turned by the angles of a position.

    `turn` is the position and the scale, `items` the index of a work-item among so many that share
    the work.
    """
    turned, (position, scale), (first_item, count) = 0, turn, items
    after = "++i" if count == 1 else f"i += {count}"
    if place.cos:
        rows, half = step.inputs[place.cos].shape
        turned = 2 * half
        code.add(f"if ({position} >= {rows}) *wrong = 1;")
        tables = [
            f"p{index}[{step.inputs[index].offset} + at + i]" for index in (place.cos, place.sin)
        ]
        code.add(f"const int at = min({position}, {rows - 1}) * {half};")
        first, second = ("2 * i", "2 * i + 1") if place.interleaved else ("i", f"i + {half}")
        code.open(f"for (int i = {first_item}; i < {half}; {after})")
        code.add(f"const float a = from[{first}] * {scale}, b = from[{second}] * {scale};")
        code.add(f"const float c = {tables[0]}, s = {tables[1]};")
        code.add(f"to[{first}] = a * c - b * s;", f"to[{second}] = a * s + b * c;")
        code.close()
    if turned < size:
        begin = str(turned) if count == 1 else offset_of([(first_item, 1)], turned)
        code.add(f"for (int i = {begin}; i < {size}; {after}) to[i] = from[i] * {scale};")
