"""Runs a small model through OpenVINO's C API once it has run often, as after a reload.

What the extension compiled is called through the extension, whose objects take 6 to 13 us of each
run more than the C API does; the models of wake words run for 15 us. Neither can take over a model
of the other, but a blob of a small one is exported and imported in 8 to 20 ms.
"""

from __future__ import annotations

import io
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from eps.openvino.options import import_config
from eps.openvino.partition import OpenVINOPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.openvino.options import OpenVINOOptions
    from eps.openvino.sdk.runtime import RuntimeModel
    from eps.openvino.sdk.runtime_choice import Sdk
    from ort_lite.ep import CompiledPartition, Graph, Ports

MOST_NODES = 64
"""Of a model that is imported again; the import of more takes longer than anyone should wait."""
MOST_VALUES = 1 << 20
"""Elements of its constants, which a blob holds once more."""


def lighten(
    partition: CompiledPartition, graph: Graph, sdk: Sdk, options: OpenVINOOptions
) -> CompiledPartition:
    """`partition` of `graph`, which goes over to the C API after some runs if that is small."""
    if isinstance(partition, OpenVINOPartition) and sdk.runtime.without_lock and is_small(graph):
        config = import_config(options, one_thread=partition.one_thread)
        partition.import_again = partial(_import_again, sdk, options.device, config)
    return partition


def is_small(graph: Graph) -> bool:
    """Whether a graph is imported in a time that one run may take longer."""
    if len(graph.nodes) > MOST_NODES or any(map(graph.bodies, range(len(graph.nodes)))):
        return False
    return sum(prod(tensor.dims) for tensor in graph.initializers.values()) <= MOST_VALUES


def _import_again(
    sdk: Sdk, device: str, config: Mapping[str, object], model: RuntimeModel
) -> RuntimeModel | None:
    """The same model through the C API; None where that does not take it.

    Raises:
        RuntimeError: OpenVINO failed; one of SDK_ERRORS.
        EPFail: As `Sdk.importer`.
    """
    out = io.BytesIO()
    model.export(out)
    blob = memoryview(out.getvalue())  # the model keeps it, and a BytesIO outlives its own views
    runtime = sdk.importer(blob, config)
    if not runtime.without_lock:
        return None
    made = runtime.import_model(blob, device, config)
    same = _are_same(made.inputs, model.inputs) and _are_same(made.outputs, model.outputs)
    return made if same else None


def _are_same(ports: Ports, others: Ports) -> bool:
    """Whether both are the same ports in the same order; the C API reports one name of each."""
    return len(ports.all) == len(others.all) and all(
        port.names <= other.names and (port.data_type, port.shape) == (other.data_type, other.shape)
        for port, other in zip(ports.all, others.all, strict=True)
    )
