"""Compiles a partition with OpenVINO; a reload imports none of this."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from eps.openvino.compile.convert import ConversionError, fix_shapes, read_model
from eps.openvino.compile.empty_caches import find_empty_caches
from eps.openvino.compile.offline import OfflinePartition
from eps.openvino.compile.refused_nodes import find_refused
from eps.openvino.compile.rewrite import rewrite_partition
from eps.openvino.compile.signed_weights import has_products, sign_weights
from eps.openvino.compile.small_work import pays_one_thread
from eps.openvino.device_faults import is_device_fault
from eps.openvino.options import ONE_THREAD, compile_config
from eps.openvino.partition import OpenVINOPartition, memory_finder
from eps.openvino.payload.identity import device_to_compile_for, requirements_of
from eps.openvino.sdk.binding import BindingModel, BindingRuntime
from eps.openvino.sdk_errors import SDK_ERRORS, sdk_text
from ort_lite.ep import (
    CompileRefused,
    EPFail,
    OrtLiteError,
    PortError,
    get_logger,
    port_order,
    remedy_of,
    uncut,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import openvino

    from ctx_formats.onnx_model import ValueType
    from eps.openvino.compile.known_shapes import KnownShapes
    from eps.openvino.options import OpenVINOOptions
    from eps.openvino.payload.verdict import Verdicts
    from ort_lite.ep import CompiledPartition, FusedNode, Graph

log = get_logger(__name__)

_NO_RULE = re.compile(r"No conversion rule found for operations: ([^\n]*)")
_TRANSFORMATION = re.compile(r"\[\w+Transformation\]|dnnl_postops_composer")
"""Part of an error of a low precision transformation, or of a kernel that computes scales after it,
of which there are as many as rows."""
MAX_TRIES = 64
INTEGER_PRODUCT = "MatMulInteger"
QUANTIZED = ("QuantizeLinear", "QLinear", "QGemm")
"""Parts of the names of operators that a quantised model has, unless its weights alone are."""


def compile_partition(
    core: openvino.Core,
    options: OpenVINOOptions,
    verdicts: Verdicts,
    fused: FusedNode,
    known: KnownShapes,
) -> CompiledPartition:
    """Convert and compile one partition; `verdicts` learns its blob's requirement text.

    `known` are the shapes of the whole model.

    Raises:
        CompileRefused: OpenVINO cannot convert some of its nodes, or the device compile them.
        EPFail: The device cannot compile it, or the system lacks memory or threads for it.
        InvalidArgument: An option does not fit the model.
    """
    try:
        with uncut:
            return _compile(core, options, verdicts, fused, known)
    except ConversionError as exc:
        remedy = remedy_of(RuntimeError(str(exc)))
        if remedy:
            raise EPFail(f"OpenVINO cannot compile {fused.name}: {exc}. {remedy}.") from exc
        with uncut:
            refused = find_culprits(core, fused.graph, str(exc))
        raise CompileRefused(fused.name, f"OpenVINO cannot convert it: {exc}", refused) from exc


def _compile(
    core: openvino.Core,
    options: OpenVINOOptions,
    verdicts: Verdicts,
    fused: FusedNode,
    known: KnownShapes,
) -> CompiledPartition:
    graph, name = fused.graph, fused.name
    in_bytes = _multiplies_in_bytes(core, options, graph)
    rewritten = rewrite_partition(
        graph,
        ieee=options.ieee,
        kind=options.kind,
        in_bytes=in_bytes,
        in_floats=_convolves_in_floats(core, options, graph),
    )
    with read_model(core, graph, rewritten) as model:
        _fix_model(model, graph, options, known)
        if options.needs_static_shapes and any(p.partial_shape.is_dynamic for p in model.inputs):
            reason = "NPU needs static shapes"
            raise CompileRefused(name, reason, _nodes_behind_dynamic_inputs(model, graph))
        one_thread = pays_one_thread(options, graph)
        config, notes = _choose_config(core, options, graph, one_thread=one_thread)
        notes = (*rewritten.notes, *notes)
        try:
            device = device_to_compile_for(BindingRuntime(core), options.device)
            compiled, lines = _compile_model(core, model, device, config, options)
        except SDK_ERRORS as exc:
            text = sdk_text(exc)
            if options.kind == "CPU":
                raise ConversionError(text) from exc
            dynamic = _dynamic_nodes(model, graph) if options.needs_static_shapes else {}
            if dynamic:
                raise CompileRefused(name, text, dynamic) from exc
            if options.device == "NPU" and not (is_device_fault(text) or remedy_of(exc)):
                refused = _find_refused(core, graph, options, known, text)
                raise CompileRefused(name, text, refused) from exc
            raise EPFail(f"OpenVINO cannot compile {name} for {options.device}: {text}") from exc
    notes = (*notes, *lines)
    made = BindingModel(compiled)
    verdicts.learn(requirements_of(compiled, options))
    if options.npu_platform:
        return OfflinePartition(made, name, options.npu_platform, notes)
    try:
        order = port_order(graph.inputs, made.inputs), port_order(graph.outputs, made.outputs)
    except PortError as exc:
        raise ConversionError(str(exc)) from exc
    finder = memory_finder(core, options.device)
    partition = OpenVINOPartition(made, name, order, graph, notes, finder)
    partition.one_thread = one_thread
    if options.device == "CPU":
        partition.empty_inputs = find_empty_caches(graph)
    return partition


def _compile_model(
    core: openvino.Core,
    model: openvino.Model,
    device: str,
    config: dict[str, object],
    options: OpenVINOOptions,
) -> tuple[openvino.CompiledModel, tuple[str, ...]]:
    """Compile without the 8-bit transformations where they fail; with a note on that."""
    try:
        return core.compile_model(model, device, config), ()
    except SDK_ERRORS as exc:
        text = sdk_text(exc)
        if not options.has_cpu or not _TRANSFORMATION.search(text):
            raise
    from eps.openvino.compile.int8_sums import turn_off  # noqa: PLC0415 - lazy: rare

    log.info("OpenVINO's 8-bit transformations fail and are turned off: %s", text)
    turn_off(core, config, options.device)
    compiled = core.compile_model(model, device, config)
    return compiled, (f"computed in float32: OpenVINO's 8-bit transformations fail: {text[:200]}",)


def _choose_config(
    core: openvino.Core, options: OpenVINOOptions, graph: Graph, *, one_thread: bool
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Properties for compiling a partition, and notes on those that depend on it."""
    config, notes = compile_config(options), []
    if one_thread:
        config |= ONE_THREAD
    if _is_quantised(graph):
        from eps.openvino.compile.chained_products import separate_products  # noqa: PLC0415 - lazy: rare
        from eps.openvino.compile.int8_sums import float_reason, turn_off  # noqa: PLC0415 - lazy: rare
        from eps.openvino.compile.quantised_forms import write_out_graph  # noqa: PLC0415 - lazy: rare

        if reason := float_reason(core, options, write_out_graph(graph)):
            turn_off(core, config, options.device)
            notes.append(f"computed in float32: {reason}")
        elif reason := separate_products(core, options, config, graph):
            notes.append(reason)
    return config, tuple(notes)


def _multiplies_in_bytes(core: openvino.Core, options: OpenVINOOptions, graph: Graph) -> bool:
    """Whether the 8-bit kernels compute its products of integers; False where it has none."""
    if not any(node.op_type == INTEGER_PRODUCT for node in graph.nodes):
        return False
    from eps.openvino.compile.int8_sums import multiplies_in_bytes  # noqa: PLC0415 - lazy: rare
    from eps.openvino.compile.quantised_forms import write_out_graph  # noqa: PLC0415 - lazy: rare

    return multiplies_in_bytes(core, options, write_out_graph(graph))


def _convolves_in_floats(core: openvino.Core, options: OpenVINOOptions, graph: Graph) -> bool:
    """Whether 8-bit convolutions of the partition may be wrong on this CPU."""
    if not options.has_cpu or not _is_quantised(graph):
        return False
    from eps.openvino.compile.byte_convolutions import has_such, is_wrong_here  # noqa: PLC0415 - lazy: rare

    return has_such(graph) and is_wrong_here(core)


def _fix_model(
    model: openvino.Model, graph: Graph, options: OpenVINOOptions, known: KnownShapes
) -> None:
    """As `fix_shapes`, and weights in the form that the device computes fastest."""
    fix_shapes(model, graph, options, known)
    if options.kind == "CPU" and has_products(graph):
        sign_weights(model)


def _is_quantised(graph: Graph) -> bool:
    """Whether a partition or a body in it computes with quantised activations."""
    return any(
        any(part in node.op_type for part in QUANTIZED)
        or any(map(_is_quantised, graph.bodies(index).values()))
        for index, node in enumerate(graph.nodes)
    )


def _find_refused(
    core: openvino.Core, graph: Graph, options: OpenVINOOptions, known: KnownShapes, text: str
) -> dict[int, str]:
    """Indices of the nodes that the NPU's compiler refuses, with its words."""

    def refusal(indices: Sequence[int]) -> str:
        part = graph.extract(list(indices), "part")
        try:
            with read_model(
                core, part, rewrite_partition(part, ieee=options.ieee, kind=options.kind)
            ) as model:
                fix_shapes(model, part, options, known)
                core.compile_model(model, options.device, compile_config(options))
        except ConversionError:  # without its neighbours a part may lack types
            return ""
        except SDK_ERRORS as exc:
            return sdk_text(exc)
        return ""

    log.info("the NPU's compiler refuses %d nodes, and parts are tried: %s", len(graph.nodes), text)
    refused = find_refused(len(graph.nodes), text, refusal)
    return {i: f"Intel's NPU compiler refuses it: {why[:300]}" for i, why in refused.items()}


def find_culprits(core: openvino.Core, graph: Graph, text: str) -> dict[int, str]:
    """Indices of the nodes that OpenVINO refuses, with the reason; never empty.

    First by the operators for which OpenVINO reports that it has no rule, then by inputs of unknown
    rank, which no device accepts, and by bodies, in which only the compile finds some faults;
    otherwise by bisection: halves of the partition are converted until single nodes fail. Nodes
    that fail only together are all refused, and go to the next EP.
    """
    refused = _nodes_without_rule(graph, text) or _nodes_of_unknown_rank(graph)
    refused = refused or _nodes_with_bodies(graph, text)
    if refused:
        return refused
    tries = [MAX_TRIES]
    _bisect(core, graph, list(range(len(graph.nodes))), refused, tries)
    return refused or dict.fromkeys(range(len(graph.nodes)), f"OpenVINO: {text[:300]}")


def _nodes_without_rule(graph: Graph, text: str) -> dict[int, str]:
    names = {
        part.strip(" .,")
        for listed in _NO_RULE.findall(text)
        for part in re.split(r"[,\s]+", listed)
    }
    return {
        i: f"OpenVINO's front end cannot convert {node.op_type}"
        for i, node in enumerate(graph.nodes)
        if node.op_type in names or f"{node.domain}.{node.op_type}" in names
    }


def _nodes_with_bodies(graph: Graph, text: str) -> dict[int, str]:
    loops = (index for index in range(len(graph.nodes)) if graph.bodies(index))
    return dict.fromkeys(loops, f"OpenVINO, with its body: {text[:300]}")


def _nodes_of_unknown_rank(graph: Graph) -> dict[int, str]:
    """Nodes that take values of unknown rank, if the partition itself has such inputs."""
    if not any(_has_no_rank(info.type) for info in graph.inputs):
        return {}
    refused = {}
    for index, node in enumerate(graph.nodes):
        for name in filter(None, node.inputs):
            if graph.constant(name) is None and _has_no_rank(graph.type_of(name)):
                refused[index] = f"OpenVINO: the rank of '{name}' is unknown before the run"
                break
    return refused


def _has_no_rank(value_type: ValueType | None) -> bool:
    return isinstance(value_type, TensorType) and value_type.shape is None


def _bisect(
    core: openvino.Core,
    graph: Graph,
    indices: list[int],
    refused: dict[int, str],
    tries: list[int],
) -> None:
    if not indices or tries[0] <= 0:
        return
    tries[0] -= 1
    try:
        with read_model(core, graph.extract(indices, "part")):
            return
    except ConversionError as exc:
        if len(indices) == 1:
            refused[indices[0]] = f"OpenVINO's front end: {str(exc)[:300]}"
            return
    except OrtLiteError:
        return
    middle = len(indices) // 2
    _bisect(core, graph, indices[:middle], refused, tries)
    _bisect(core, graph, indices[middle:], refused, tries)


def _nodes_behind_dynamic_inputs(model: openvino.Model, graph: Graph) -> dict[int, str]:
    """Nodes that read or make values whose shape only a run knows, with the reason."""
    names = {name for port in model.inputs if port.partial_shape.is_dynamic for name in port.names}
    reason = "NPU needs static shapes, and the shape of '{}' is unknown before the run"
    reading = {
        index: reason.format(dynamic)
        for index, node in enumerate(graph.nodes)
        if (dynamic := next((name for name in node.inputs if name in names), ""))
    }
    return {**_dynamic_nodes(model, graph), **reading}


def _dynamic_nodes(model: openvino.Model, graph: Graph) -> dict[int, str]:
    """Nodes that make values without a static shape, though all inputs have one; with the reason.

    The NPU's compiler takes some of them, and names no node where it does not.
    """
    names = {
        name
        for operation in model.get_ordered_ops()
        for port in operation.outputs()
        if port.partial_shape.is_dynamic
        for name in port.names
    }
    reason = "the NPU's compiler refuses it: the shape of '{}' is unknown before the run"
    return {
        index: reason.format(dynamic)
        for index, node in enumerate(graph.nodes)
        if (dynamic := next((name for name in node.outputs if name in names), ""))
    }
