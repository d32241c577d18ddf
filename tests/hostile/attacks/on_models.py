"""Models that contradict themselves, or say odd things."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from attacks.attack import Engine, add

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FLOAT = TensorProto.FLOAT
X = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
B = np.array([1, 2, -3], np.float32)
Y = np.maximum(X + B, 0)
FEED = {"x": X}


def info(name: str, shape: Sequence[Any] | None = (2, 3), kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto] | None = None,
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    outputs: Sequence[onnx.ValueInfoProto] | None = None,
    weights: Sequence[onnx.TensorProto] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    """y = Relu(x + b), unless told otherwise."""
    graph = helper.make_graph(
        list(nodes) if nodes is not None else relu_nodes(),
        "g",
        list(inputs) if inputs is not None else [info("x")],
        list(outputs) if outputs is not None else [info("y")],
        list(weights) if weights is not None else [numpy_helper.from_array(B, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def relu_nodes() -> list[onnx.NodeProto]:
    return [
        helper.make_node("Add", ["x", "b"], ["s"], name="add"),
        helper.make_node("Relu", ["s"], ["y"], name="relu"),
    ]


def case(name: str, make: Callable[[], object], expected: object = None, feed: Any = FEED) -> None:
    """A case: what must fail where `expected` is None."""

    def run(engine: Engine) -> None:
        engine.check(make(), feed, expected)

    add(f"models: {name}", run)


def changed(change: Callable[[onnx.ModelProto], object]) -> Callable[[], onnx.ModelProto]:
    """The model after `change`."""

    def make() -> onnx.ModelProto:
        made = model()
        change(made)
        return made

    return make


def _names(text: str) -> Callable[[], onnx.ModelProto]:
    """Every name of the model with `text` in it."""

    def make() -> onnx.ModelProto:
        made = model(
            [
                helper.make_node("Add", ["x", f"b{text}"], [f"s{text}"], name=f"add{text}"),
                helper.make_node("Relu", [f"s{text}"], ["y"], name=f"relu{text}"),
            ],
            weights=[numpy_helper.from_array(B, f"b{text}")],
        )
        made.graph.name = f"g{text}"
        made.producer_name = f"p{text}"
        made.doc_string = f"d{text}"
        return made

    return make


def set_field(target: Callable[[onnx.ModelProto], Any], name: str, value: object) -> Any:
    return changed(lambda made: setattr(target(made), name, value))


# --- structure
case("no graph", lambda: onnx.ModelProto(ir_version=8))
case("empty bytes", lambda: b"")
case("zeros", lambda: bytes(4096))
case("text", lambda: b"this is no model\n" * 10)
case("a JSON text", lambda: b'{"graph": {}}')
case("a zip archive", lambda: b"PK\3\4" + bytes(100))
case("cut in half", lambda: model().SerializeToString()[:60])
case("twice in a row", lambda: model().SerializeToString() * 2)
case("no nodes, output is not a value", lambda: model([], weights=[]))
case("no outputs", lambda: model(outputs=[]))
case("output that nobody makes", lambda: model(outputs=[info("z")]))
case("output is an input", lambda: model([], outputs=[info("x")], weights=[]), X)
case("output is an initializer", lambda: model([], outputs=[info("b", (3,))]), B)
case("output twice", lambda: model(outputs=[info("y"), info("y")]), Y)
case("input twice", lambda: model(inputs=[info("x"), info("x")]))
case("initializer twice", lambda: model(weights=[numpy_helper.from_array(B, "b")] * 2), Y)
case(
    "initializer twice with other values",
    lambda: model(weights=[numpy_helper.from_array(B, "b"), numpy_helper.from_array(-B, "b")]),
    np.maximum(X - B, 0),  # the last one counts, in ONNX Runtime, too
)
case(
    "two nodes make one value",
    lambda: model([*relu_nodes(), helper.make_node("Abs", ["x"], ["s"])]),
)
case("node makes an input", lambda: model([helper.make_node("Relu", ["x"], ["x"]), *relu_nodes()]))
case(
    "node makes an initializer",
    lambda: model([helper.make_node("Abs", ["x"], ["b"]), *relu_nodes()]),
)
case(
    "node makes one value twice",
    lambda: model([helper.make_node("Split", ["x"], ["y", "y"], axis=1)]),
)
# ONNX Runtime refuses nodes of one name, and branches that use a name of the graph around them.
case("node names twice", changed(lambda m: setattr(m.graph.node[1], "name", "add")), Y)
case(
    "cycle of two",
    lambda: model(
        [helper.make_node("Add", ["x", "y"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
    ),
)
case("cycle of one", lambda: model([helper.make_node("Add", ["x", "y"], ["y"])]))
case(
    "cycle beside the answer",
    lambda: model(
        [
            *relu_nodes(),
            helper.make_node("Neg", ["p"], ["q"]),
            helper.make_node("Neg", ["q"], ["p"]),
        ]
    ),
)
case("nodes out of order", lambda: model(relu_nodes()[::-1]), Y)
case("input of a node is missing", lambda: model([helper.make_node("Relu", ["nosuch"], ["y"])]))
case("required input is empty", lambda: model([helper.make_node("Add", ["x", ""], ["y"])]))
case("no inputs to Add", lambda: model([helper.make_node("Add", [], ["y"])]))
case("too many inputs", lambda: model([helper.make_node("Relu", ["x", "x"], ["y"])]))
case("too many outputs", lambda: model([helper.make_node("Relu", ["x"], ["y", "z"])]))
case("node without outputs", lambda: model([*relu_nodes(), helper.make_node("Abs", ["x"], [])]))
case("unknown operator", lambda: model([helper.make_node("NoSuch", ["x"], ["y"])]))
case("unknown domain", lambda: model([helper.make_node("Relu", ["x"], ["y"], domain="no.such")]))
case("unknown attribute", lambda: model([helper.make_node("Relu", ["x"], ["y"], nosuch=1)]))
case("empty op_type", lambda: model([helper.make_node("", ["x"], ["y"])]))
case("nested op_type case", lambda: model([helper.make_node("relu", ["x"], ["y"])]))
case(
    "attribute twice",
    changed(
        lambda m: m.graph.node[0].attribute.extend(
            [helper.make_attribute("a", 1), helper.make_attribute("a", 2)]
        )
    ),
)
case(
    "attribute of the wrong type",
    lambda: model([helper.make_node("Softmax", ["x"], ["y"], axis=1.5)]),
)
case("axis beyond the rank", lambda: model([helper.make_node("Softmax", ["x"], ["y"], axis=7)]))
case(
    "axis at int64 minimum",
    lambda: model([helper.make_node("Softmax", ["x"], ["y"], axis=-(2**63))]),
)
case("perm with repeats", lambda: model([helper.make_node("Transpose", ["x"], ["y"], perm=[0, 0])]))
case("perm too short", lambda: model([helper.make_node("Transpose", ["x"], ["y"], perm=[0])]))

# --- versions
for number in (0, -1, 999, 2**31, 2**62):
    case(f"opset {number}", partial(model, opset=number))
case("opset 1", partial(model, opset=1), None)
case("opset 7", partial(model, opset=7), Y)
case("no opset at all", changed(lambda m: m.ClearField("opset_import")), None)
case(
    "opset imported twice",
    changed(lambda m: m.opset_import.extend([helper.make_opsetid("", 13)])),
    Y,
)
for number in (0, 1, 2, 99, 2**62):
    case(
        f"ir_version {number}",
        set_field(lambda m: m, "ir_version", number),
        Y if number < 3 else None,
    )

# --- types
case("input without a type", changed(lambda m: m.graph.input[0].ClearField("type")))
case(
    "input without an element type",
    changed(lambda m: m.graph.input[0].type.tensor_type.ClearField("elem_type")),
)
case("input without a shape", lambda: model(inputs=[info("x", None)]), Y)
case("output without a type", changed(lambda m: m.graph.output[0].ClearField("type")), Y)
case("input without a name", lambda: model(inputs=[info("")]))
case("output without a name", lambda: model(outputs=[info("")]))
case("element type 999", set_field(lambda m: m.graph.input[0].type.tensor_type, "elem_type", 999))
case("element type -1", set_field(lambda m: m.graph.input[0].type.tensor_type, "elem_type", -1))
case("output of another type", lambda: model(outputs=[info("y", kind=TensorProto.INT64)]))
case("output of another rank", lambda: model(outputs=[info("y", (6,))]), Y)
case(
    "value_info of another type",
    changed(lambda m: m.graph.value_info.append(info("s", kind=TensorProto.INT32))),
)
case(
    "value_info of another shape",
    changed(lambda m: m.graph.value_info.append(info("s", (9, 9)))),
    Y,
)
case(
    "value_info of a value that is not there",
    changed(lambda m: m.graph.value_info.append(info("nosuch"))),
    Y,
)
case("dimension -1", lambda: model(inputs=[info("x", (-1, 3))]), Y)
case("dimension int64 minimum", lambda: model(inputs=[info("x", (-(2**63), 3))]), Y)
case("dimensions whose product overflows", lambda: model(inputs=[info("x", (2**40, 2**40))]))
case(
    "optional input",
    lambda: model(
        inputs=[
            onnx.helper.make_value_info(
                "x", helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, (2, 3)))
            )
        ]
    ),
)
case(
    "mixed types",
    lambda: model(
        [helper.make_node("Add", ["x", "i"], ["y"])],
        weights=[numpy_helper.from_array(np.ones(3, np.int64), "i")],
    ),
)


# --- initializers
def weight(**fields: Any) -> Callable[[], onnx.ModelProto]:
    def change(made: onnx.ModelProto) -> None:
        tensor = made.graph.initializer[0]
        for name, value in fields.items():
            tensor.ClearField(name)
            if isinstance(value, list):
                getattr(tensor, name).extend(value)
            else:
                setattr(tensor, name, value)

    return changed(change)


case("raw data too short", weight(raw_data=b"\0" * 11))
case("raw data too long", weight(raw_data=b"\0" * 16))
case("raw data empty", weight(raw_data=b""))
case("raw and typed data", weight(float_data=[1.0, 2.0, 3.0]), Y)
case("typed data too short", weight(raw_data=b"", float_data=[1.0]))
case("typed data of another kind", weight(raw_data=b"", int32_data=[1, 2, 3]))
case("dims negative", weight(dims=[-3]))
case("dims of zero", weight(dims=[0], raw_data=b""))
case("dims product overflows", weight(dims=[2**32, 2**32, 3]))
case("dims huge", weight(dims=[2**62]))
case("dims [0, 2^62]", weight(dims=[0, 2**62], raw_data=b""))
case("dims of 2,000 ones", weight(dims=[1] * 2000 + [3]))
case("initializer of unknown type", weight(data_type=999))
case("initializer of type 0", weight(data_type=0))
case("initializer is a string", weight(data_type=TensorProto.STRING, raw_data=b"\0" * 12))
case("initializer without a name", weight(name=""))
case(
    "string initializer not UTF-8",
    lambda: model(
        [helper.make_node("Identity", ["t"], ["y"])],
        outputs=[info("y", (1,), TensorProto.STRING)],
        weights=[
            TensorProto(name="t", data_type=TensorProto.STRING, dims=[1], string_data=[b"\xff\xfe"])
        ],
    ),
)
case(
    "segment in an initializer",
    changed(lambda m: setattr(m.graph.initializer[0].segment, "begin", 5)),
    Y,
)
case(
    "quantization annotation of nothing",
    changed(
        lambda m: m.graph.quantization_annotation.append(
            onnx.TensorAnnotation(tensor_name="nosuch")
        )
    ),
    Y,
)


def sparse(
    indices: Sequence[int], dims: Sequence[int], values: int = 1
) -> Callable[[], onnx.ModelProto]:
    def make() -> onnx.ModelProto:
        made = model(weights=[])
        found = made.graph.sparse_initializer.add()
        found.values.CopyFrom(numpy_helper.from_array(np.ones(values, np.float32), "b"))
        found.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64), "i"))
        found.dims.extend(dims)
        return made

    return make


case("sparse initializer", sparse([1], [3]), np.maximum(X + np.array([0, 1, 0], "f"), 0))
case("sparse index too large", sparse([3], [3]))
case("sparse index negative", sparse([-1], [3]))
case("sparse dims huge", sparse([0], [2**40, 2**20]))
case("sparse dims negative", sparse([0], [-3]))
case(
    "sparse indices out of order",
    sparse([2, 0], [3], 2),
    np.maximum(X + np.array([1, 0, 1], "f"), 0),
)
case("sparse counts differ", sparse([0, 1], [3], 1))

# --- names
for label, text in {
    "with a newline": "\n",
    "with a tab": "\t",
    "with a quote": "'\"",
    "with a path": "/../../etc/passwd",
    "with an escape": "\x1b[31m",
    "of 100,000 letters": "n" * 100_000,
    "in Cyrillic": "\u0430",
    "with a zero-width space": "\u200b",
    "turned right to left": "\u202e",
    "with braces": "{0}%s%n",
    "with a NUL": "\0",
    "of emoji": "\U0001f4a9",
    "with a backslash": "\\n\\u0041",
    "with spaces": "  ",
}.items():
    case(f"names {label}", _names(text), Y)


def confusable() -> onnx.ModelProto:
    """`a` of two alphabets: two values, not one."""
    return model(
        [
            helper.make_node("Neg", ["x"], ["a"]),
            helper.make_node("Abs", ["x"], ["\u0430"]),
            helper.make_node("Sub", ["a", "\u0430"], ["y"]),
        ],
        weights=[],
    )


case("names that look the same", confusable, -X - np.abs(X))
case(
    "name not UTF-8",
    lambda: model().SerializeToString().replace(b"\x03add", b"\x03a\xff\xff"),
    Y,
)
case(
    "input named like an attribute",
    lambda: model(
        [helper.make_node("Relu", ["__class__"], ["y"])], inputs=[info("__class__")], weights=[]
    ),
    np.maximum(X, 0),
    {"__class__": X},
)
