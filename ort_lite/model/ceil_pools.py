"""Shapes of pools with `ceil_mode`, which onnx's inference gets wrong below opset 22.

Windows that would start in the padding behind the input are left out (MaxPool-22, AveragePool-22,
LpPool-22). onnxruntime and onnx.reference do so at every opset, and so do our kernels; onnx 1.23's
inference counts such a window up to opset 21. Inference is shown a foreign operator in its place.
Pools whose padding is too narrow for such a window, as most are, need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from ctx_formats.onnx_model import AttributeType, DataType, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_formats.onnx_model import Dim, GraphDef, Model, Node, ValueType

DOMAIN = "ort_lite.ceil_mode"
"""Of the operators that inference is shown; no model has it."""
OPERATORS = frozenset(("AveragePool", "LpPool", "MaxPool"))
RIGHT_FROM = 22
"""The opset from which onnx's inference is right."""


def is_ceil_pool(node: Node) -> bool:
    """Whether a node is what `hide_ceil_pools` put into a pool's place."""
    return node.domain == DOMAIN


def hide_ceil_pools(model: Model) -> Model:
    """The model with each such pool in `DOMAIN`; itself where there is none.

    In bodies of control flow the pools stay, whose types nothing but onnx's inference finds.
    """
    nodes = model.graph.nodes
    if model.opset_imports.get("", 1) >= RIGHT_FROM or not any(map(_is_affected, nodes)):
        return model
    hidden = tuple(replace(n, domain=DOMAIN) if _is_affected(n) else n for n in nodes)
    return replace(
        model,
        graph=replace(model.graph, nodes=hidden),
        opset_imports={**model.opset_imports, DOMAIN: 1},
    )


def show_ceil_pools(graph: GraphDef) -> GraphDef:
    """The graph with its pools in the domain that they have."""
    if not any(map(is_ceil_pool, graph.nodes)):
        return graph
    nodes = tuple(replace(n, domain="") if is_ceil_pool(n) else n for n in graph.nodes)
    return replace(graph, nodes=nodes)


def _is_affected(node: Node) -> bool:
    """Whether it is a pool that may have such a window, and attributes that fit each other."""
    if node.op_type not in OPERATORS or node.domain:
        return False
    ceil, auto_pad = node.attributes.get("ceil_mode"), node.attributes.get("auto_pad")
    if ceil is None or not ceil.value or (auto_pad is not None and auto_pad.value != b"NOTSET"):
        return False
    windows = _read_windows(node)
    return windows is not None and any(
        after + step > (taps - 1) * spread + 1 for taps, step, spread, _, after in windows
    )


def _read_windows(node: Node) -> list[tuple[int, int, int, int, int]] | None:
    """By axis: taps, stride, dilation, padding before and after; None if these do not fit."""
    kernel = _ints(node, "kernel_shape", ())
    rank = len(kernel)
    strides, dilations = (_ints(node, name, (1,) * rank) for name in ("strides", "dilations"))
    pads = _ints(node, "pads", (0,) * (2 * rank))
    if not rank or (len(strides), len(dilations), len(pads)) != (rank, rank, 2 * rank):
        return None
    return list(zip(kernel, strides, dilations, pads[:rank], pads[rank:], strict=True))


def infer_ceil_pool(
    node: Node, input_types: Sequence[ValueType | None]
) -> tuple[ValueType | None, ...]:
    """Types of the outputs of a pool that `hide_ceil_pools` hid; None for what is not known."""
    x = input_types[0] if input_types else None
    if not isinstance(x, TensorType):
        return (None,) * len(node.outputs)
    windows = _read_windows(node) or []
    shape: tuple[Dim, ...] | None = None
    if x.shape is not None and len(x.shape) == len(windows) + 2:
        counts = (_count(*one) for one in zip(x.shape[2:], windows, strict=True))
        shape = (*x.shape[:2], *counts)
    types = (TensorType(x.elem_type, shape), TensorType(DataType.INT64, shape))
    return types[: len(node.outputs)]


def _count(size: Dim, window: tuple[int, int, int, int, int]) -> Dim:
    """Windows along an axis; None where that is not known, or a window does not fit."""
    taps, step, spread, before, after = window
    if not isinstance(size, int) or step < 1:
        return None
    room = size + before + after - ((taps - 1) * spread + 1)
    count = -(-room // step) + 1
    if (count - 1) * step >= size + before:
        count -= 1
    return count if room > -step and count > 0 else None


def _ints(node: Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    attribute = node.attributes.get(name)
    if attribute is None or attribute.type != AttributeType.INTS:
        return default
    return attribute.value if isinstance(attribute.value, tuple) else default
