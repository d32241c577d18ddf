"""The description of a session's model: inputs, outputs, metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import TensorType
from ort_lite.model.type_text import type_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_formats.onnx_model import Model, ValueInfo

UNSET_VERSION = 9223372036854775807
"""onnxruntime's `version` of a model that sets none."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output of a model.

    Attributes:
        type: As ONNX Runtime writes it, e.g. "tensor(float)".
        shape: Sizes; a symbol's name where a dimension has one, None if it has not. Empty
            for a scalar and where the rank is not known.
    """

    name: str
    type: str
    shape: list[int | str | None] = field(default_factory=list)

    @classmethod
    def of(cls, info: ValueInfo) -> NodeArg:
        """From the model's own description."""
        shape: list[int | str | None] = []
        if isinstance(info.type, TensorType) and info.type.shape is not None:
            shape = [_dim(dim) for dim in info.type.shape]
        return cls(info.name, type_text(info.type), shape)


def _dim(dim: int | str | None) -> int | str | None:
    """ONNX Runtime shows a negative size (a habit of some exporters) as unknown."""
    if isinstance(dim, int) and dim < 0:
        return None
    return dim or None if isinstance(dim, str) else dim


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMetadata:
    """Descriptions in a model file; `version` is onnxruntime's sentinel where none is set."""

    producer_name: str
    producer_version: str
    graph_name: str
    graph_description: str
    domain: str
    description: str
    version: int
    custom_metadata_map: Mapping[str, str]

    @classmethod
    def of(cls, model: Model) -> ModelMetadata:
        """From a decoded model."""
        return cls(
            producer_name=model.producer_name,
            producer_version=model.producer_version,
            graph_name=model.graph.name,
            graph_description=model.graph.doc_string,
            domain=model.domain,
            description=model.doc_string,
            version=UNSET_VERSION if model.model_version is None else model.model_version,
            custom_metadata_map=dict(model.metadata_props),
        )
