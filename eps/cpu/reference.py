"""Operators through onnx.reference, where it is right and fast enough."""

from __future__ import annotations

import importlib
import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from eps.cpu.node_model import node_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep import KernelFn, KernelInfo, OpIdentifier

_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "": "onnx.reference.ops._op_list",
        "ai.onnx.ml": "onnx.reference.ops.aionnxml._op_list",
        "ai.onnx.preview.training": "onnx.reference.ops.aionnx_preview_training._op_list",
    }
)

DENIED: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "BatchNormalization": (13, "computes the training formula"),
        "DequantizeLinear": (18, "is missing"),
        "GatherElements": (99, "fails on axes over 64 long"),
        "GridSample": (19, "rejects the mode names of that version"),
        "Hardmax": (12, "does not flatten to two dimensions"),
        "If": (99, "looks values up by name in the outer graph"),
        "LogSoftmax": (12, "does not flatten to two dimensions"),
        "Loop": (99, "runs no iteration without a condition, stacks scan outputs wrongly"),
        "Optional": (99, "wraps the value in a list"),
        "OptionalGetElement": (99, "expects the list that Optional makes"),
        "OptionalHasElement": (99, "expects the list that Optional makes"),
        "Resize": (10, "is missing"),
        "RoiAlign": (15, "shifts coordinates by half a pixel"),
        "Scan": (99, "knows no axes, directions or batches"),
        "Scatter": (99, "is missing"),
        "SequenceMap": (99, "takes one further input and no outer values"),
        "Softmax": (12, "does not flatten to two dimensions"),
        "Unsqueeze": (99, "rejects unsorted axes"),
        "Upsample": (99, "interpolates another way"),
    }
)
"""Operator to the last version that onnx.reference 1.23 gets wrong, and what is wrong."""


def why_not(op: OpIdentifier) -> str:
    """Why onnx.reference does not serve `op`; "" if it does."""
    last, what = DENIED.get(op.op_type, (0, "")) if op.domain == "" else (0, "")
    if op.since_version <= last:
        return f"onnx.reference {what}"
    return "" if _find_class(op) else "onnx.reference has no class for it"


def reference_kernel(
    op: OpIdentifier, info: KernelInfo, opset_imports: Mapping[str, int]
) -> KernelFn | None:
    """The class's `_run`, attributes bound; None if there is no class or it is denied."""
    op_run = None if why_not(op) else _find_class(op)
    if op_run is None:
        return None
    node = node_model(info, opset_imports).graph.node[0]
    instance = op_run(node, {"log": _ignore, "opsets": dict(opset_imports), "new_ops": None})
    run = instance._run  # noqa: SLF001 - `run` rebuilds its arguments for every call
    attributes = {name: getattr(instance, name) for name in instance.attributes_names_}
    parameters = inspect.signature(run).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        known = {p.name for p in parameters}
        attributes = {name: value for name, value in attributes.items() if name in known}

    def call(*inputs: Any) -> Any:  # noqa: ANN401 - whatever the class takes and gives
        results = run(*inputs, **attributes)
        return tuple(map(_as_ours, results))

    return call


def _as_ours(result: Any) -> Any:  # noqa: ANN401 - whatever the class gives
    """Scalars as arrays, and texts as objects."""
    if np.isscalar(result):
        result = np.asarray(result)
    if isinstance(result, np.ndarray) and result.dtype.kind == "U":
        return result.astype(object)
    return result


def _ignore(*_: object) -> None:
    """onnx.reference wants somewhere to log to."""


def _find_class(op: OpIdentifier) -> Any:  # noqa: ANN401 - a subclass of OpRun
    """The class for that version: `Name_<version>` not above it, or `Name` where none is."""
    if op.domain not in _MODULES:
        return None
    classes = vars(importlib.import_module(_MODULES[op.domain]))
    prefix = f"{op.op_type}_"
    numbered = {
        int(name.removeprefix(prefix)): op_run
        for name, op_run in classes.items()
        if name.startswith(prefix) and name.removeprefix(prefix).isdecimal()
    }
    usable = [version for version in numbered if version <= op.since_version]
    if usable:
        return numbered[max(usable)]
    op_run = None if numbered else classes.get(op.op_type)
    return op_run if inspect.isclass(op_run) else None
