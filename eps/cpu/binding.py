"""From one node to the function that computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.cpu.plan import KERNEL_ERRORS
from ort_lite.ep import Fail
from ort_lite.ep import NotImplemented as NotImplementedByCpu

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from eps.cpu.plan import Plan
    from eps.cpu.resolve import Resolution
    from ort_lite.ep import Graph, KernelFn, KernelInfo, Value


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds the nodes of one graph.

    Attributes:
        opset_imports: Of the graph.
        compile_body: Makes a plan of a function body.
    """

    opset_imports: Mapping[str, int]
    compile_body: Callable[[Graph], Plan]

    def bind(self, info: KernelInfo, resolution: Resolution) -> KernelFn:
        """The first of own kernels, onnx.reference and function body that takes the node.

        Raises:
            NotImplemented: None does.
            Fail: An attribute or constant of the node has a value that it cannot have.
        """
        try:
            found = self._find(info, resolution)
        except KERNEL_ERRORS as exc:
            raise Fail(
                f"Exception during initialization: {info.op_type} node. "
                f"Name:'{info.node.name}': {str(exc) or type(exc).__name__}"
            ) from exc
        if found is not None:
            return found
        declined = "its kernels take none of its attributes" if resolution.kernels else ""
        reason = resolution.reason or declined or "nothing computes it"
        raise NotImplementedByCpu(
            f"Could not find an implementation for {info.op_type}({info.since_version}) node "
            f"with name '{info.node.name}': {reason}"
        )

    def _find(self, info: KernelInfo, resolution: Resolution) -> KernelFn | None:
        for definition in resolution.kernels:
            fn = definition.factory(info)
            if fn is not None:
                return fn
        op = resolution.op
        if op is None:
            return None
        if resolution.reference:
            from eps.cpu.reference import reference_kernel  # noqa: PLC0415 - lazy: rare

            found = reference_kernel(op, info, self.opset_imports)
            if found is not None:
                return found
        if resolution.function:
            from eps.cpu.function_body import function_graph  # noqa: PLC0415 - lazy: rare

            body = function_graph(op, info, self.opset_imports)
            return None if body is None else _call_body(info, self.compile_body(body))
        return None


def _call_body(info: KernelInfo, plan: Plan) -> KernelFn:
    """A plan of o0, o1, ... from i0, i1, ... (given ones only) as a kernel."""
    given = tuple(i for i, name in enumerate(info.node.inputs) if name)
    made = tuple(i for i, name in enumerate(info.node.outputs) if name)
    count = info.n_outputs

    def call(*inputs: Value) -> tuple[Value, ...]:
        results: list[Value] = [None] * count
        for i, value in zip(made, plan.run([inputs[i] for i in given]), strict=True):
            results[i] = value
        return tuple(results)

    return call
