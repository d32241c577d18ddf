"""What a session takes and gives, as its user sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from ctx_formats.lean_dataclass import dataclass
from ort_lite.execution.feeds import Feeds
from ort_lite.model.info import NodeArg
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import Tensor
    from ort_lite.model.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Inputs and outputs of a session.

    Attributes:
        feeds: Checks what a run is fed.
        overridable: Initializers that a run may be fed besides.
        positions: Of each output, by name.
    """

    feeds: Feeds
    inputs: Sequence[NodeArg]
    overridable: Sequence[NodeArg]
    outputs: Sequence[NodeArg]
    positions: Mapping[str, int]

    @classmethod
    def of(cls, graph: Graph, weights: Mapping[str, Tensor]) -> Self:
        """That of a graph whose overridable initializers are among `weights`."""
        return cls(
            feeds=Feeds.of(graph, weights),
            inputs=[NodeArg.of(info) for info in graph.inputs],
            overridable=[NodeArg.of(info) for info in graph.overridable],
            outputs=[NodeArg.of(info) for info in graph.outputs],
            positions={info.name: i for i, info in enumerate(graph.outputs)},
        )

    def position(self, name: str) -> int:
        """Of an output among the outputs.

        Raises:
            InvalidArgument: There is none of that name.
        """
        found = self.positions.get(name)
        if found is None:
            raise InvalidArgument(f"Invalid output name:{name}. Outputs: {list(self.positions)}")
        return found
