"""Which generator writes the kernels of which operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.compile.codegen import (
    block_gather,
    block_matmul,
    custom,
    experts,
    group_attention,
    group_rows,
    halves,
    lines,
    quantised_recurrent,
    scatter,
    shared_steps,
)
from eps.opencl.compile.codegen.dense import convolution_kernels, matmul_kernels, transposed_kernels
from eps.opencl.compile.codegen.kernel import UNNAMED
from eps.opencl.compile.codegen.movement import fill_kernel, gather_kernel, gather_nd_kernel
from eps.opencl.compile.codegen.pointwise import pointwise_kernel
from eps.opencl.compile.codegen.reduce import reduce_kernel
from eps.opencl.compile.codegen.rows import layer_norm_kernel, softmax_kernel
from eps.opencl.compile.codegen.sample import sample_kernel
from eps.opencl.compile.codegen.window import depthwise_kernel, is_depthwise, pool_kernel
from eps.opencl.compile.codegen.winograd import outputs_of, winograd_kernels
from eps.opencl.compile.ir import (
    Convolution,
    Fill,
    Gather,
    GatherND,
    LayerNorm,
    MatMul,
    Pointwise,
    Pool,
    Reduce,
    Sample,
    Softmax,
    TransposedConvolution,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.opencl.compile.codegen.kernel import Kernel
    from eps.opencl.compile.ir import Op
    from eps.opencl.compile.layout import PlacedOp
    from eps.opencl.target import Target

    Generator = Callable[..., Kernel | list[Kernel]]


def _convolution(op: Convolution, step: PlacedOp, target: Target) -> list[Kernel]:
    if is_depthwise(op):
        return [depthwise_kernel(op, step, target)]
    outputs = outputs_of(op, step, target)
    if outputs is not None:
        return winograd_kernels(op, step, target, outputs)
    return convolution_kernels(op, step, target)


def _pointwise(op: Pointwise, step: PlacedOp, target: Target) -> Kernel:
    return pointwise_kernel(op.expr, step.inputs, step.output, target)


GENERATORS: Mapping[type[Op], Generator] = {
    Pointwise: _pointwise,
    MatMul: matmul_kernels,
    Convolution: _convolution,
    TransposedConvolution: transposed_kernels,
    Pool: pool_kernel,
    Reduce: reduce_kernel,
    Softmax: softmax_kernel,
    LayerNorm: layer_norm_kernel,
    Gather: gather_kernel,
    GatherND: gather_nd_kernel,
    Fill: fill_kernel,
    Sample: sample_kernel,
    **block_gather.GENERATORS,
    **block_matmul.GENERATORS,
    **experts.GENERATORS,
    **group_attention.GENERATORS,
    **halves.GENERATORS,
    **custom.GENERATORS,
    **lines.GENERATORS,
    **quantised_recurrent.GENERATORS,
    **scatter.GENERATORS,
    **shared_steps.GENERATORS,
}


def generate_kernels(step: PlacedOp, target: Target) -> list[Kernel]:
    """The kernel calls of one step, in order."""
    kind = type(step.op)
    by_groups = group_rows.GENERATORS.get(kind) if target.groups is not None else None
    made = (by_groups or GENERATORS[kind])(step.op, step, target)
    return [
        _name_kernel(kernel, step.op) for kernel in (made if isinstance(made, list) else [made])
    ]


def _name_kernel(kernel: Kernel, op: Op) -> Kernel:
    """The kernel under a name that a profile is read by, where it has none of its own."""
    if kernel.label != UNNAMED:
        return kernel
    if kernel.problem is None:
        return replace(kernel, label=f"{type(op).__name__.lower()}_")
    (kh, kw), sizes = kernel.problem.taps, kernel.problem
    return replace(kernel, label=f"product{kh}x{kw}_{sizes.depth}to{sizes.width}_")
