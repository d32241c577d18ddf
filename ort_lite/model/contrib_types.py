"""Types of outputs of ONNX Runtime's own operators, which onnx's shape inference does not know.

Source: ONNX Runtime, docs/ContribOperators.md. What is not worth computing (the size of a pooled
axis) is left open; element types and ranks are what finding kernels and partitions needs.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import DataType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ctx_formats.onnx_model import Dim, Node, ValueType

    Types = Sequence[TensorType | None]
    Shape = tuple[Dim, ...] | None
    Rule = Callable[[Node, Types], Types]

CONTRIB = "com.microsoft"
_IN_ONNX_DOMAIN = frozenset(("SimplifiedLayerNormalization",))
"""Operators of ONNX Runtime that it writes into the domain of ONNX."""


def is_contrib(node: Node) -> bool:
    """Whether a node is ONNX Runtime's own."""
    return node.domain == CONTRIB or (node.domain == "" and node.op_type in _IN_ONNX_DOMAIN)


def infer_contrib_types(
    node: Node, input_types: Sequence[ValueType | None]
) -> tuple[ValueType | None, ...]:
    """Types of the outputs of a contrib node; None for what is not known.

    Args:
        node: One for which `is_contrib` holds.
        input_types: Of its inputs, None if omitted or not known.
    """
    types = [inferred if isinstance(inferred, TensorType) else None for inferred in input_types]
    rule = _RULES.get(node.op_type)
    inferred = rule(node, types) if rule is not None else ()
    count = len(node.outputs)
    return (*inferred, *(None,) * count)[:count]


def infer_simple_types(
    node: Node, input_types: Sequence[ValueType | None]
) -> tuple[ValueType | None, ...]:
    """As `infer_contrib_types`, of an operator of ONNX that stands between contrib operators.

    onnx's inference finds the same, but would have to run again after each contrib operator of a
    chain. Operators that are less simple have no type here.
    """
    types = [inferred if isinstance(inferred, TensorType) else None for inferred in input_types]
    rule = _SIMPLE.get(node.op_type)
    inferred = rule(node, types) if rule is not None and not _names_type(node) else ()
    count = len(node.outputs)
    return (*inferred, *(None,) * count)[:count]


def _names_type(node: Node) -> bool:
    """Whether an attribute of (De)QuantizeLinear sets the type of its elements."""
    return "output_dtype" in node.attributes


def _at(types: Types, index: int) -> TensorType | None:
    return types[index] if index < len(types) else None


def _shape(types: Types, index: int) -> Shape:
    tensor_type = _at(types, index)
    return None if tensor_type is None else tensor_type.shape


def _tensor_type(like: TensorType | None, shape: Shape) -> TensorType | None:
    """Elements as in `like`."""
    return None if like is None else TensorType(like.elem_type, shape)


def _open_shape(shape: Shape, more: int = 0) -> Shape:
    """As many dimensions, none of them known."""
    return None if shape is None else (None,) * (len(shape) + more)


def _int(node: Node, name: str, default: int = 0) -> int:
    attribute = node.attributes.get(name)
    value = attribute.value if attribute is not None else default
    return value if isinstance(value, int) else default


def _ints(node: Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    attribute = node.attributes.get(name)
    value = attribute.value if attribute is not None else None
    if not isinstance(value, tuple) or not all(isinstance(each, int) for each in value):
        return default
    return tuple(each for each in value if isinstance(each, int))


def _broadcast(*shapes: Shape) -> Shape:
    """As numpy's; a dimension is known where every shape that has it says the same, or 1."""
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in known]
    dims: list[Dim] = []
    for column in zip(*padded, strict=True):
        others = {dim for dim in column if dim != 1}
        dims.append(1 if not others else others.pop() if len(others) == 1 else None)
    return tuple(dims)


def _product(a: Shape, b: Shape, *, turn_a: bool = False, turn_b: bool = False) -> Shape:
    """Of a matrix product."""
    if a is None or b is None or len(a) < 2 or len(b) < 2:
        return None
    batch = _broadcast(a[:-2], b[:-2])
    return None if batch is None else (*batch, a[-1 if turn_a else -2], b[-2 if turn_b else -1])


def _same_type(index: int = 0) -> Rule:
    return lambda _, types: (_at(types, index),)


def _matrix(element: int | None = None, b: int = 1) -> Rule:
    """A product of input 0 and input `b`; elements as of input 0, or of type `element`."""

    def rule(node: Node, types: Types) -> Types:
        turned = {"turn_a": bool(_int(node, "transA")), "turn_b": bool(_int(node, "transB"))}
        shape = _product(_shape(types, 0), _shape(types, b), **turned)
        first = _at(types, 0)
        return (_tensor_type(first, shape) if element is None else TensorType(element, shape),)

    return rule


def _quantized_gemm(node: Node, types: Types) -> Types:
    (product,) = _matrix(b=3)(node, types)
    shape = None if product is None else product.shape
    zero = _at(types, 8)
    return (TensorType(DataType.FLOAT if zero is None else zero.elem_type, shape),)


def _columns(node: Node, types: Types) -> Types:
    """Rows of input 0 with N columns."""
    shape = _shape(types, 0)
    wide = None if shape is None else (*shape[:-1], _int(node, "N") or None)
    return (_tensor_type(_at(types, 0), wide),)


def _quantize(_: Node, types: Types) -> Types:
    zero = _at(types, 2)
    element = DataType.UINT8 if zero is None else zero.elem_type
    return (TensorType(element, _shape(types, 0)),)


def _elements_of(like: int, *shapes: int) -> Rule:
    """Elements as of input `like`, the shapes of other inputs broadcast."""
    return lambda _, types: (
        _tensor_type(_at(types, like), _broadcast(*(_shape(types, i) for i in shapes))),
    )


def _rule_without_shape(like: int = 0, more: int = 0) -> Rule:
    """Elements as of input `like`, `more` dimensions than input 0, none known."""
    return lambda _, types: (_tensor_type(_at(types, like), _open_shape(_shape(types, 0), more)),)


def _windows(like: int, weights: int | None = None) -> Rule:
    """Windows over space: the batch is kept, channels too or as many as there are filters.

    Sizes in space are known of convolutions whose padding is written out.
    """

    def rule(node: Node, types: Types) -> Types:
        shape = _shape(types, 0)
        if shape is None or len(shape) < 3:
            return (_tensor_type(_at(types, like), None),)
        last = bool(_int(node, "channels_last", int(node.op_type == "NhwcMaxPool")))
        channels: Dim = shape[-1] if last else shape[1]
        pooled: Dim = 1 if node.op_type.endswith("GlobalAveragePool") else None
        space = (pooled,) * (len(shape) - 2)
        if weights is not None:
            filters = _shape(types, weights)
            channels = filters[0] if filters else None
            if filters and len(filters) == len(shape):
                space = _slid(node, shape[1:-1] if last else shape[2:], filters[2:])
        kept = (shape[0], *space, channels) if last else (shape[0], channels, *space)
        return (_tensor_type(_at(types, like), kept),)

    return rule


def _slid(node: Node, space: tuple[Dim, ...], kernel: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Sizes of a convolution's output in space; None where they are not known: Conv-11."""
    rank = len(space)
    strides, dilations = (_ints(node, name, (1,) * rank) for name in ("strides", "dilations"))
    pads = _ints(node, "pads", (0,) * (2 * rank))
    auto_pad = node.attributes.get("auto_pad")
    if auto_pad is not None and auto_pad.value != b"NOTSET":
        return (None,) * rank
    if (len(strides), len(dilations), len(pads)) != (rank, rank, 2 * rank) or min(strides) < 1:
        return (None,) * rank
    sizes: list[Dim] = []
    for axis, (size, width) in enumerate(zip(space, kernel, strict=True)):
        if not isinstance(width, int):
            sizes.append(None)
            continue
        more = pads[axis] + pads[axis + rank] - dilations[axis] * (width - 1)
        if not more and strides[axis] == 1:
            sizes.append(size)  # a symbol, too
        else:
            steps = (size + more - 1) // strides[axis] + 1 if isinstance(size, int) else 0
            sizes.append(steps if steps > 0 else None)
    return tuple(sizes)


def _quantized_concat(node: Node, types: Types) -> Types:
    """Inputs are the result's scale and zero point, then tensor, scale, zero point of each."""
    shapes = [_shape(types, i) for i in range(2, len(types), 3)]
    first = _at(types, 2)
    if first is None or first.shape is None:
        return (first,)
    axis = _int(node, "axis") % max(len(first.shape), 1)
    along = [shape[axis] if shape and len(shape) > axis else None for shape in shapes]
    total = sum(d for d in along if isinstance(d, int))
    whole: Dim = total if all(isinstance(d, int) for d in along) else None
    return (_tensor_type(first, (*first.shape[:axis], whole, *first.shape[axis + 1 :])),)


def _attention(node: Node, types: Types) -> Types:
    """[batch, length, hidden size of V], and the present [2, batch, heads, total, size]."""
    x, w = _shape(types, 0), _shape(types, 1)
    scale = _at(types, 3) if node.op_type == "QAttention" else _at(types, 0)
    sizes = node.attributes.get("qkv_hidden_sizes")
    width = w[1] if w is not None and len(w) == 2 else None
    hidden: Dim = width // 3 if isinstance(width, int) else None
    if sizes is not None and isinstance(sizes.value, tuple) and len(sizes.value) == 3:
        hidden = sizes.value[2]
    out = None if x is None or len(x) != 3 else (x[0], x[1], hidden)
    return (_tensor_type(scale, out), _tensor_type(scale, (None,) * 5))


def _heads_of(node: Node, types: Types) -> Types:
    """MultiHeadAttention and GroupQueryAttention: [batch, length, columns], present K and V."""
    query = _at(types, 0)
    shape = _shape(types, 0)
    columns: Dim = None
    if shape is not None and len(shape) == 3 and _at(types, 1) is not None:
        value = _shape(types, 2)
        grouped = node.op_type == "GroupQueryAttention"
        columns = shape[2] if grouped else value[2] if value and len(value) == 3 else None
    out = None if shape is None or len(shape) < 3 else (shape[0], shape[1], columns)
    cache = _tensor_type(query, (None,) * 4)
    return (_tensor_type(query, out), cache, cache)


def _quantized_rows(node: Node, types: Types) -> Types:
    """Rows of input 0 that input 1 picks; bytes contain several elements of the last axis each."""
    data, indices = _shape(types, 0), _shape(types, 1)
    packed = _at(types, 0)
    out = None
    if data and indices is not None and packed is not None and not _int(node, "gather_axis"):
        each = 8 // max(1, _int(node, "bits", 4)) if packed.elem_type == DataType.UINT8 else 1
        last = data[-1]
        out = (*indices, *data[1:-1], last * each if isinstance(last, int) else None)
    return (_tensor_type(_at(types, 2), out),)


def _skip_normalization(_: Node, types: Types) -> Types:
    return (_at(types, 0), None, None, _at(types, 0))


def _embedding(_: Node, types: Types) -> Types:
    ids, table = _shape(types, 0), _at(types, 2)
    hidden = table.shape[1] if table is not None and table.shape and len(table.shape) == 2 else None
    out = None if ids is None or len(ids) != 2 else (*ids, hidden)
    mask = TensorType(DataType.INT32, None if ids is None else ids[:1])
    return (_tensor_type(table, out), mask, _tensor_type(table, out))


def _quantized_embedding(node: Node, types: Types) -> Types:
    types_as_float = _embedding(node, types)
    whole = types_as_float[0]
    return (None if whole is None else TensorType(DataType.FLOAT, whole.shape), types_as_float[1])


def _hashes(node: Node, types: Types) -> Types:
    element = DataType.UINT32 if _int(node, "positive", 1) else DataType.INT32
    return (TensorType(element, _shape(types, 0)),)


def _distances(_: Node, types: Types) -> Types:
    a, b = _shape(types, 0), _shape(types, 1)
    return (_tensor_type(_at(types, 0), None if not a or not b else (a[0], b[0])),)


def _range(_: Node, types: Types) -> Types:
    return (_tensor_type(_at(types, 0), (None,)),)


def _unique(_: Node, types: Types) -> Types:
    counts = TensorType(DataType.INT64, (None,))
    return (
        _tensor_type(_at(types, 0), (None,)),
        TensorType(DataType.INT64, _shape(types, 0)),
        counts,
    )


def _tokens(_: Node, types: Types) -> Types:
    texts = _shape(types, 0)
    return (_tensor_type(_at(types, 0), None if texts is None else (*texts, None)),)


def _infer_sampled(_: Node, types: Types) -> Types:
    x, grid = _shape(types, 0), _shape(types, 1)
    return (_tensor_type(_at(types, 0), None if not x or not grid else (*x[:2], *grid[1:-1])),)


def _lstm(node: Node, types: Types) -> Types:
    """Y [seq, directions, batch, hidden], Y_h and Y_c [directions, batch, hidden]."""
    direction = node.attributes.get("direction")
    ways = 2 if direction is not None and direction.value == b"bidirectional" else 1
    x = _shape(types, 0)
    seq, batch = x[:2] if x and len(x) == 3 else (None, None)
    state = (ways, batch, _int(node, "hidden_size") or None)
    whole = TensorType(DataType.FLOAT, (seq, *state))
    return (whole, TensorType(DataType.FLOAT, state), TensorType(DataType.FLOAT, state))


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("BiasAdd", "BiasGelu", "FastGelu", "Gelu", "Inverse", "MoE", "QLinearLeakyRelu"),
                *("QLinearSigmoid", "QLinearSoftmax", "QMoE", "QuickGelu", "RotaryEmbedding"),
                *("SimplifiedLayerNormalization", "Trilu"),
            ),
            _same_type(),
        ),
        **dict.fromkeys(("FusedMatMul", "TransposeMatMul", "FusedGemm"), _matrix()),
        **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), _matrix(DataType.FLOAT)),
        **dict.fromkeys(("MatMulNBits", "MatMulBnb4"), _columns),
        "SparseToDenseMatMul": lambda _, types: (_tensor_type(_at(types, 1), (None, None)),),
        **dict.fromkeys(("QLinearAdd", "QLinearMul"), _elements_of(0, 0, 3)),
        **dict.fromkeys(("Attention", "QAttention"), _attention),
        **dict.fromkeys(("GroupQueryAttention", "MultiHeadAttention"), _heads_of),
        **dict.fromkeys(
            ("NhwcMaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool"), _windows(0)
        ),
        **dict.fromkeys(
            ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _skip_normalization
        ),
        "CDist": _distances,
        "CropAndResize": lambda _, types: (_tensor_type(_at(types, 0), (None,) * 4),),
        "DynamicTimeWarping": lambda *_: (TensorType(DataType.INT32, (2, None)),),
        "MurmurHash3": _hashes,
        "QEmbedLayerNormalization": _quantized_embedding,
        "UnfoldTensor": _rule_without_shape(more=1),
        "DequantizeLinear": _elements_of(1, 0),
        "DynamicQuantizeLSTM": _lstm,
        "EmbedLayerNormalization": _embedding,
        "ExpandDims": _rule_without_shape(more=1),
        "FusedConv": _windows(0, 1),
        "GatherBlockQuantized": _quantized_rows,
        "GatherND": lambda _, types: (_tensor_type(_at(types, 0), None),),
        "GridSample": _infer_sampled,
        "MatMulInteger16": _matrix(DataType.INT32),
        "NGramRepeatBlock": _same_type(1),
        "Pad": _rule_without_shape(),
        "QGemm": _quantized_gemm,
        "QLinearConcat": _quantized_concat,
        "QLinearConv": _windows(7, 3),
        "QLinearWhere": _elements_of(1, 0, 1, 4),
        "QuantizeLinear": _quantize,
        "Range": _range,
        "Tokenizer": _tokens,
        "Unique": _unique,
    }
)
"""Every contrib operator that the CPU EP has a kernel for."""

_SIMPLE: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                *("Clip", "Elu", "Erf", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu"),
                *("LogSoftmax", "Neg", "Relu", "Sigmoid", "Softmax", "Softplus", "Tanh"),
            ),
            _same_type(),
        ),
        **dict.fromkeys(("Add", "Div", "Mul", "Sub"), _elements_of(0, 0, 1)),
        "Conv": _windows(0, 1),
        "DequantizeLinear": _elements_of(1, 0),
        "GlobalAveragePool": _windows(0),
        "MatMul": _matrix(),
        "QLinearConv": _windows(7, 3),
        "QLinearMatMul": lambda _, types: (
            _tensor_type(_at(types, 7), _product(_shape(types, 0), _shape(types, 3))),
        ),
        "QuantizeLinear": _quantize,
    }
)
"""By operator of ONNX."""
