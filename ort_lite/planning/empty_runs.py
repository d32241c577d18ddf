"""Runs whose inputs have no elements, for execution providers that compute none.

A batch of 0 is not an error in ONNX, and vendors' runtimes fail on it. So they do not see it: nodes
with a fixed size of zero are not offered to them, and a run with such an input is computed by the
execution providers of the session that take it. A context model does not have the nodes any more.
There the shapes of outputs follow from the names of free dimensions, and where all outputs are
empty, that is the answer.
"""

from __future__ import annotations

import threading
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ctx_formats.onnx_model import TensorType
from ort_lite.model.tensor_values import numpy_dtype
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail, OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol

    from ctx_formats.onnx_model import ValueInfo
    from ort_lite.ep.device_tensors import DeviceMemory, Place
    from ort_lite.ep.interface import CompiledPartition, Runnable, Value
    from ort_lite.model.graph import Graph

    class PreparedRun(Protocol):
        """A prepared graph, as far as this module runs one."""

        def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
            """Compute the outputs of a run."""
            ...

        def release(self) -> None:
            """Release what it holds."""
            ...


log = get_logger(__name__)


class EmptyRuns:
    """Computes the runs of one partition that have an input without elements."""

    def __init__(self, name: str, graph: Graph, prepare: Callable[[], PreparedRun] | None) -> None:
        """Prepare nothing yet.

        Args:
            name: Of the partition, for messages.
            graph: The partition; of a context, its inputs and outputs alone.
            prepare: Prepares `graph` on EPs that accept values without elements; None if it
                has no nodes to run, or there are no such EPs.
        """
        self._name = name
        self._graph = graph
        self._prepare = prepare
        self._lock = threading.Lock()
        self._prepared: PreparedRun | None = None
        self._problem = ""

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs of a run.

        Raises:
            EPFail: An output has elements, or its shape is not known, and nothing here computes it.
        """
        elsewhere = self._fall_back()
        if elsewhere is not None:
            return elsewhere.run(inputs)
        sizes = _sizes(self._graph.inputs, inputs)
        return [self._output(info, sizes) for info in self._graph.outputs]

    def release(self) -> None:
        """Release what was prepared."""
        with self._lock:
            prepared, self._prepared = self._prepared, None
            self._prepare = None
        if prepared is not None:
            prepared.release()

    def _fall_back(self) -> PreparedRun | None:
        with self._lock:
            if self._prepare is not None:
                prepare, self._prepare = self._prepare, None
                try:
                    self._prepared = prepare()
                except OrtLiteError as exc:
                    self._problem = f" ({exc.message})"
                    log.info(
                        "%s: nothing computes it without elements: %s", self._name, exc.message
                    )
            return self._prepared

    def _output(self, info: ValueInfo, sizes: Mapping[str, int]) -> Value:
        if isinstance(info.type, TensorType) and info.type.shape is not None:
            dims = info.type.shape
            shape = tuple(sizes.get(dim, -1) if isinstance(dim, str) else dim for dim in dims)
            known = [dim for dim in shape if isinstance(dim, int) and dim >= 0]
            if len(known) == len(shape) and not prod(known):
                return np.empty(known, numpy_dtype(info.type.elem_type))
        raise EPFail(
            f"{self._name}: an input has no elements, and what '{info.name}' holds then does not "
            f"follow from the declared shapes{self._problem}; run the original model, with "
            "providers=['CPUExecutionProvider'] for such inputs"
        )


def _sizes(infos: Sequence[ValueInfo], values: Sequence[Value]) -> dict[str, int]:
    """The size of each named dimension of the inputs; not of a name that has two."""
    sizes: dict[str, int] = {}
    contradicted = set()
    for info, value in zip(infos, values, strict=True):
        dims = info.type.shape if isinstance(info.type, TensorType) else None
        if dims is None or len(dims) != len(value.shape):
            continue
        for dim, size in zip(dims, value.shape, strict=True):
            if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
                contradicted.add(dim)
    return {name: size for name, size in sizes.items() if name not in contradicted}


class GuardedPartition:
    """A partition whose runs with an input without elements are answered elsewhere."""

    def __init__(self, compiled: CompiledPartition, empty: Runnable) -> None:
        """Refer to both, which others release."""
        self._compiled = compiled
        self._empty = empty
        self._taken = compiled.empty_inputs
        bound = getattr(compiled, "run_bound", None)
        if bound is not None:  # else it has no such method, as the partition has none
            self.run_bound = partial(self._run_bound, bound)
            self.copy_counts = compiled.copy_counts  # type: ignore[attr-defined] # SupportsBoundRuns
            self.has_device_memory = compiled.has_device_memory  # type: ignore[attr-defined] # as above

    def run(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """Compute the outputs; those of empty inputs without the compiled partition."""
        if self._is_empty(inputs):
            return self._empty.run(inputs)
        return self._compiled.run(inputs)

    def _is_empty(self, inputs: Sequence[Value]) -> bool:
        """Whether an input has no elements, and the compiled partition does not take it so."""
        return any(
            getattr(value, "size", 1) == 0 and position not in self._taken
            for position, value in enumerate(inputs)
        )

    @property
    def memory(self) -> DeviceMemory | None:
        """Memory of the partition's device, if it runs on tensors there."""
        memory: DeviceMemory | None = getattr(self._compiled, "memory", None)
        return memory

    def _run_bound(
        self,
        bound: Callable[[Sequence[Value], Sequence[Place]], Sequence[Value]],
        inputs: Sequence[Value],
        places: Sequence[Place],
    ) -> Sequence[Value]:
        if self._is_empty(inputs):
            return self._empty.run([v if isinstance(v, np.ndarray) else v.numpy() for v in inputs])
        return bound(inputs, places)
