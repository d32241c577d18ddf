"""Inputs and outputs of a session, as its user sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ctx_formats.lean_dataclass import dataclass
from ctx_formats.onnx_model import TensorType
from ort_lite.execution.feeds import Feeds, is_on_device, known_sizes
from ort_lite.model.info import NodeArg
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from ctx_formats.onnx_model import Dim, Tensor
    from ort_lite.ep.device_tensors import Place
    from ort_lite.ep.interface import Value
    from ort_lite.model.graph import Graph

    class RunsBound(Protocol):
        """A prepared graph, as far as a run needs it."""

        def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
            """Compute the outputs, as new arrays."""
            ...

        def run_bound(self, inputs: Sequence[Value], places: Sequence[Place]) -> Sequence[Value]:
            """Compute the outputs, each at its place."""
            ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Inputs and outputs of a session.

    Attributes:
        feeds: Checks what a run is fed.
        overridable: Initializers that a run may be fed besides.
        positions: Of each output, by name.
        sized: Position, shape and axes with a size of each output whose rank is known.
    """

    feeds: Feeds
    inputs: Sequence[NodeArg]
    overridable: Sequence[NodeArg]
    outputs: Sequence[NodeArg]
    positions: Mapping[str, int]
    sized: Sequence[tuple[int, tuple[Dim, ...], tuple[tuple[int, int], ...]]] = ()

    @classmethod
    def of(cls, graph: Graph, weights: Mapping[str, Tensor]) -> Self:
        """The signature of a graph whose overridable initializers are among `weights`."""
        return cls(
            feeds=Feeds.of(graph, weights),
            inputs=[NodeArg.of(info) for info in graph.inputs],
            overridable=[NodeArg.of(info) for info in graph.overridable],
            outputs=[NodeArg.of(info) for info in graph.outputs],
            positions={info.name: i for i, info in enumerate(graph.outputs)},
            sized=[
                (i, info.type.shape, known_sizes(info.type.shape))
                for i, info in enumerate(graph.outputs)
                if isinstance(info.type, TensorType) and info.type.shape is not None
            ],
        )

    def run(
        self, prepared: RunsBound, feed: Mapping[str, Any], places: Mapping[str, Place] | None
    ) -> Sequence[Value]:
        """The outputs of a graph for a feed.

        Args:
            prepared: The graph.
            feed: Values by the names of inputs.
            places: Where outputs go, by their names; None for new arrays.

        Raises:
            ValueError: A required input is missing (onnxruntime's class and text).
            InvalidArgument: An unknown name, a wrong type, rank or dimension.
            OrtLiteError: As the run itself.
        """
        values = self.feeds.order_feed(feed)
        if places is None and not is_on_device(values):
            return prepared.run(values)
        at = places or {}
        return prepared.run_bound(values, [at.get(output.name) for output in self.outputs])

    def list_mismatches(self, results: Sequence[Value]) -> Sequence[str]:
        """A line for each result whose shape is not the model's, in onnxruntime's words."""
        mismatches: list[str] = []
        for index, shape, sizes in self.sized:
            met: tuple[int, ...] | None = getattr(results[index], "shape", None)
            if met is None or met == shape:
                continue
            if len(met) == len(shape):
                for axis, size in sizes:
                    if met[axis] != size:
                        break
                else:
                    continue
            mismatches.append(
                f"Expected shape from model of {_text(shape)} does not match actual shape of "
                f"{_text(met)} for output {self.outputs[index].name}"
            )
        return mismatches

    def select(self, results: Sequence[Value], names: Sequence[str]) -> list[Value]:
        """The results of these names among all outputs.

        Raises:
            InvalidArgument: The model has no output of one of the names.
        """
        positions = self.positions
        try:
            return [results[positions[name]] for name in names]
        except KeyError as exc:
            raise InvalidArgument(
                f"Invalid output name:{exc.args[0]}. Outputs: {list(positions)}"
            ) from exc


def _text(shape: tuple[Dim, ...]) -> str:
    return "{" + ",".join(str(dim) if isinstance(dim, int) else "-1" for dim in shape) + "}"
