"""Conditions under which OpenVINO computes an operator wrong: one predicate for each operator.

Each was found by comparing OpenVINO with the ONNX backend suite and onnxruntime
(python -m eps.openvino.evidence); most hold for both 2025.4 and 2026.4. A predicate returns the
reason to decline a node, or "".
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType
from eps.openvino.support.expansions import check_expansion
from eps.openvino.support.indices import check_gather, check_gather_nd
from eps.openvino.support.pools import check_pool
from eps.openvino.support.slices import check_slice
from eps.openvino.support.tiles import check_tile
from eps.openvino.support.transposed_pads import transposed_pads_problem
from eps.openvino.support.windows import may_have_one_column, may_read_padding_alone
from eps.openvino.support.written_steps import written_steps_problem
from ort_lite.ep import to_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_formats.onnx_model import Node
    from eps.openvino.support.node_facts import NodeFacts

    Condition = Callable[[NodeFacts], str]

FLOATS = (DataType.FLOAT, DataType.FLOAT16)
SCALE_AND_SHIFT = ("Add", "BatchNormalization", "Div", "Mul", "Sub")
ONE_COLUMN = "one window along the last axis, with a stride of its own, reads past one channel"
COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "IsInf", "Less", "LessOrEqual")


def _require_constant(position: int, what: str) -> Condition:
    def condition(node: NodeFacts) -> str:
        return f"{what} is not a constant" if node.is_runtime(position) else ""

    return condition


def _check_attention(node: NodeFacts) -> str:
    if node.elem_type(0) == DataType.FLOAT16:
        return "float16 attention scores are rounded at other steps than ONNX defines"
    if node.has_input(3) or node.has_input(6):
        return "a mask may exclude every key of a row, whose result is then NaN"
    if node.is_output_used(3):
        return "qk_matmul_output differs from ONNX's"
    heads = [shape[1] for shape in (node.shape(0), node.shape(1)) if shape and len(shape) == 4]
    if not all(isinstance(count, int) for count in heads):
        return "the numbers of heads are not known, and it fails where they differ"
    windows = node.attributes_among("sliding_window", "local_window_size", "left_window_size")
    windows += node.attributes_among("right_window_size", "window_size", "attention_window")
    return f"{windows[0]} is ignored" if windows else ""


def _check_shift(node: NodeFacts) -> str:
    signed = node.elem_type(0) not in (DataType.UINT8, DataType.UINT16)
    return "shifts of signed and of 32- or 64-bit integers differ from ONNX's" if signed else ""


def _check_rnn(node: NodeFacts) -> str:
    if node.number("layout", 0):
        return "layout=1 returns shapes with swapped dimensions"
    if node.node.op_type == "LSTM" and node.has_input(7):
        return "peepholes (input P) are silently ignored"
    if node.has_input(4) and not _covers_all_steps(node):
        return "sequence_lens are ignored in free shapes, and computed in a slow loop in known ones"
    names = [name.lower() for name in node.texts("activations")]
    half = len(names) // 2
    if node.text("direction", "forward") == "bidirectional" and names[:half] != names[half:]:
        return "activations that differ by direction are those of the first in both"
    untested = node.attributes_among("activation_alpha", "activation_beta", "clip")
    if node.number("input_forget", 0):  # tools write the default, 0, to the model
        untested.append("input_forget")
    return f"attribute {untested[0]} was not tested" if untested else ""


def _covers_all_steps(node: NodeFacts) -> bool:
    """Whether the constant sequence_lens of a recurrence are all of its known steps."""
    shape, lengths = node.shape(0), node.constant(4)
    if not shape or not isinstance(shape[0], int) or lengths is None:
        return False
    return bool((to_numpy(lengths) == shape[0]).all())


def _check_reduce(node: NodeFacts) -> str:
    if node.is_runtime(1):
        return "axes is not a constant"
    shape = node.shape(0)
    return "the input has a dimension of size 0" if shape is not None and 0 in shape else ""


def _check_log_sum(node: NodeFacts) -> str:
    if node.elem_type(0) not in FLOATS:
        return "logarithms of integers are rounded"
    return _check_reduce(node)


def _check_extreme(node: NodeFacts) -> str:
    """ReduceMax of -inf alone returns the lowest finite float; ReduceMin likewise.

    Only a comparison can expose it (attention tests whether a row is fully masked), and the caller.
    """
    problem = _check_reduce(node)
    if problem or node.elem_type(0) not in FLOATS:
        return problem
    values = [node.node.outputs[0]]
    for name in values:
        for consumer in node.graph.consumers(name):
            reader = node.graph.nodes[consumer]
            if reader.op_type in ("Cast", "CastLike", "Identity"):
                values.append(reader.outputs[0])
            elif reader.op_type in COMPARISONS:
                return (
                    "for an all-infinite row it returns the largest finite float instead of "
                    f"infinity, which the following {reader.op_type} would expose"
                )
    return ""


def _check_resize(node: NodeFacts) -> str:
    mode = node.text("coordinate_transformation_mode", "half_pixel")
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "keep_aspect_ratio_policy is ignored"
    if node.number("antialias", 0):
        return "antialias is computed differently"
    if node.number("exclude_outside", 0):
        return "exclude_outside is computed differently"
    if mode in ("tf_crop_and_resize", "half_pixel_symmetric"):
        return f"cannot convert coordinate_transformation_mode {mode}"
    if mode == "align_corners" and not _has_whole_sizes(node):
        return "align_corners is computed differently for sizes that are rounded"
    return ""


def _has_whole_sizes(node: NodeFacts) -> bool:
    """Whether a Resize by scales is known to make no size that is rounded."""
    scales, shape = _read_floats(node, 2), node.shape(0)
    axes = node.numbers("axes")
    if scales is None or not all(scale >= 1 for scale in scales):
        return False
    if all(scale.is_integer() for scale in scales):
        return True
    if shape is None or axes or len(shape) != len(scales):
        return False
    return all(
        scale.is_integer() or (isinstance(size, int) and (size * scale).is_integer())
        for size, scale in zip(shape, scales, strict=True)
    )


def _read_floats(node: NodeFacts, position: int) -> tuple[float, ...] | None:
    """Values of a constant float32 input; empty if it is omitted, None if it is not constant."""
    if not node.has_input(position):
        return ()
    constant = node.constant(position)
    if constant is None or not isinstance(constant.data, memoryview):
        return None
    return struct.unpack(f"<{len(constant.data) // 4}f", constant.data)


def _require_mode(name: str, right: str, why: str) -> Condition:
    def condition(node: NodeFacts) -> str:
        value = node.text(name, right)
        return "" if value == right else f"{name} {value}: {why}"

    return condition


def _check_pad(node: NodeFacts) -> str:
    mode = node.text("mode", "constant")
    return f"cannot convert mode {mode}" if mode == "wrap" else ""


def _check_prelu(node: NodeFacts) -> str:
    shape, slopes = node.shape(0), node.shape(1)
    is_vector = slopes is None or (len(slopes) == 1 and slopes[0] != 1)
    if is_vector and (shape is None or len(shape) > 2):
        return "a vector of slopes is applied along the channels, not the last axis"
    pairs = zip(reversed(shape or ()), reversed(slopes or ()), strict=False)
    if any(size == 1 and slope != 1 for size, slope in pairs):
        return "slopes would have to broadcast the values"
    count = prod(size for size in slopes or () if isinstance(size, int))
    last = shape[-1] if shape else None
    if count > 1 and slopes and slopes[-1] == 1 and (last == count or not isinstance(last, int)):
        maker = _find_maker(node, (*SCALE_AND_SHIFT, "Cast"))
        if maker is not None and maker.op_type.startswith(("MatMul", "QLinearMatMul")):
            return "behind a matrix product, slopes by channel are applied along the last axis"
    return ""


def _find_maker(node: NodeFacts, through: tuple[str, ...]) -> Node | None:
    """The node before those of some operators that make the first input; None for an input."""
    name = node.node.inputs[0]
    while (index := node.graph.producer(name)) is not None:
        maker = node.graph.nodes[index]
        if maker.op_type not in through:
            return maker
        name = maker.inputs[0]
    return None


def _check_conv(node: NodeFacts) -> str:
    """Seen with 2026.4.1: strides move to an earlier node, and one element ends the process."""
    shape = node.shape(1)
    is_point = shape is not None and all(size == 1 for size in shape[2:])
    if is_point and any(node.numbers("pads") or ()):
        return "padded convolutions of size 1 read past their input, and apply strides before pads"
    if may_have_one_column(node, shape):
        return ONE_COLUMN
    makers = (node.graph.producer(name) for name in node.node.inputs[:2])
    is_quantised = any(
        index is not None and node.graph.nodes[index].op_type == "DequantizeLinear"
        for index in makers
    )
    return _check_windows(1)(node) if is_quantised else ""


def _check_windows(weights: int) -> Condition:
    """Of a convolution of 8-bit integers, whose weights are the input at that place."""

    def condition(node: NodeFacts) -> str:
        shape = node.shape(weights)
        if shape is not None and may_read_padding_alone(node, shape[2:]):
            return "windows of padding alone read past the input"
        return ONE_COLUMN if weights == 1 and may_have_one_column(node, shape) else ""

    return condition


def _check_modulo(node: NodeFacts) -> str:
    wrong = not node.number("fmod", 0) and node.elem_type(0) in FLOATS
    return "cannot convert fmod=0 on floats" if wrong else ""


def _check_grid_sample(node: NodeFacts) -> str:
    shape = node.shape(0)
    return "" if shape is not None and len(shape) == 4 else "the input is not 4-D"


def _check_trilu(node: NodeFacts) -> str:
    return "k is not a constant" if node.is_runtime(1) else ""


def _check_quantize(node: NodeFacts) -> str:
    if node.number("block_size", 0):
        return "cannot convert blocked quantisation"
    if node.is_runtime(1):
        return "a non-constant scale is applied as its reciprocal, which rounds differently"
    return written_steps_problem(node)


def _check_dequantize(node: NodeFacts) -> str:
    wrong = node.release < (2026, 0) and node.number("block_size", 0)
    return "blocks are scaled wrong before release 2026" if wrong else ""


def _check_quotient(node: NodeFacts) -> str:
    bytes_alone = node.elem_type(0) in (DataType.INT8, DataType.UINT8)
    return "quotients of 8 bits are rounded in free shapes" if bytes_alone else ""


def _check_split(node: NodeFacts) -> str:
    shape, axis = node.shape(0), node.number("axis", 0)
    if not node.number("num_outputs", 0):
        return ""
    known = shape is not None and -len(shape) <= axis < len(shape) and isinstance(shape[axis], int)
    return "" if known else "it fails where the last of num_outputs is smaller"


def _check_one_hot(node: NodeFacts) -> str:
    return "negative indices count from the end, as from opset 11 on" if node.opset < 11 else ""


def _check_unique(node: NodeFacts) -> str:
    shape = node.shape(0)
    fixed = shape is not None and all(isinstance(size, int) for size in shape)
    return "" if fixed else "of a value without elements it returns those of an earlier run"


CONDITIONS: Mapping[str, Condition] = {
    "Attention": _check_attention,
    "AveragePool": check_pool,
    "BitShift": _check_shift,
    "ConstantOfShape": check_expansion,
    "Conv": _check_conv,
    "ConvInteger": _check_windows(1),
    "ConvTranspose": transposed_pads_problem,
    "DequantizeLinear": _check_dequantize,
    "Div": _check_quotient,
    "Expand": check_expansion,
    "GRU": _check_rnn,
    "Gather": check_gather,
    "GatherND": check_gather_nd,
    "GridSample": _check_grid_sample,
    "LSTM": _check_rnn,
    "MaxPool": check_pool,
    "LpPool": check_pool,
    "Mod": _check_modulo,
    "OneHot": _check_one_hot,
    "PRelu": _check_prelu,
    "Pad": _check_pad,
    "QLinearConv": _check_windows(3),
    "QuantizeLinear": _check_quantize,
    "RNN": _check_rnn,
    "ReduceMax": _check_extreme,
    "ReduceMin": _check_extreme,
    "Resize": _check_resize,
    "RoiAlign": _require_mode("mode", "avg", "the maximum is taken at other points"),
    "Slice": check_slice,
    "SpaceToDepth": _require_mode("mode", "DCR", "it is computed as DCR"),
    "Split": _check_split,
    "Squeeze": _require_constant(1, "axes"),
    "Tile": check_tile,
    "Trilu": _check_trilu,
    "Unique": _check_unique,
    "Unsqueeze": _require_constant(1, "axes"),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), _check_log_sum),
    **dict.fromkeys(
        [
            "ReduceL1",
            "ReduceL2",
            "ReduceMean",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
        ],
        _check_reduce,
    ),
}
"""Conditions by ai.onnx operator, for those that OpenVINO computes correctly only in part."""

WRONG: Mapping[str, str] = {
    "Bernoulli": "its results are random",
    "Dropout": "wrong values even when it is the identity",
    "Multinomial": "its results are random",
    "NonMaxSuppression": "wrong for scores at the threshold",
    "RandomNormal": "its results are random",
    "RandomNormalLike": "its results are random",
    "RandomUniform": "its results are random",
    "RandomUniformLike": "its results are random",
    "TopK": "returns equal elements in another order",
}
"""Reasons by ai.onnx operator that OpenVINO computes wrong whatever its attributes.

Of com.microsoft, whose operators the suite does not have, the table lists the ones that
tests/unit/openvino compares with onnxruntime. DynamicQuantizeMatMul and DynamicQuantizeLSTM leave
activations unquantised, RotaryEmbedding and EmbedLayerNormalization lack attribute defaults."""
