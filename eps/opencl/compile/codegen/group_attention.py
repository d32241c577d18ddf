"""Attention to a cache of keys and values: new positions put into it, then queries one by one.

A cache is filled up to a length that each sequence has, and kernels read no further. A query's
scores are computed for a few keys at a time; when the largest score rises, the sums so far fade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.cache_place import fitting_vector, write_rotated, write_start
from eps.opencl.compile.codegen.fold import fold_lanes
from eps.opencl.compile.codegen.kernel import (
    Code,
    Kernel,
    decode,
    floats,
    load,
    load_packed,
    offset_of,
    pointee_type,
    store,
    store_packed,
)
from eps.opencl.compile.codegen.prompt_attention import (
    prompt_attention_kernel,
    takes_prompts,
)
from eps.opencl.compile.codegen.shared_attention import (
    shared_attention_kernel,
    takes_groups,
)
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.decoder_op import CacheAppend, GroupAttention
from eps.opencl.compile.element_types import HALF

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.compile.views import Storage
    from eps.opencl.target import Target

KEYS = 32
"""Keys whose scores are in private memory at a time."""


def cache_append_kernel(op: CacheAppend, step: PlacedOp, target: Target) -> Kernel:
    """Each row of the cache: from the past, from the new positions, or zeros.

    Where a run has the past and the cache in the same memory, the new positions alone.
    """
    new, y = step.inputs[0], step.output
    batch, groups, room, size = y.shape
    vector = fitting_vector(size, target)
    code = Code()
    spread = open_units(code, batch * groups * room, y.size // SMALLEST_TASK, target)
    b, g, t = decode(code, "u", (batch, groups, room), "d")
    result = f"p{len(step.inputs)}"
    row, kind = ("cell" if y.buffer.dtype == HALF else "to"), pointee_type(y.buffer)
    code.add(f"__global {kind}* {row} = {result} + {y.offset} + u * {size};")
    write_start(code, op.place, step, b, room)
    past = step.inputs[op.past] if op.past else None
    place = (y.shape, y.strides, y.offset)
    shares = past is not None and (past.shape, past.strides, past.offset) == place
    inside = f"{t} >= before && {t} < before + {op.place.new}"
    if shares:
        same = f"(__global const void*)p{op.past} == (__global const void*){result}"
        code.add(f"if ({same} && !({inside})) continue;")
    code.open(f"if ({inside})")
    at = offset_of(
        [(b, new.strides[0]), (f"({t} - before)", new.strides[1]), (g, size)], new.offset
    )
    code.add(f"__global const float* from = p0 + {at};")
    if row != "to":
        code.add(f"float to[{size}];")
    write_rotated(code, op.place, step, size, (t, "1.0f"))
    if row != "to":
        _write_row(code, y.buffer, size, vector, lambda at: load("to", at, 1, vector))
    code.close()
    if past is not None:
        code.open(f"else if ({t} < before)")
        at = offset_of([(b, past.strides[0]), (g, past.strides[1]), (t, size)], past.offset)
        code.add(f"__global const {kind}* from = p{op.past} + {at};")
        held = past.buffer
        _write_row(code, y.buffer, size, vector, lambda at: load_packed(held, "from", at, vector))
        code.close()
    code.open("else")
    _write_row(code, y.buffer, size, vector, lambda _: f"({floats(vector)})(0.0f)")
    code.close(2)
    operands = (*(v.buffer for v in step.inputs), y.buffer)
    in_place = frozenset({(op.past, len(step.inputs))}) if shares else frozenset()
    return Kernel(
        code.text(), operands, *spread, checks=True, label="cache_", in_place=in_place, joins=True
    )  # fmt: skip


def _write_row(
    code: Code, buffer: Storage, size: int, vector: int, value: Callable[[str], str]
) -> None:
    """A row of the cache = the vectors of floats that `value` gives."""
    code.open(f"for (int i = 0; i < {size}; i += {vector})")
    row = "cell" if buffer.dtype == HALF else "to"
    code.add(*store_packed(buffer, row, "i", vector, value("i")))
    code.close()


def group_attention_kernel(op: GroupAttention, step: PlacedOp, target: Target) -> Kernel:
    """A unit of work is a query of a head; prompts and work-groups have kernels of their own."""
    if takes_prompts(op, step, target):
        return prompt_attention_kernel(op, step, target)
    if takes_groups(step, target):
        return shared_attention_kernel(op, step, target)
    q, keys, y = step.inputs[0], step.inputs[1], step.output
    batch, groups, room, size = keys.shape
    heads, new = q.shape[2] // size, op.place.new
    vector = fitting_vector(size, target)
    code = Code()
    work = 4 * batch * heads * new * (new if op.place.starts_empty else room) * size
    spread = open_units(code, batch * heads * new, max(1, work // SMALLEST_TASK), target)
    b, s, n = decode(code, "u", (batch, new, heads), "d")
    write_start(code, op.place, step, b, room)
    code.add(f"const int own = before + {s};")
    row = offset_of([(b, q.strides[0]), (s, q.strides[1]), (n, size)], q.offset)
    code.add(f"__global const float* from = p0 + {row};", f"float to[{size}];")
    write_rotated(code, op.place, step, size, ("own", f"{op.scale!r}f"))
    cache = offset_of([(b, keys.strides[0]), (f"({n} / {heads // groups})", keys.strides[1])], 0)
    for index, name in ((1, "k"), (2, "v")):
        code.add(
            f"__global const {pointee_type(keys.buffer)}* {name} = "
            f"p{index} + {step.inputs[index].offset} + {cache};"
        )
    _write_sums(code, op, step, n, size // vector, vector)
    at = f"{y.offset} + u * {size}"
    result = f"p{len(step.inputs)}"
    code.add("const float whole = 1.0f / sum;")
    for i in range(size // vector):
        code.add(*store(result, f"{at} + {i * vector}", 1, vector, f"a{i} * whole"))
    code.close()
    operands = (*(v.buffer for v in step.inputs), y.buffer)
    return Kernel(code.text(), operands, *spread, checks=True, work=work, label="attention_")


def _write_sums(
    code: Code, op: GroupAttention, step: PlacedOp, head: str, parts: int, vector: int
) -> None:
    """a: values weighted by e^(score - top), sum: of the weights; over all keys that are seen."""
    size, kind, cache = parts * vector, floats(vector), step.inputs[1].buffer
    pointer = f"__global const {pointee_type(cache)}*"
    names = [f"a{i}" for i in range(parts)]
    code.add(f"{kind} {', '.join(f'{name} = ({kind})(0.0f)' for name in names)};")
    top, total = "-INFINITY", "0.0f"
    if op.sink:
        top, total = f"p{op.sink}[{step.inputs[op.sink].offset} + {head}]", "1.0f"
    elif op.smooth:
        top, total = "0.0f", "1.0f"
    code.add(f"float top = {top}, sum = {total};")
    begin = f"max(0, own + 1 - {op.window})" if op.window else "0"
    code.open(f"for (int t = {begin}; t <= own; t += {KEYS})")
    code.add(f"const int count = min({KEYS}, own + 1 - t);", f"float w[{KEYS}], most = top;")
    code.open("for (int i = 0; i < count; ++i)")
    code.add(f"{pointer} key = k + (t + i) * {size};")
    code.add(f"{kind} dot = ({kind})(0.0f);")
    for i in range(parts):
        at = str(i * vector)
        code.add(
            f"dot = mad({load('to', at, 1, vector)}, {load_packed(cache, 'key', at, vector)}, dot);"
        )
    score = fold_lanes(code, "dot", vector, lambda a, b: f"{a} + {b}")
    if op.softcap:
        score = f"{op.softcap!r}f * ol_tanh({score} * {1 / op.softcap!r}f)"
    code.add(f"w[i] = {score};", "most = w[i] > most ? w[i] : most;")
    code.close()
    code.add("const float fade = ol_exp(top - most);", "sum *= fade;", "top = most;")
    code.add(*(f"{name} *= fade;" for name in names))
    code.open("for (int i = 0; i < count; ++i)")
    code.add("const float e = ol_exp(w[i] - top);", "sum += e;")
    code.add(f"{pointer} value = v + (t + i) * {size};")
    for i, name in enumerate(names):
        row = load_packed(cache, "value", str(i * vector), vector)
        code.add(f"{name} = mad(({kind})(e), {row}, {name});")
    code.close(2)


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {
    CacheAppend: cache_append_kernel,
    GroupAttention: group_attention_kernel,
}
