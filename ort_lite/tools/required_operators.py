"""Lists the operators and types that models in the ORT format need, for a reduced ONNX Runtime.

The file is onnxruntime's `required_operators.config`: comments with the models, then a line
`domain;version;op1,op2` for each domain and schema version. With types, JSON follows an operator:
the C++ names of the types of those inputs and outputs that ONNX Runtime's kernels switch on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ctx_formats.onnx_model import DataType, GraphDef, MapType, SequenceType, TensorType
from ctx_formats.ort_model_reader import is_ort_model, read_ort_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from ctx_formats.kernel_types import KernelTypes
    from ctx_formats.onnx_model import Node, ValueType

CPP_NAMES: Mapping[int, str] = {
    DataType.FLOAT: "float",
    DataType.UINT8: "uint8_t",
    DataType.INT8: "int8_t",
    DataType.UINT16: "uint16_t",
    DataType.INT16: "int16_t",
    DataType.INT32: "int32_t",
    DataType.INT64: "int64_t",
    DataType.STRING: "std::string",
    DataType.BOOL: "bool",
    DataType.FLOAT16: "MLFloat16",
    DataType.DOUBLE: "double",
    DataType.UINT32: "uint32_t",
    DataType.UINT64: "uint64_t",
    DataType.BFLOAT16: "BFloat16",
    DataType.FLOAT8E4M3FN: "Float8E4M3FN",
    DataType.FLOAT8E4M3FNUZ: "Float8E4M3FNUZ",
    DataType.FLOAT8E5M2: "Float8E5M2",
    DataType.FLOAT8E5M2FNUZ: "Float8E5M2FNUZ",
}
_BY_FIRST_INPUT = """
    Abs Add ArgMax ArgMin AveragePool BatchNormalization BitShift Ceil Clip Concat Conv CumSum
    DequantizeLinear Div Equal Exp Expand Floor Gemm Greater IsNaN Less Log LogSoftmax
    LpNormalization MatMul Max MaxPool Mean Min Mul Neg NonZero Pad QLinearConv QLinearMatMul Range
    Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
    ReduceProd ReduceSum ReduceSumSquare Relu Resize ReverseSequence RoiAlign Round Scatter
    ScatterElements ScatterND Shrink Sigmoid Sign Sin Softmax Split SplitToSequence Sqrt Sub Sum
    Tanh TopK Transpose Unique
"""
_BY_FIRST_OUTPUT = """
    ConstantOfShape DynamicQuantizeLinear Multinomial QuantizeLinear RandomNormal RandomNormalLike
    RandomUniform RandomUniformLike
"""
_BY_TWO_INPUTS = "Gather GatherElements Pow Slice"
ONE_HOT = ("ai.onnx", "OneHot")
"""Its kernels switch on three types at once, in the order of inputs 0, 2 and 1."""
TRACKED: Mapping[tuple[str, str], tuple[tuple[int, ...], tuple[int, ...]]] = {
    **{("ai.onnx", op): ((0,), ()) for op in _BY_FIRST_INPUT.split()},
    **{("ai.onnx", op): ((), (0,)) for op in _BY_FIRST_OUTPUT.split()},
    **{("ai.onnx", op): ((0, 1), ()) for op in _BY_TWO_INPUTS.split()},
    **{("com.microsoft", op): ((0,), ()) for op in ("QLinearAdd", "QLinearConv", "QLinearMul")},
    ("ai.onnx", "Cast"): ((0,), (0,)),
    ("ai.onnx", "Where"): ((1,), ()),
}
"""Inputs and outputs on whose types the kernels of ONNX Runtime 1.31 switch; of other operators
there is one implementation for all types, or for one."""


@dataclass(slots=True)
class RequiredOperators:
    """Operators and types of some models.

    Attributes:
        versions: Operator types by domain and schema version.
        types: For each operator C++ types by "inputs" or "outputs" and index.
        triples: The types of OneHot nodes.
    """

    versions: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    types: dict[tuple[str, str], dict[tuple[str, int], set[str]]] = field(default_factory=dict)
    triples: set[tuple[str, ...]] = field(default_factory=set)

    def add_model(self, path: Path) -> None:
        """Add the operators of a model in the ORT format.

        Raises:
            RuntimeError: It is none; onnxruntime's class and words.
            FormatError: It is damaged.
        """
        data = memoryview(path.read_bytes())
        if not is_ort_model(data):
            raise RuntimeError(f"File does not appear to be a valid ORT format model: '{path}'")
        model = read_ort_model(data, file=str(path)).model
        if model.kernel_types is None:
            raise RuntimeError(
                f"{path} is in an old version of the ORT format, or its nodes disagree about "
                "operator versions; convert it to version 6 first: ort-lite convert"
            )
        self._add_graph(model.graph, model.kernel_types, {})

    def entry(self, domain: str, op_type: str) -> str:
        """JSON with an operator's types; empty where none are tracked."""
        if (domain, op_type) == ONE_HOT:
            return json.dumps({"custom": sorted(self.triples)}) if self.triples else ""
        listed: dict[str, dict[int, list[str]]] = {}
        for (kind, index), names in sorted(self.types.get((domain, op_type), {}).items()):
            listed.setdefault(kind, {})[index] = sorted(names)
        return json.dumps(listed) if listed else ""

    def _add_graph(
        self, graph: GraphDef, kernels: KernelTypes, around: Mapping[str, ValueType]
    ) -> None:
        types = {**around}
        for name, tensor in graph.initializers.items():
            types[name] = TensorType(tensor.data_type, tensor.dims)
        for infos in (graph.outputs, graph.value_info.values(), graph.inputs):
            types.update({info.name: info.type for info in infos if info.type is not None})
        for node in graph.nodes:
            domain = node.domain or "ai.onnx"
            version = kernels.since_versions[node.domain, node.op_type]
            self.versions.setdefault((domain, version), set()).add(node.op_type)
            self._add_types(domain, node, types)
            for attribute in node.attributes.values():
                if isinstance(attribute.value, GraphDef):
                    self._add_graph(attribute.value, kernels, types)

    def _add_types(self, domain: str, node: Node, types: Mapping[str, ValueType]) -> None:
        key = (domain, node.op_type)
        if key == ONE_HOT:
            self.triples.add(tuple(_cpp_name(types.get(node.inputs[i])) for i in (0, 2, 1)))
        inputs, outputs = TRACKED.get(key, ((), ()))
        for kind, indices, names in (
            ("inputs", inputs, node.inputs),
            ("outputs", outputs, node.outputs),
        ):
            for index in indices:
                if index < len(names) and names[index]:
                    known = self.types.setdefault(key, {}).setdefault((kind, index), set())
                    known.add(_cpp_name(types.get(names[index])))


def config_text(models: Sequence[Path], *, with_types: bool) -> str:
    """The content of `required_operators.config`.

    Args:
        models: In the ORT format.
        with_types: Whether operators are followed by the types that they are used with.

    Raises:
        RuntimeError: A file is not in the ORT format, or in an old version.
        FormatError: It is damaged.
    """
    operators = RequiredOperators()
    for model in models:
        operators.add_model(model)
    return "".join(_lines(operators, models, with_types=with_types))


def _lines(
    operators: RequiredOperators, models: Sequence[Path], *, with_types: bool
) -> Iterable[str]:
    yield "# Generated from model/s:\n"
    for model in sorted(models):
        yield f"# - {model}\n"
    for domain, version in sorted(operators.versions):
        names = sorted(operators.versions[domain, version])
        entries = [name + (operators.entry(domain, name) if with_types else "") for name in names]
        yield f"{domain};{version};{','.join(entries)}\n"


def _cpp_name(value_type: ValueType | None) -> str:
    """C++ name of a tensor's elements, or of those of a sequence's tensors."""
    if isinstance(value_type, TensorType):
        return CPP_NAMES.get(value_type.elem_type, "unknown")
    if isinstance(value_type, SequenceType):
        return _cpp_name(value_type.elem)
    if isinstance(value_type, MapType):
        key = CPP_NAMES.get(value_type.key_type, "unknown")
        return f"std::map<{key},{_cpp_name(value_type.value)}>"
    return "unknown"
