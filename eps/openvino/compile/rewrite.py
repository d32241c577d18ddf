"""Rewrites a partition for OpenVINO: operators that it computes wrongly, written in others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from ctx_formats.onnx_model import GraphDef, Node
    from ort_lite.ep import Graph

QUANTIZATION = "DynamicQuantizeLinear"
QUANTISED_FORMS = ("QLinear", "QGemm")
GATHER = "Gather"
GATHER_ND = "GatherND"
CONCAT = "Concat"
POWER = "Pow"
GROUP_ATTENTION = "GroupQueryAttention"
EXPERTS = ("MoE", "QMoE")
CONVOLUTIONS = ("Conv", "QLinearConv")
EINSUM = "Einsum"
DFT = "DFT"
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
HARD_SIGMOID = "HardSigmoid"
SPACE_TO_DEPTH = "SpaceToDepth"
ACTIVATIONS = ("Erf", "Gelu", "Relu", "Tanh")
PRODUCT = "MatMul"
PRODUCTS = ("Gemm", PRODUCT)
POOLS = ("AveragePool", "MaxPool")
INTEGER_SUMS = ("ConvInteger", "MatMulInteger")
REDUCTIONS = "Reduce"
SOFTMAX = "Softmax"
WITH_SCORES = ("Attention", "Softmax")
TRANSPOSED = "ConvTranspose"
RESIZES = ("Resize", "Upsample")
RECURRENT = ("GRU", "LSTM", "RNN")
LOOP = "Loop"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A partition as OpenVINO gets it.

    Attributes:
        definition: Its graph.
        quotients: Names of values that OpenVINO has to compute by division.
        notes: For `explain()`: which operators became which, and why.
    """

    definition: GraphDef
    quotients: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def rewrite_partition(
    graph: Graph,
    *,
    ieee: bool = False,
    kind: str = "",
    in_bytes: bool = False,
    in_floats: bool = False,
) -> Rewritten:
    """Write out what OpenVINO does not compute as ONNX has it; with `ieee` NaN and infinities stay.

    Convolutions that its CPU plug-in computes slowly are written in another form, and so is what
    the NPU's compiler refuses.

    Args:
        graph: The partition.
        ieee: Whether the provider option `ieee_semantics` is set.
        kind: Of device, such as "CPU"; empty for what is only converted.
        in_bytes: Whether the device's 8-bit kernels may compute products of integers.
        in_floats: Whether they are wrong for some convolutions, which stay in float32.
    """
    definition, quotients = graph.definition, frozenset[str]()
    notes: list[str] = []
    if ieee:
        from eps.openvino.compile.ieee import keep_special_values  # noqa: PLC0415 - lazy: rare

        kept = keep_special_values(graph)
        notes += describe_rewriting(definition, kept, "OpenVINO loses NaN or infinities in it")
        definition = kept
    if any(node.op_type == QUANTIZATION for node in graph.nodes):
        from eps.openvino.compile.exact_quotients import write_out_quantization  # noqa: PLC0415 - lazy: rare

        written, quotients = write_out_quantization(definition)
        notes += describe_rewriting(definition, written, "OpenVINO rounds to other steps")
        definition = written
    if any(node.op_type.startswith(QUANTISED_FORMS) for node in graph.nodes):
        from eps.openvino.compile.quantised_forms import write_out_forms  # noqa: PLC0415 - lazy: rare

        written = write_out_forms(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO's own wraps or is missing")
        definition = written
    definition, lines = _write_out_decoder(definition, graph)
    notes += lines
    definition, lines = _write_out_sums_of_products(definition, graph)
    notes += lines
    if any(node.op_type in POOLS for node in graph.nodes):
        from eps.openvino.compile.ceil_pools import write_out_ceil_pools  # noqa: PLC0415 - lazy: rare

        definition = write_out_ceil_pools(definition, graph)
    if not ieee and any(node.op_type == HARD_SIGMOID for node in graph.nodes):
        definition, lines = _rewrite_gates(kind, definition, graph)
        notes += lines
    if kind != "NPU":
        definition, exact, lines = _prepare_steps(definition, graph, in_floats=in_floats)
        quotients |= exact
        notes += lines
    definition, more = _rewrite_for(kind, definition, graph, in_bytes=in_bytes, ieee=ieee)
    notes += more
    if kind != "NPU" and any(node.op_type == QUANTIZE for node in definition.nodes):
        from eps.openvino.compile.mask_barriers import keep_summands  # noqa: PLC0415 - lazy: rare

        definition = keep_summands(definition, graph)
    definition, more = _correct(definition, graph)
    return Rewritten(definition, quotients, (*notes, *more))


def _write_out_decoder(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """Attention and experts of language models in operators of ai.onnx; with notes."""
    notes: list[str] = []
    if any(node.op_type == GROUP_ATTENTION for node in graph.nodes):
        from eps.openvino.compile.group_attention import write_out_attention  # noqa: PLC0415 - lazy: rare

        written = write_out_attention(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO's own gives wrong numbers")
        definition = written
    if any(node.op_type in EXPERTS for node in graph.nodes):
        from eps.openvino.compile.experts import write_out_experts  # noqa: PLC0415 - lazy: rare

        written = write_out_experts(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO has no such operator")
        definition = written
    return definition, notes


def _write_out_sums_of_products(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """Einsum and DFT as OpenVINO converts them right; with notes."""
    notes: list[str] = []
    if any(node.op_type == EINSUM for node in graph.nodes):
        from eps.openvino.compile.einsum import write_out_einsum  # noqa: PLC0415 - lazy: rare

        written = write_out_einsum(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO's own is not shown to be right")
        definition = written
    if any(node.op_type == DFT for node in graph.nodes):
        from eps.openvino.compile.fourier import write_out_transforms  # noqa: PLC0415 - lazy: rare

        written = write_out_transforms(definition, graph)
        notes += describe_rewriting(definition, written, "its axis or shape is converted wrong")
        definition = written
    return definition, notes


def _rewrite_gates(kind: str, definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """HardSigmoid in operators that have faster kernels; with notes."""
    from eps.openvino.compile.hard_swish import join_hard_swish  # noqa: PLC0415 - lazy: rare

    joined = join_hard_swish(definition, graph)
    notes = describe_rewriting(definition, joined, "OpenVINO adds it to a convolution")
    if kind != "CPU":
        return joined, notes
    from eps.openvino.compile.hard_sigmoid import write_out_gates  # noqa: PLC0415 - lazy: rare

    written = write_out_gates(joined, graph)
    return written, [*notes, *describe_rewriting(joined, written, "OpenVINO's own is slow")]


def _prepare_steps(
    definition: GraphDef, graph: Graph, *, in_floats: bool
) -> tuple[GraphDef, frozenset[str], list[str]]:
    """Without needless quantisations, and with a guard against wrong numbers.

    Returns:
        The graph, names of quotients that have to be exact, and notes.
    """
    notes: list[str] = []
    quotients = frozenset[str]()
    if any(node.op_type == QUANTIZE for node in definition.nodes):
        from eps.openvino.compile.written_steps import write_out_steps  # noqa: PLC0415 - lazy: rare

        written, quotients = write_out_steps(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO computes other steps")
        definition = written
    if any(node.op_type == QUANTIZE for node in definition.nodes):
        from eps.openvino.compile.quantisation_barriers import add_barriers  # noqa: PLC0415 - lazy: rare
        from eps.openvino.compile.repeated_steps import drop_repeated_steps  # noqa: PLC0415 - lazy: rare

        kept = drop_repeated_steps(definition)
        if gone := Counter(n.op_type for n in definition.nodes) - Counter(
            n.op_type for n in kept.nodes
        ):
            notes.append(f"{_count(gone)} left out: they repeat the steps of what they quantise")
        definition = add_barriers(kept, graph)
    if any(node.op_type == DEQUANTIZE for node in definition.nodes):
        from eps.openvino.compile.normalisation_barriers import keep_epsilons  # noqa: PLC0415 - lazy: rare
        from eps.openvino.compile.step_barriers import keep_numbers  # noqa: PLC0415 - lazy: rare

        definition = keep_numbers(keep_epsilons(definition, graph), graph)
    if in_floats:
        from eps.openvino.compile.byte_convolutions import keep_floats  # noqa: PLC0415 - lazy: rare

        definition = keep_floats(definition, graph)
    return definition, quotients, notes


def _asks_for_indices(node: Node) -> bool:
    return node.op_type == "MaxPool" and len(node.outputs) > 1


def _correct(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """Operators as OpenVINO converts them right whatever their opset and sizes; with notes."""
    notes: list[str] = []
    if any(node.op_type.startswith(REDUCTIONS) for node in definition.nodes):
        from eps.openvino.compile.attribute_axes import write_out_reductions  # noqa: PLC0415 - lazy: rare
        from eps.openvino.compile.unit_axes import keep_unit_axes  # noqa: PLC0415 - lazy: rare

        written = write_out_reductions(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO would reduce all axes")
        definition = keep_unit_axes(written, graph)
    if any(node.op_type == SOFTMAX for node in definition.nodes):
        from eps.openvino.compile.flattened_softmax import flatten_softmax  # noqa: PLC0415 - lazy: rare

        written = flatten_softmax(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO takes one axis alone")
        definition = written
    if any(node.op_type == TRANSPOSED for node in definition.nodes):
        from eps.openvino.compile.transposed_pads import write_pads  # noqa: PLC0415 - lazy: rare

        definition = write_pads(definition, graph)
    if any(node.op_type in RESIZES for node in definition.nodes):
        from eps.openvino.compile.integer_resize import resize_as_floats  # noqa: PLC0415 - lazy: rare

        written = resize_as_floats(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO rounds integers")
        definition = written
    return definition, notes


def _rewrite_for(
    kind: str, definition: GraphDef, graph: Graph, *, in_bytes: bool, ieee: bool
) -> tuple[GraphDef, list[str]]:
    """What one kind of device computes slowly, in other numbers, or not at all; with notes."""
    notes: list[str] = []
    if kind == "CPU" and any(node.op_type in CONVOLUTIONS for node in graph.nodes):
        from eps.openvino.compile.slow_convolutions import rewrite_convolutions  # noqa: PLC0415 - lazy: rare

        definition, lines = rewrite_convolutions(definition, graph)
        notes += lines
    if kind == "CPU" and any(node.op_type in INTEGER_SUMS for node in graph.nodes):
        from eps.openvino.compile.integer_sums import write_out_sums  # noqa: PLC0415 - lazy: rare

        written = write_out_sums(definition, graph, in_bytes=in_bytes)
        notes += describe_rewriting(definition, written, "OpenVINO would sum by way of int32")
        definition = written
    if kind == "CPU":
        definition, lines = _rewrite_copies(definition, graph)
        notes += lines
        definition, lines = _write_out_indices(definition, graph)
        notes += lines
    if kind == "CPU" and not ieee:
        definition, lines = _open_products(definition, graph)
        notes += lines
    if kind == "CPU":
        definition = _keep_from_products(definition, graph)
    if kind == "CPU" and any(node.op_type == POWER for node in graph.nodes):
        from eps.openvino.compile.flat_powers import flatten_powers  # noqa: PLC0415 - lazy: rare

        definition = flatten_powers(definition, graph)
    if kind == "CPU" and any(node.op_type == LOOP for node in graph.nodes):
        from eps.openvino.compile.loops import carry_captured  # noqa: PLC0415 - lazy: rare

        definition = carry_captured(definition, graph)
    if kind == "CPU" and any(node.op_type in RECURRENT for node in graph.nodes):
        from eps.openvino.compile.default_activations import drop_default_activations  # noqa: PLC0415 - lazy: rare

        definition, lines = drop_default_activations(definition)
        notes += lines
    if kind == "NPU" and any(node.op_type == SPACE_TO_DEPTH for node in graph.nodes):
        from eps.openvino.compile.space_to_depth import write_out_batches  # noqa: PLC0415 - lazy: rare

        written = write_out_batches(definition, graph)
        notes += describe_rewriting(definition, written, "Intel's NPU compiler refuses batches")
        definition = written
    return definition, notes


def _write_out_indices(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """Indices that OpenVINO finds slowly, or does not check; with notes."""
    notes: list[str] = []
    if any(_asks_for_indices(node) for node in graph.nodes):
        from eps.openvino.compile.pool_indices import write_out_indices  # noqa: PLC0415 - lazy: rare

        written = write_out_indices(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO's indices are a plain loop's")
        definition = written
    if any(node.op_type == GATHER_ND for node in graph.nodes):
        from eps.openvino.compile.checked_indices import check_indices  # noqa: PLC0415 - lazy: rare

        written = check_indices(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO would not check indices")
        definition = written
    return definition, notes


def _open_products(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """Products of free lengths without what would be computed together with them; with notes."""
    notes: list[str] = []
    if not any(node.op_type in PRODUCTS for node in graph.nodes):
        return definition, notes
    if any(node.op_type in ACTIVATIONS for node in graph.nodes):
        from eps.openvino.compile.open_products import open_products  # noqa: PLC0415 - lazy: rare

        definition, lines = open_products(definition, graph)
        notes += lines
    if any(node.op_type == SOFTMAX for node in graph.nodes):
        from eps.openvino.compile.open_scales import fold_scales  # noqa: PLC0415 - lazy: rare

        definition, lines = fold_scales(definition, graph)
        notes += lines
    return definition, notes


def _keep_from_products(definition: GraphDef, graph: Graph) -> GraphDef:
    """Without what OpenVINO would compute wrong in the kernel of a product, or of two."""
    if any(PRODUCT in node.op_type for node in definition.nodes):
        from eps.openvino.compile.column_barriers import keep_channels  # noqa: PLC0415 - lazy: rare

        definition = keep_channels(definition, graph)
    if any(node.op_type in WITH_SCORES for node in graph.nodes):
        from eps.openvino.compile.unmasked_attention import add_to_scores  # noqa: PLC0415 - lazy: rare

        definition = add_to_scores(definition, graph)
    return definition


def _rewrite_copies(definition: GraphDef, graph: Graph) -> tuple[GraphDef, list[str]]:
    """Copies of elements and rows in fewer operators; with notes."""
    notes: list[str] = []
    if any(node.op_type == GATHER for node in graph.nodes):
        from eps.openvino.compile.unrolled_gathers import split_rows  # noqa: PLC0415 - lazy: rare

        written = split_rows(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO would run each by itself")
        definition = written
    if any(node.op_type == CONCAT for node in graph.nodes):
        from eps.openvino.compile.interleaved_parts import gather_parts  # noqa: PLC0415 - lazy: rare

        written = gather_parts(definition, graph)
        notes += describe_rewriting(definition, written, "OpenVINO would copy single elements")
        definition = written
    return definition, notes


def describe_rewriting(before: GraphDef, after: GraphDef, reason: str) -> list[str]:
    """One line with the operators that went and those that came; none where nothing changed.

    A replacement may end with other nodes of the same operator: its outputs tell it apart.
    """
    kept = {(node.op_type, node.outputs) for node in after.nodes}
    gone = Counter(n.op_type for n in before.nodes if (n.op_type, n.outputs) not in kept)
    come = Counter(node.op_type for node in after.nodes)
    come -= Counter(node.op_type for node in before.nodes)
    if not come:
        return []
    return [f"{_count(gone)} written out as {_count(come)}: {reason}"]


def _count(operators: Counter[str]) -> str:
    return ", ".join(f"{operator} x{count}" for operator, count in sorted(operators.items()))
