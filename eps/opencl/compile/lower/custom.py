"""Nodes of operators that the user has declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.opencl.compile.custom_op import CustomOp
from eps.opencl.compile.element_types import C_TYPES
from eps.opencl.compile.expression import literal
from eps.opencl.compile.ir import IrTensor, Unsupported
from eps.opencl.custom.formulas import ShapeMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.compile.lower.node import NodeView
    from eps.opencl.custom.operators import CustomKernels, CustomOperator

MAX_ITEMS = 1 << 30
_INT_BITS = 31


def lower_custom(node: NodeView, custom: CustomKernels) -> Sequence[IrTensor]:
    """The outputs of a node whose operator `custom` declares.

    Raises:
        Unsupported: Inputs, attributes or shapes are not as declared.
    """
    operator = custom.operators[node.node.domain, node.node.op_type]
    inputs = _inputs(node, operator)
    attributes = _attributes(node, operator)
    integers = {a.name: int(attributes[a.name]) for a in operator.attributes if a.kind == "int"}
    try:
        bound = operator.bind([x.shape for x in inputs], integers)
        items = operator.count_items(bound)
        outputs = [
            IrTensor(operator.output_shape(i, bound), declared.dtype)
            for i, declared in enumerate(operator.outputs)
        ]
    except ShapeMismatch as exc:
        raise Unsupported(str(exc)) from exc
    if not 0 < items <= MAX_ITEMS:
        raise Unsupported(f"{items} items, and 1 to {MAX_ITEMS} are possible")
    numbers = [str(bound.sizes[name.removeprefix("*")]) for name in operator.dimensions]
    numbers += [
        literal(attributes[a.name], "float32") if a.kind == "float" else str(attributes[a.name])
        for a in operator.attributes
    ]
    node.emit(
        CustomOp(
            tuple(inputs),
            outputs[0],
            function=operator.function,
            text=custom.text,
            items=items,
            numbers=tuple(numbers),
            more=tuple(outputs[1:]),
        )
    )
    return outputs


def _inputs(node: NodeView, operator: CustomOperator) -> list[IrTensor]:
    if len(node.inputs) != len(operator.inputs):
        raise Unsupported(f"{len(node.inputs)} inputs, and {len(operator.inputs)} are declared")
    inputs = [node.input(i) for i in range(len(operator.inputs))]
    for tensor, declared in zip(inputs, operator.inputs, strict=True):
        if tensor.dtype != declared.dtype:
            raise Unsupported(f"{declared.name} is {tensor.dtype}, and declared {declared.dtype}")
        assert declared.dtype in C_TYPES, "declarations take no other types"
    return inputs


def _attributes(node: NodeView, operator: CustomOperator) -> Mapping[str, float]:
    """The numbers of a node; a float of kind `float`, an int of kind `int`."""
    unknown = set(node.node.attributes) - {a.name for a in operator.attributes}
    if unknown:
        raise Unsupported(f"attribute '{min(unknown)}', which is not declared")
    values: dict[str, float] = {}
    for declared in operator.attributes:
        value = node.attr(declared.name, declared.default)
        if value is None:
            raise Unsupported(f"attribute '{declared.name}' is missing, and has no default")
        if not isinstance(value, float if declared.kind == "float" else int):
            raise Unsupported(f"attribute '{declared.name}' is {value!r}, not a {declared.kind}")
        if isinstance(value, int) and value.bit_length() > _INT_BITS:
            raise Unsupported(f"attribute '{declared.name}' is {value}, beyond 32 bits")
        values[declared.name] = value
    return values
