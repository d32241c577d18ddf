"""Functions of a model that import other operator sets than the model, made to import the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto


def align_opsets(model: ModelProto) -> None:
    """Give functions the opset versions of the model, and the model what only functions import.

    `onnx.inliner` does not inline a function of other versions. In a valid model they make no
    difference (onnx.proto demands that both have the same schema for each node of the function),
    and onnxruntime 1.31.1 gives the nodes of all functions the model's: a Softmax without an axis
    in a function of opset 12 runs over the last axis in a model of opset 13.
    """
    of_model = {_domain(opset.domain): opset.version for opset in model.opset_import}
    for function in model.functions:
        for opset in function.opset_import:
            domain = _domain(opset.domain)
            if domain not in of_model:
                of_model[domain] = opset.version
                model.opset_import.add(domain=domain, version=opset.version)
            opset.version = of_model[domain]


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
