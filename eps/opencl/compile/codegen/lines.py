"""Kernels that walk along one axis: index of the extreme, the best few, running sums."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from eps.opencl.compile.codegen.kernel import Code, Kernel, decode, offset_of
from eps.opencl.compile.codegen.spread import SMALLEST_TASK, open_units
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.ir import ArgExtreme, Cumulative, TopIndices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.codegen.spread import Spread
    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target


def open_lines(code: Code, step: PlacedOp, axis: int, target: Target) -> Spread:
    """Open a loop over the lines along `axis` of input 0; `x` and `y` point at their starts."""
    x, y = step.inputs[0], step.output
    others = [a for a in range(len(x.shape)) if a != axis]
    sizes = [x.shape[a] for a in others]
    spread = open_units(code, prod(sizes), x.size // SMALLEST_TASK, target)
    names = decode(code, "u", sizes, "d")
    for name, view, number in (("x", x, 0), ("y", y, len(step.inputs))):
        terms = ((n, view.strides[a]) for n, a in zip(names, others, strict=True))
        const = "const " if name == "x" else ""
        kind = C_TYPES[view.buffer.dtype]
        at = offset_of(terms, view.offset)
        code.add(f"__global {const}{kind}* {name} = p{number} + {at};")
    return spread


def arg_extreme_kernel(op: ArgExtreme, step: PlacedOp, target: Target) -> Kernel:
    """One comparison for each element; a NaN beats every number."""
    x, kind = step.inputs[0], C_TYPES[step.inputs[0].buffer.dtype]
    code = Code()
    spread = open_lines(code, step, op.axis, target)
    code.add(f"{kind} best = x[0];", "int at = 0;")
    code.open(f"for (int i = 1; i < {x.shape[op.axis]}; ++i)")
    code.add(f"const {kind} v = x[i * {x.strides[op.axis]}];")
    sign = (">" if op.largest else "<") + ("=" if op.last else "")
    better = f"v {sign} best"
    if "float" in x.buffer.dtype:
        better = f"best == best && ({better} || v != v)"
    code.add(f"if ({better}) {{ best = v; at = i; }}")
    code.close()
    code.add("*y = at;")
    code.close()
    return Kernel(code.text(), (x.buffer, step.output.buffer), *spread)


def top_indices_kernel(op: TopIndices, step: PlacedOp, target: Target) -> Kernel:
    """Each element is sifted into the sorted list of the best so far, which is the output."""
    x, kind = step.inputs[0], C_TYPES[step.inputs[0].buffer.dtype]
    step_x, step_y = x.strides[op.axis], step.output.strides[op.axis]
    count = step.output.shape[op.axis]
    sign = (">" if op.largest else "<") + ("=" if op.last else "")
    code = Code()
    spread = open_lines(code, step, op.axis, target)
    code.add("int held = 0;")
    code.open(f"for (int i = 0; i < {x.shape[op.axis]}; ++i)")
    code.add(f"const {kind} v = x[i * {step_x}];")
    worst = f"x[(int)y[{(count - 1) * step_y}] * {step_x}]"
    code.add(f"if (held == {count} && !(v {sign} {worst})) continue;")
    code.add(f"int at = held < {count} ? held++ : {count - 1};")
    code.open(f"while (at > 0 && v {sign} x[(int)y[(at - 1) * {step_y}] * {step_x}])")
    code.add(f"y[at * {step_y}] = y[(at - 1) * {step_y}];", "--at;")
    code.close()
    code.add(f"y[at * {step_y}] = i;")
    code.close(2)
    return Kernel(code.text(), (x.buffer, step.output.buffer), *spread)


def cumulative_kernel(op: Cumulative, step: PlacedOp, target: Target) -> Kernel:
    """One pass, from the back with `reverse`."""
    x, kind = step.inputs[0], C_TYPES[step.inputs[0].buffer.dtype]
    n, sign = x.shape[op.axis], "*" if op.kind == "prod" else "+"
    code = Code()
    spread = open_lines(code, step, op.axis, target)
    code.add(f"{kind} a = {1 if op.kind == 'prod' else 0};")
    code.open(f"for (int k = 0; k < {n}; ++k)")
    code.add(f"const int i = {f'{n - 1} - k' if op.reverse else 'k'};")
    code.add(f"const {kind} v = x[i * {x.strides[op.axis]}], next = a {sign} v;")
    code.add(f"y[i * {step.output.strides[op.axis]}] = {'a' if op.exclusive else 'next'};")
    code.add("a = next;")
    code.close(2)
    return Kernel(code.text(), (x.buffer, step.output.buffer), *spread)


GENERATORS: Mapping[type[Op], Callable[..., Kernel]] = {
    ArgExtreme: arg_extreme_kernel,
    TopIndices: top_indices_kernel,
    Cumulative: cumulative_kernel,
}
