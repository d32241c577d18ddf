"""Compiles a partition with OpenVINO; a reload imports none of this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eps.openvino.compile.convert import ConversionError, fix_shapes, read_model
from eps.openvino.compile.culprits import find_culprits
from eps.openvino.compile.offline import OfflinePartition
from eps.openvino.options import compile_config
from eps.openvino.partition import OpenVINOPartition
from eps.openvino.payload.identity import requirements_of
from eps.openvino.sdk.binding import BindingModel
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.ep import CompileRefused, EPFail, PortError, port_order, remedy_of, uncut

if TYPE_CHECKING:
    import openvino

    from eps.openvino.options import OpenVINOOptions
    from eps.openvino.payload.verdict import Verdicts
    from ort_lite.ep import CompiledPartition, FusedNode, Graph


def compile_partition(
    core: openvino.Core, options: OpenVINOOptions, verdicts: Verdicts, fused: FusedNode
) -> CompiledPartition:
    """Convert and compile one partition; `verdicts` learns its blob's requirement text.

    Raises:
        CompileRefused: OpenVINO cannot convert some of its nodes.
        EPFail: The device cannot compile it, or the system lacks memory or threads for it.
        InvalidArgument: An option does not fit the model.
    """
    try:
        with uncut:
            return _compile(core, options, verdicts, fused.graph, fused.name)
    except ConversionError as exc:
        remedy = remedy_of(RuntimeError(str(exc)))
        if remedy:
            raise EPFail(f"OpenVINO cannot compile {fused.name}: {exc}. {remedy}.") from exc
        with uncut:
            refused = find_culprits(core, fused.graph, str(exc))
        raise CompileRefused(fused.name, f"OpenVINO cannot convert it: {exc}", refused) from exc


def _compile(
    core: openvino.Core, options: OpenVINOOptions, verdicts: Verdicts, graph: Graph, name: str
) -> CompiledPartition:
    with read_model(core, graph, ieee=options.ieee) as model:
        fix_shapes(model, graph, options)
        try:
            compiled = core.compile_model(model, options.device, compile_config(options))
        except SDK_ERRORS as exc:
            if options.kind != "CPU":
                raise EPFail(
                    f"OpenVINO cannot compile {name} for {options.device}: {sdk_text(exc)}"
                ) from exc
            raise ConversionError(sdk_text(exc)) from exc
    made = BindingModel(compiled)
    verdicts.learn(requirements_of(compiled, options))
    if options.npu_platform:
        return OfflinePartition(made, name, options.npu_platform)
    try:
        order = port_order(graph.inputs, made.inputs), port_order(graph.outputs, made.outputs)
    except PortError as exc:
        raise ConversionError(str(exc)) from exc
    return OpenVINOPartition(made, name, order, source=graph)
