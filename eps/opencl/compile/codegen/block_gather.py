"""Rows of weights of few bits, read from the panels that products have them packed in.

A language model's embedding is often its output layer's weights: both then have one copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, Kernel
from eps.opencl.compile.codegen.pack_blocks import choose_sizes, pack_weights
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.decoder_op import BlockGather

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target


def block_gather_kernel(op: BlockGather, step: PlacedOp, target: Target) -> Kernel:
    """A unit of work is one block of one row; an index out of range is reported, not read."""
    indices, y = step.inputs[0], step.output
    width, depth = step.inputs[1].shape[0], y.shape[-1]
    s = choose_sizes(op, (indices.size, depth, width), target)
    code = Code()
    spread = open_units(code, indices.size * s.blocks, y.size // SMALLEST_TASK, target)
    code.add(f"long pick = p0[{indices.offset} + u / {s.blocks}];")
    code.add(f"pick += pick < 0 ? {width} : 0;")
    code.add(f"if (pick < 0 || pick >= {width}) {{ *wrong = 1; pick = 0; }}")
    code.add(f"const int row = (int)pick, b = u % {s.blocks}, panel = row / {s.panel};")
    code.add(f"const int column = row - min(panel * {s.panel}, {width - s.panel});")
    code.add(f"const int at = (panel * {s.blocks} + b) * {s.panel} + column;")
    code.add("const float scale = p2[at];")
    code.add(f"const float zero = {'p3[at]' if len(step.inputs) > 3 else f'{s.middle!r}f'};")
    begin = f"(size_t)(panel * {s.blocks} + b) * {s.words * s.panel} + column"
    code.add(f"__global const int* w = p1 + {begin};")
    result = f"p{len(step.inputs)}"
    code.add(f"__global float* to = {result} + {y.offset} + u * {s.block};")
    code.open(f"for (int i = 0; i < {s.words}; ++i)")
    code.open(f"for (int j = 0; j < {s.each}; ++j)")
    step_text = f"(w[i * {s.panel}] >> (j * {s.bits})) & {(1 << s.bits) - 1}"
    code.add(f"to[i * {s.each} + j] = ((float)({step_text}) - zero) * scale;")
    code.close(3)
    operands = (indices.buffer, *pack_weights(step, s, len(step.inputs)), y.buffer)
    return Kernel(code.text(), operands, *spread, checks=True, label="weight_rows_")


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {BlockGather: block_gather_kernel}
