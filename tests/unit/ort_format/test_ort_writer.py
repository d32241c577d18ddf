"""The writer of the ORT format: onnxruntime loads and runs what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper
from ort_models import CPU, mixed, run_in_onnxruntime, save_by_onnxruntime, with_version
from small_models import branching, feed, mlp, sandwich

import ort_lite as ort
from ctx_formats.errors import FormatError
from ctx_formats.flatbuffer_writer import (
    FlatBufferWriter,
    Numbers,
    Run,
    Scalar,
    TableFields,
)
from ctx_formats.ort_model_error import OrtModelError
from ctx_formats.ort_model_reader import IDENTIFIER, read_ort_model
from ort_lite.model import loader
from ort_lite.model.ort_schemas import find_ort_schema
from ort_lite.start.ort_conversion import encode_ort

if TYPE_CHECKING:
    from pathlib import Path


def written(proto: onnx.ModelProto) -> bytes:
    return b"".join(encode_ort(loader.load(proto.SerializeToString(), ort.SessionOptions()).model))


@pytest.mark.parametrize("make", [mlp, branching, sandwich])
def test_onnxruntime_computes_the_same_from_both_formats(make: object) -> None:
    proto = make()
    fed = feed(proto)
    found = run_in_onnxruntime(written(proto), fed)
    for mine, theirs in zip(found, run_in_onnxruntime(proto.SerializeToString(), fed), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_a_file_says_of_operators_what_a_file_of_onnxruntime_says() -> None:
    proto, fed = mixed()
    mine = read_ort_model(memoryview(written(proto))).model
    theirs = read_ort_model(memoryview(save_by_onnxruntime(proto))).model
    assert mine.kernel_types.since_versions == theirs.kernel_types.since_versions
    assert mine.kernel_types.places == theirs.kernel_types.places
    nodes = {n.outputs: n for n in theirs.graph.nodes}
    for node in mine.graph.nodes:
        plain = {k: a.value for k, a in node.attributes.items() if k.endswith("branch") is False}
        assert plain == {
            k: a.value for k, a in nodes[node.outputs].attributes.items() if k in plain
        }
        assert node.attributes.keys() == nodes[node.outputs].attributes.keys()
    for mine_out, theirs_out in zip(
        run_in_onnxruntime(written(proto), fed),
        run_in_onnxruntime(proto.SerializeToString(), fed),
        strict=True,
    ):
        np.testing.assert_array_equal(mine_out, theirs_out)


def test_the_same_model_gives_the_same_bytes() -> None:
    proto, _ = mixed()
    assert written(proto) == written(proto)


def test_weights_are_aligned_and_not_copied() -> None:
    loaded = loader.load(mixed()[0].SerializeToString(), ort.SessionOptions())
    pieces = list(encode_ort(loaded.model))
    views = [piece for piece in pieces if isinstance(piece, memoryview)]
    assert any(view.obj is loaded.data.view.obj for view in views)
    at = 0
    for piece in pieces:
        if isinstance(piece, memoryview):
            assert at % 64 == 0
        at += len(piece)


def test_an_old_file_is_upgraded(tmp_path: Path) -> None:
    proto, fed = mixed()
    old = with_version(save_by_onnxruntime(proto), "4", resolver=False)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "new.ort")
    ort.InferenceSession(old, options, providers=CPU).close()
    new = (tmp_path / "new.ort").read_bytes()
    assert read_ort_model(memoryview(new)).version == 6
    for mine, theirs in zip(
        run_in_onnxruntime(new, fed), run_in_onnxruntime(old, fed), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


@pytest.mark.parametrize("op_type", ["Mish", "HardSwish"])
def test_operators_that_onnxruntime_has_no_kernel_for_are_inlined(op_type: str) -> None:
    proto = onnx.parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[4] x) => (float[4] y) {{ y = {op_type}(x) }}
        """
    )
    fed = {"x": np.linspace(-4, 4, 4, dtype=np.float32)}
    data = written(proto)
    assert op_type not in {n.op_type for n in read_ort_model(memoryview(data)).model.graph.nodes}
    found, expected = (run_in_onnxruntime(d, fed)[0] for d in (data, proto.SerializeToString()))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


ATTENTION = """
    <ir_version: 10, opset_import: ["" : 26]>
    g (float[1, 2, 4, 8] q, float[1, 2, 6, 8] k, float[1, 2, 6, 8] v, float[4, 6] m, int64[1] n)
        => (float[1, 2, 4, 8] y)
    { y = Attention <is_causal = 1> (q, k, v, m, , , n) }
"""


def test_functions_of_operators_with_omitted_inputs_are_inlined() -> None:
    proto = onnx.parser.parse_model(ATTENTION)
    random = np.random.default_rng(0)
    shapes = {"q": (1, 2, 4, 8), "k": (1, 2, 6, 8), "v": (1, 2, 6, 8), "m": (4, 6)}
    fed = {name: random.random(shape, np.float32) for name, shape in shapes.items()}
    fed["n"] = np.array([6])
    (mine,) = run_in_onnxruntime(written(proto), fed)
    (theirs,) = run_in_onnxruntime(proto.SerializeToString(), fed)
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)


UNTYPED_BODY = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (int64 n, bool c, float[2] start, float[3, 2] rows) => (float[2] last, float[M, 2] all)
    {
      seen, all = Scan <num_scan_inputs = 1, body = step (sum, row) => (next, copy) {
        next = Add (sum, row)
        copy = CastLike (next, row)
      }> (start, rows)
      last = Loop <body = turn (i, more, state) => (again, doubled) {
        again = Identity (more)
        doubled = Add (state, state)
      }> (n, c, seen)
    }
"""


def test_inputs_of_bodies_without_a_type_get_that_of_what_is_passed() -> None:
    proto = onnx.parser.parse_model(UNTYPED_BODY)
    scan, loop = proto.graph.node
    states = next(attribute for attribute in scan.attribute if attribute.HasField("g")).g.input
    for info in (*states, *loop.attribute[0].g.input[2:]):
        info.ClearField("type")
    loop.attribute[0].g.input[0].type.CopyFrom(proto.graph.input[0].type)
    loop.attribute[0].g.input[1].type.CopyFrom(proto.graph.input[1].type)
    fed = {
        "n": np.array(3),
        "c": np.ones((), np.bool_),
        "start": np.ones(2, np.float32),
        "rows": np.arange(6, dtype=np.float32).reshape(3, 2),
    }
    expected = run_in_onnxruntime(proto.SerializeToString(), fed)
    for mine, theirs in zip(run_in_onnxruntime(written(proto), fed), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_function_that_onnx_cannot_expand_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("Type unknown")

    monkeypatch.setattr("onnx.inliner.inline_selected_functions", fail)
    with pytest.raises(ort.Fail, match="runs Attention as a function, and onnx cannot expand"):
        written(onnx.parser.parse_model(ATTENTION))


def test_float16_nodes_without_a_kernel_of_onnxruntime_compute_in_float32() -> None:
    """Loading ONNX, onnxruntime inserts the casts; loading the ORT format, it does not."""
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float16[3] x, bool c) => (float16[3] y)
        {
          a = Mul (x, x)
          b = Sub (a, x)
          y = If (c) <then_branch = yes () => (float16[3] d) { d = Div (b, x) },
                      else_branch = no () => (float16[3] e) { e = Identity (b) }>
        }
        """
    )
    for flag in (True, False):
        fed = {"x": np.array([1, 2, 3], np.float16), "c": np.array(flag)}
        found = run_in_onnxruntime(written(proto), fed)
        np.testing.assert_array_equal(found[0], [0, 1, 2] if flag else [0, 2, 6])


def test_constants_that_are_outputs_are_initializers() -> None:
    """onnxruntime has no kernel for Constant, which a body may return."""
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]> g (bool c) => (float[2] y) {
          y = If (c) <
            then_branch = yes () => (float[2] a) { a = Constant <value_floats = [1.0, 2.0]> () },
            else_branch = no () => (float[2] b) { b = Constant <value_floats = [3.0, 4.0]> () }
          >
        }
        """
    )
    for flag, expected in ((True, [1, 2]), (False, [3, 4])):
        fed = {"c": np.array(flag)}
        np.testing.assert_array_equal(run_in_onnxruntime(written(proto), fed)[0], expected)


def test_functions_of_the_model_are_inlined() -> None:
    proto = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[2] x) => (float[2] y) { y = own.twice (x) }
        <domain: "own", opset_import: ["" : 17]> twice (a) => (b) { b = Add (a, a) }
        """
    )
    fed = {"x": np.array([1, 2], np.float32)}
    np.testing.assert_array_equal(run_in_onnxruntime(written(proto), fed)[0], [2, 4])


def test_operators_of_com_microsoft_are_written_with_their_own_schemas() -> None:
    saved = save_by_onnxruntime(mlp(), onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    model = read_ort_model(memoryview(saved)).model
    assert [n.op_type for n in model.graph.nodes] == ["FusedGemm"]
    again = b"".join(encode_ort(model))
    assert read_ort_model(memoryview(again)).model.kernel_types == model.kernel_types
    found, expected = (run_in_onnxruntime(d, feed(mlp()))[0] for d in (again, saved))
    np.testing.assert_array_equal(found, expected)


def test_the_recorded_schemas_are_those_of_onnxruntime() -> None:
    binding = onnxruntime.capi.onnxruntime_pybind11_state
    for schema in binding.get_all_operator_schema():
        if schema.domain == "com.microsoft":
            known = find_ort_schema("com.microsoft", schema.name, 1)
            assert known.operator.since_version == schema.since_version
            assert known.operator.formal_inputs == len(schema.inputs), schema.name


def of_type(data_type: int) -> onnx.ModelProto:
    raw = helper.make_tensor("w", data_type, [2], [1, 2])
    node = helper.make_node("Identity", ["w"], ["y"])
    out = helper.make_tensor_value_info("y", data_type, [2])
    graph = helper.make_graph([node], "g", [], [out], [raw])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


@pytest.mark.parametrize("name", ["INT4", "UINT4", "COMPLEX64"])
def test_types_that_onnxruntime_does_not_load_are_refused_before_a_byte(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "m.onnx").write_bytes(of_type(TensorProto.DataType.Value(name)).SerializeToString())
    model = loader.load(str(tmp_path / "m.onnx"), ort.SessionOptions()).model
    with pytest.raises(ort.Fail, match=f"element type {name}, expected a type of format version 6"):
        encode_ort(model)


def test_optional_types_and_unknown_operators_are_refused() -> None:
    optional = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y)
        { o = Optional (x)  y = OptionalGetElement (o) }
        """
    )
    with pytest.raises(ort.Fail, match="value 'o': type optional, expected a tensor"):
        written(optional)
    unknown = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> g (float[2] x) => (float[2] y) '
        "{ y = own.Thing (x) }"
    )
    with pytest.raises(ort.Fail, match="no operator Thing of domain own"):
        written(unknown)


def test_more_than_a_flatbuffer_may_have_is_refused() -> None:
    one = memoryview(bytearray(1 << 20))
    writer = FlatBufferWriter(IDENTIFIER)
    with pytest.raises(FormatError, match="more than 2 GiB"):
        writer.finish(TableFields({index: Run(one) for index in range(2100)}))


# Files with one mistake each, and onnxruntime's words for it


def dense(name: bytes = b"W", size: int = 8, **fields: object) -> TableFields:
    tensor = {0: name, 2: Numbers("q", [2]), 3: Scalar("i", 1), 4: Run(memoryview(bytes(size)))}
    return TableFields({**tensor, **{int(k[1:]): v for k, v in fields.items()}})


def value(name: bytes) -> TableFields:
    tensor = TableFields({0: Scalar("i", 1)})
    return TableFields({0: name, 2: TableFields({1: Scalar("B", 1), 2: tensor})})


def file_with(
    graph: dict[int, object] | None = None,
    node: dict[int, object] | None = None,
    root: dict[int, object] | None = None,
) -> bytes:
    """Y = Add (X, W), with other fields of the graph, of the node or of the root."""
    fields = {
        0: b"add", 2: b"", 3: Scalar("i", 14), 5: b"Add", 8: [b"X", b"W"], 9: [b"Y"],
        10: [], 11: Numbers("i", [1, 1]), 12: [], **(node or {}),
    }  # fmt: skip
    body = {
        0: [dense()], 1: [value(name) for name in (b"X", b"W", b"Y")],
        2: [TableFields({k: v for k, v in fields.items() if v is not None})],
        3: Scalar("I", 1), 5: [b"X"], 6: [b"Y"], **(graph or {}),
    }  # fmt: skip
    model = {
        0: Scalar("q", 8),
        1: [TableFields({0: b"", 1: Scalar("q", 17)})],
        7: TableFields({k: v for k, v in body.items() if v is not None}),
    }
    names = TableFields({0: b"T", 1: [TableFields({}), TableFields({1: Scalar("I", 1)})]})
    ops = TableFields({0: [TableFields({0: b":Add:14", 1: [names]})]})
    whole = {0: b"6", 1: TableFields(model), 3: ops, **(root or {})}
    tables = TableFields({k: v for k, v in whole.items() if v is not None})
    return b"".join(FlatBufferWriter(IDENTIFIER).finish(tables))


MISTAKES = {
    "Serialized version info is null. Invalid ORT format model.": file_with(root={0: None}),
    "Missing Model. Invalid ORT format model.": file_with(root={1: None}),
    "Graph references unknown NodeArg 'Q'. Invalid ORT format model.": file_with(graph={5: [b"Q"]}),
    "Duplicate NodeArg name 'X'. Invalid ORT format model.": file_with(
        graph={1: [value(n) for n in (b"X", b"X", b"W", b"Y")]}
    ),
    "Null type info for X. Invalid ORT format model.": file_with(
        graph={1: [TableFields({0: b"X"}), value(b"W"), value(b"Y")]}
    ),
    "Initializer raw data size mismatch for tensor 'W'. Expected 8 bytes but found 4. Invalid ORT "
    "format model.": file_with(graph={0: [dense(size=4)]}),
    "Missing raw data for initializer. Invalid ORT format model.": file_with(
        graph={0: [TableFields({0: b"W", 2: Numbers("q", [2]), 3: Scalar("i", 1)})]}
    ),
    "Tensor has external data but a data reader was not provided.": file_with(
        graph={
            0: [TableFields({0: b"W", 2: Numbers("q", [2]), 3: Scalar("i", 1), 6: Scalar("q", 64)})]
        }
    ),
    "Invalid negative dimension -40 for tensor 'W' with data type 'FLOAT'. Invalid ORT format "
    "model.": file_with(graph={0: [dense(f2=Numbers("q", [-40]))]}),
    "Tensor element count overflows size_t for tensor 'W' with data type 'FLOAT'. Invalid ORT "
    "format model.": file_with(graph={0: [dense(f2=Numbers("q", [1 << 40, 1 << 40]))]}),
    "Unsupported tensor data type '<unknown>' for tensor 'W'. Invalid ORT format model.": file_with(
        graph={0: [dense(f3=Scalar("i", 22))]}
    ),
    "Node index 100000 is unreasonably large relative to the number of entries (1). Invalid ORT "
    "format model.": file_with(node={4: Scalar("I", 100000)}),
    "Serialized max node index is smaller than the required node slot count. Invalid ORT format "
    "model.": file_with(graph={3: None}),
    "LoadNodeArgsFromOrtFormat: Node [add] op_type [Add], could not find NodeArg A": file_with(
        node={8: [b"A", b"W"]}
    ),
    "Node::LoadFromOrtFormat, input_arg_counts is missing": file_with(node={11: None}),
    "Node::LoadFromOrtFormat, input_arg_counts total (10) does not match number of explicit inputs "
    "(2) for node add. Invalid ORT format model.": file_with(node={11: Numbers("i", [5, 5])}),
    "fbs_node_arg_names cannot be null": file_with(node={12: None}),
    "NodeEdge references missing node 5. Invalid ORT format model.": file_with(
        graph={3: Scalar("I", 6), 4: [TableFields({0: Scalar("I", 5)})]}
    ),
    "Invalid OpIdentifier string: Add:14 Invalid ORT format model.": file_with(
        root={3: TableFields({0: [TableFields({0: b"Add:14", 1: []})]})}
    ),
    "Failed to parse since_version from x Invalid ORT format model.": file_with(
        root={3: TableFields({0: [TableFields({0: b":Add:x", 1: []})]})}
    ),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_refused_with_the_words_of_onnxruntime(message: str) -> None:
    with pytest.raises(OrtModelError) as error:
        read_ort_model(memoryview(MISTAKES[message]))
    assert error.value.message == message
    with pytest.raises(ort.OrtLiteError) as refusal:
        ort.InferenceSession(MISTAKES[message], providers=CPU)
    assert message in str(refusal.value)
    if "OpIdentifier" in message or "since_version" in message:
        return  # onnxruntime prefixes these
    with pytest.raises(Exception, match=r"\[ONNXRuntimeError\]") as theirs:
        run_in_onnxruntime(MISTAKES[message], {"X": np.zeros(2, np.float32)})
    assert message.removesuffix(" Invalid ORT format model.") in str(theirs.value)


def test_the_file_without_a_mistake_runs_here_and_there() -> None:
    fed = {"X": np.array([1, 2], np.float32)}
    np.testing.assert_array_equal(run_in_onnxruntime(file_with(), fed)[0], [1, 2])
    with ort.InferenceSession(file_with(), providers=CPU) as session:
        np.testing.assert_array_equal(session.run(None, fed)[0], [1, 2])
