"""A model for one set of input shapes: dimensions become numbers, some inputs constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.onnx_model import TensorType
from ort_lite.model.tensor_values import from_numpy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy as np

    from ctx_formats.onnx_model import GraphDef, ValueInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedInputs:
    """Shapes and values that the inputs of a model have in some of its runs.

    Attributes:
        shapes: Of each input, by name.
        values: Of the inputs that become constants, by name.
    """

    shapes: Mapping[str, tuple[int, ...]]
    values: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def fix(self, graph: GraphDef) -> GraphDef:
        """`graph` with these inputs; types of values inside are dropped, to be inferred again."""
        return replace(
            graph,
            inputs=tuple(
                self._fix_info(info) for info in graph.inputs if info.name not in self.values
            ),
            initializers={
                **graph.initializers,
                **{name: from_numpy(value, name) for name, value in self.values.items()},
            },
            value_info={},
        )

    def _fix_info(self, info: ValueInfo) -> ValueInfo:
        shape = self.shapes.get(info.name)
        if shape is None or not isinstance(info.type, TensorType):
            return info
        return replace(info, type=TensorType(info.type.elem_type, shape))

    def __str__(self) -> str:
        """Shapes and values as `explain()` and the model cache have them.

        No two sets of inputs of one model have the same text.
        """
        shown = [
            f"{name} {list(shape)}"
            for name, shape in self.shapes.items()
            if name not in self.values
        ]
        shown += [f"{name} = {value.tolist()}" for name, value in self.values.items()]
        return ", ".join(shown)
