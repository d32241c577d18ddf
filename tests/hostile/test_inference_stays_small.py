"""Shape inference and folding write no more than a model's file lets one expect."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite
from ctx_formats.model_reader import read_model
from ort_lite.model import loader, shape_inference, vector_bounds
from ort_lite.model.function_expansion import MAX_GROWTH
from ort_lite.model.inference_bounds import MOST_DIMENSIONS, bounds_of
from ort_lite.model.short_symbols import LONGEST
from ort_lite.status import InvalidGraph
from ort_lite.transforms.fold_constants import FREE_GROWTH, TOTAL_GROWTH, Folder
from ort_lite.transforms.mutable_graph import MutableGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

CPU = ["CPUExecutionProvider"]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def info(name: str, shape: Sequence[int | str] | None = None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def chain(op: str, count: int, first: str = "x", last: str = "y") -> list[onnx.NodeProto]:
    names = [first, *(f"t{i}" for i in range(count - 1)), last]
    return [helper.make_node(op, [a], [b]) for a, b in pairwise(names)]


def model(
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int | str] = (2,),
    *,
    kind: int = FLOAT,
    out: int = FLOAT,
    functions: Sequence[onnx.FunctionProto] = (),
    **constants: np.ndarray,
) -> bytes:
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(
        nodes, "g", [info("x", shape, kind)], [info("y", None, out)], initializers
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("l", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)
    return bytes(made.SerializeToString())


def unsqueezes() -> bytes:
    nodes = [
        helper.make_node("Unsqueeze", [a, "axes"], [b])
        for a, b in ((f"t{i - 1}" if i else "x", f"t{i}") for i in range(1500))
    ]
    return model([*nodes, helper.make_node("Identity", ["t1499"], ["y"])], axes=np.int64([0]))


def gathers() -> bytes:
    nodes = [
        helper.make_node("Gather", [a, a], [b])
        for a, b in ((f"t{i - 1}" if i else "x", f"t{i}") for i in range(40))
    ]
    last = helper.make_node("Identity", ["t39"], ["y"])
    return model([*nodes, last], (1, 1), kind=INT64, out=INT64)


def doubled_shape() -> bytes:
    nodes = [helper.make_node("Constant", [], ["c0"], value_ints=[1])]
    nodes += [helper.make_node("Concat", [f"c{i}"] * 2, [f"c{i + 1}"], axis=0) for i in range(40)]
    return model([*nodes, helper.make_node("Expand", ["x", "c40"], ["y"])])


@pytest.mark.parametrize(
    "data",
    [model(chain("Sin", 1100), (1,) * 1000), unsqueezes(), gathers(), doubled_shape()],
    ids=["a high rank passed on", "a rank that grows", "a rank that doubles", "a doubled shape"],
)
def test_shapes_that_would_fill_the_memory_are_refused(data: bytes) -> None:
    says = rf"have up to \d+ dimensions altogether, at most {MOST_DIMENSIONS} are accepted"
    with pytest.raises(InvalidGraph, match=says):
        ort_lite.InferenceSession(data, providers=CPU)


def test_ranks_that_go_up_and_down_are_not_added_up() -> None:
    """Half a million dimensions if Squeeze, Reduce, Gather and Reshape did not count."""
    nodes = []
    at = "x"
    for i in range(400):
        steps = (
            helper.make_node("Unsqueeze", [at, "two"], [f"a{i}"]),
            helper.make_node("ReduceMax", [f"a{i}", "first"], [f"b{i}"], keepdims=0),
            helper.make_node("Squeeze", [f"b{i}", "first"], [f"c{i}"]),
            helper.make_node("Unsqueeze", [f"c{i}", "first"], [f"d{i}"]),
            helper.make_node("Gather", [f"d{i}", "zero"], [f"e{i}"], axis=0),
            helper.make_node("Einsum", [f"e{i}"], [f"f{i}"], equation="i -> i"),
        )
        nodes += steps
        at = f"f{i}"
    nodes.append(helper.make_node("Identity", [at], ["y"]))
    two, first = np.int64([0, 1]), np.int64([0])
    data = model(nodes, two=two, first=first, zero=np.array(0, np.int64))
    found = bounds_of(read_model(memoryview(data)).graph)
    assert max(found.ranks.values()) == 3
    with ort_lite.InferenceSession(data, providers=CPU) as session:
        x = np.float32([1, 2])
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x)


def test_long_names_of_dimensions_are_not_repeated_in_every_shape() -> None:
    long = "d" * 5000
    data = model(chain("Sin", 50), (long, "short"))
    found = loader.infer_model(read_model(memoryview(data)), {}).graph
    symbols = [dim for info in found.value_info.values() for dim in info.type.shape]  # type: ignore[union-attr] # tensors
    assert len(symbols) == 2 * 49
    assert max(map(len, map(str, symbols))) <= LONGEST
    with ort_lite.InferenceSession(data, providers=CPU) as session:
        assert session.get_inputs()[0].shape == [long, "short"]
        assert session.get_outputs()[0].shape == [long, "short"]
        assert session.run(None, {"x": np.zeros((3, 4), np.float32)})[0].shape == (3, 4)


class _Inference:
    """onnx's, which notes whether elements of shapes were to be followed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.followed: list[bool] = []
        real = shape_inference.onnx_extension().shape_inference  # type: ignore[attr-defined] # patched where it is used
        self._infer, self.InferenceError = real.infer_shapes, real.InferenceError
        noting = SimpleNamespace(shape_inference=self)
        monkeypatch.setattr(shape_inference, "onnx_extension", lambda: noting)

    def infer_shapes(self, data: bytes, check: bool, strict: bool, follow: bool) -> bytes:  # noqa: FBT001 - onnx's
        self.followed.append(follow)
        return bytes(self._infer(data, check, strict, follow))


def casts(first: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("Cast", [first], ["u"], to=INT64),
        helper.make_node("ReduceMax", ["u"], ["v"], keepdims=0),
        helper.make_node("Cast", ["v"], ["w"], to=FLOAT),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]


def powers() -> list[onnx.NodeProto]:
    return [helper.make_node("Mul", [f"s{i}"] * 2, [f"s{i + 1}"]) for i in range(4)]


LONG_VECTORS = {
    "of a constant size": model(
        [helper.make_node("ConstantOfShape", ["n"], ["t"]), *casts("t")], ("n",),
        n=np.int64([1 << 40]),
    ),
    "of a size that is computed": model(
        [helper.make_node("Shape", ["x"], ["s0"]), *powers(),
         helper.make_node("ConstantOfShape", ["s4"], ["t"]), *casts("t")], (10_000,),
    ),
    "of a size that is counted": model(
        [helper.make_node("Shape", ["x"], ["s0"]), *powers(),
         helper.make_node("Squeeze", ["s4"], ["s"]),
         helper.make_node("Range", ["zero", "s", "one"], ["t"]), *casts("t")], (10_000,),
        zero=np.array(0, np.int64), one=np.array(1, np.int64),
    ),
    "that is flattened": model(
        [helper.make_node("Size", ["x"], ["n"]),
         helper.make_node("Unsqueeze", ["n", "axes"], ["q"]),
         helper.make_node("Concat", ["q"], ["flat"], axis=0),
         helper.make_node("Reshape", ["x", "flat"], ["t"]), *casts("t")], (1 << 20, 1 << 20),
        axes=np.int64([0]),
    ),
    "that is an input": model([helper.make_node("Shape", ["x"], ["q"]), *casts("x")], (1 << 40,)),
}  # fmt: skip


@pytest.mark.parametrize("data", LONG_VECTORS.values(), ids=LONG_VECTORS)
def test_elements_of_long_vectors_are_not_followed(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    inference = _Inference(monkeypatch)
    loader.infer_model(read_model(memoryview(data)), {})
    assert inference.followed
    assert not any(inference.followed)


def test_elements_of_shapes_are_followed_where_that_finds_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Concat", ["n", "four"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    data = model(nodes, ("batch", 2, 2), first=np.int64([0]), four=np.int64([4]))
    inference = _Inference(monkeypatch)
    found = loader.infer_model(read_model(memoryview(data)), {}).graph
    assert True in inference.followed
    assert found.outputs[0].type.shape == ("batch", 4)  # type: ignore[union-attr] # a tensor


def test_a_shape_of_several_sizes_makes_no_long_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `unflatten` is exported: how many sizes come before the last two is computed."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Shape", ["s"], ["rank"]),
        helper.make_node("Sub", ["rank", "one"], ["end"]),
        helper.make_node("Slice", ["s", "zero", "end"], ["head"]),
        helper.make_node("Concat", ["head", "last"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["t"]),
        helper.make_node("Unsqueeze", ["t", "zero"], ["y"]),
    ]
    constants = {"one": [1], "zero": [0], "last": [1 << 10, 1 << 10]}
    data = model(nodes, ("n", 1 << 20), **{n: np.int64(v) for n, v in constants.items()})
    inference = _Inference(monkeypatch)
    loader.infer_model(read_model(memoryview(data)), {})
    assert True in inference.followed


def test_lengths_that_double_stay_small_numbers() -> None:
    pairs = [helper.make_node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(500)]
    data = model([*pairs, helper.make_node("Sin", ["x"], ["y"])], s0=np.int64([1, 2]))
    walk = vector_bounds._Walk({})
    walk.graph(read_model(memoryview(data)).graph)
    assert max(walk.least.values()).bit_length() <= 64


def shared_constant(count: int) -> bytes:
    """`count` results of the size of one constant, each made from it."""
    nodes = []
    for i in range(count):
        nodes += [
            helper.make_node("Constant", [], [f"c{i}"], value_float=float(i)),
            helper.make_node("Add", ["w", f"c{i}"], [f"a{i}"]),
            helper.make_node("Add", ["x", f"a{i}"], [f"o{i}"]),
        ]
    nodes.append(helper.make_node("Sum", [f"o{i}" for i in range(count)], ["y"]))
    return model(nodes, (1,), w=np.zeros(1 << 20, np.float32))


def test_one_constant_is_folded_into_so_many_others_only(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    computed = Folder._compute

    def noted(self: Folder, *arguments: Any) -> Any:
        values = computed(self, *arguments)
        made.append(sum(v.nbytes for v in (values or {}).values()))
        return values

    monkeypatch.setattr(Folder, "_compute", noted)
    data = shared_constant(20)
    with ort_lite.InferenceSession(data, providers=CPU) as session:
        found = session.run(None, {"x": np.float32([1])})[0]
    assert found[:3].tolist() == [sum(range(20)) + 20] * 3
    assert sum(made) <= TOTAL_GROWTH + (1 << 22) + FREE_GROWTH


def test_a_weight_of_many_convolutions_is_not_copied_for_each(tmp_path: Any) -> None:
    weight = np.ones((8, 8, 16, 8), np.float32)
    nodes = []
    for i in range(6):
        nodes += [
            helper.make_node("Conv", ["x", "w"], [f"c{i}"]),
            helper.make_node("BatchNormalization", [f"c{i}", *"sbmv"], [f"o{i}"], epsilon=i + 1e-3),
        ]
    nodes.append(helper.make_node("Sum", [f"o{i}" for i in range(6)], ["y"]))
    one = np.ones(8, np.float32)
    data = model(nodes, (1, 8, 16, 8), w=weight, s=one, b=one, m=one, v=one)
    options = ort_lite.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.add_session_config_entry("session.save_model_format", "ONNX")
    ort_lite.InferenceSession(data, options, providers=CPU)
    assert (tmp_path / "optimized.onnx").stat().st_size < 2 * weight.nbytes


def function(nodes: list[onnx.NodeProto], *attributes: str) -> onnx.FunctionProto:
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_function("l", "f", ["a"], ["b"], nodes, opsets, attributes)


def calls(count: int, **attributes: Any) -> list[onnx.NodeProto]:
    made = chain("f", count)
    for node in made:
        node.domain = "l"
        node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())
    return made


def holding(value: np.ndarray) -> onnx.FunctionProto:
    constant = helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(value))
    total = helper.make_node("ReduceSum", ["w"], ["s"], keepdims=0)
    return function([constant, total, helper.make_node("Add", ["a", "s"], ["b"])])


def repeating(times: int) -> onnx.FunctionProto:
    nodes = []
    for i in range(times):
        constant = helper.make_node("Constant", [], [f"w{i}"])
        reference = constant.attribute.add(name="value_floats", ref_attr_name="v")
        reference.type = onnx.AttributeProto.FLOATS
        nodes.append(constant)
    nodes.append(helper.make_node("Sum", ["a", *(f"w{i}" for i in range(times))], ["b"]))
    return function(nodes, "v")


def naming(times: int) -> onnx.FunctionProto:
    nodes = [helper.make_node("Sin", ["a"], [f"w{i}"]) for i in range(times)]
    return function([*nodes, helper.make_node("Sum", [f"w{i}" for i in range(times)], ["b"])])


TOO_LARGE = {
    "a constant in the function": (calls(2000), holding(np.zeros(1 << 14, np.float32)), "x"),
    "an attribute of the call": (calls(1, v=[1.0] * (1 << 15)), repeating(2000), "x"),
    "a name of the call": (calls(1), naming(2000), "x" * (1 << 16)),
}


@pytest.mark.parametrize(("nodes", "called", "name"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_functions_are_not_inlined_into_more_bytes_than_fit(
    nodes: list[onnx.NodeProto], called: onnx.FunctionProto, name: str
) -> None:
    proto = onnx.load_model_from_string(model(nodes, (1,), functions=[called]))
    proto.graph.input[0].name = proto.graph.node[0].input[0] = name
    with pytest.raises(InvalidGraph, match=r"graph takes \d+ bytes, at most \d+ are accepted"):
        ort_lite.InferenceSession(proto.SerializeToString(), providers=CPU)
    assert proto.ByteSize() < MAX_GROWTH / 20


def test_functions_with_a_large_constant_are_inlined_a_few_times() -> None:
    called = holding(np.ones(1 << 14, np.float32))
    data = model(calls(20), (1,), functions=[called])
    with ort_lite.InferenceSession(data, providers=CPU) as session:
        assert session.run(None, {"x": np.float32([0])})[0].tolist() == [20 * (1 << 14)]


def test_a_node_is_rewritten_once_for_all_its_equal_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 300
    nodes = [helper.make_node("Cos", ["x"], [f"o{i}"]) for i in range(count)]
    nodes.append(helper.make_node("Sum", [f"o{i}" for i in range(count)], ["y"]))
    written: list[int] = []
    real = MutableGraph.replace

    def noted(self: MutableGraph, index: int, node: Any) -> None:
        written.append(len(node.inputs))
        real(self, index, node)

    monkeypatch.setattr(MutableGraph, "replace", noted)
    with ort_lite.InferenceSession(model(nodes), providers=CPU) as session:
        found = session.run(None, {"x": np.float32([0, 0])})[0]
    assert found.tolist() == [count, count]
    assert 0 < sum(written) <= 2 * count
