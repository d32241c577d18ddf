"""Outputs of the CPU EP that kernels write to memory of the caller's, against onnxruntime."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from small_models import model

import ort_lite as ort
from ort_lite.ep import CopyCounts, SupportsBoundRuns

if TYPE_CHECKING:
    from collections.abc import Sequence

CPU = ["CPUExecutionProvider"]
SHAPE = [256, 192]
X = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
W = np.random.default_rng(2).standard_normal((192, 192)).astype(np.float32)
Array = np.ndarray[Any, np.dtype[Any]]


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def made_of(nodes: Sequence[Any], outputs: Sequence[str], shape: Sequence[Any] = SHAPE) -> bytes:
    made = model(nodes, [("x", SHAPE)], [(name, shape) for name in outputs], {"w": W})
    return bytes(made.SerializeToString())


def copies_of(session: ort.InferenceSession) -> CopyCounts:
    (partition,) = session._present().prepared.partitions
    assert isinstance(partition.compiled, SupportsBoundRuns)
    return partition.compiled.copy_counts()


def expected_of(content: bytes, x: Array = X) -> list[Array]:
    answers: list[Array] = onnxruntime.InferenceSession(content, providers=CPU).run(None, {"x": x})
    return answers


def run_to(
    session: ort.InferenceSession, places: dict[str, Array], x: Array = X
) -> list[ort.OrtValue]:
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    for name, place in places.items():
        binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(place))
    session.run_with_iobinding(binding)
    outputs: list[ort.OrtValue] = binding.get_outputs()
    return outputs


OPERATORS = {
    "MatMul": [node("MatMul", "x w", "y")],
    "Add": [node("Neg", "x", "t"), node("Add", "x t", "s"), node("Add", "s x", "y")],
    "Exp": [node("Exp", "x", "y")],
    "Softmax": [node("Softmax", "x", "y")],
    "Concat": [node("Split", "x", "a b", axis=0), node("Concat", "b a", "y", axis=0)],
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_bound_output_is_computed_in_place(name: str) -> None:
    content = made_of(OPERATORS[name], ["y"])
    session = ort.InferenceSession(content, providers=CPU)
    place = np.full(SHAPE, np.nan, np.float32)
    (value,) = run_to(session, {"y": place})
    np.testing.assert_allclose(place, expected_of(content)[0], rtol=1e-5, atol=1e-5)
    assert value.data_ptr() == place.ctypes.data
    assert copies_of(session) == CopyCounts()


def test_outputs_of_one_node_are_each_in_their_place() -> None:
    """Splits give views of the input, so that both are copied, and neither in the other's place."""
    nodes = [node("Exp", "x", "e"), node("Split", "e", "y z", axis=0)]
    half = [128, 192]
    content = made_of(nodes, ["y", "z"], half)
    session = ort.InferenceSession(content, providers=CPU)
    places = {name: np.zeros(half, np.float32) for name in ("z", "y")}
    run_to(session, places)
    for name, expected in zip("yz", expected_of(content), strict=True):
        np.testing.assert_allclose(places[name], expected, rtol=1e-5)
    assert copies_of(session).to_host == 2


def test_an_output_that_is_read_again_stays_right() -> None:
    nodes = [node("Exp", "x", "y"), node("MatMul", "y w", "z"), node("Mul", "z y", "u")]
    content = made_of(nodes, ["y", "z", "u"])
    session = ort.InferenceSession(content, providers=CPU)
    places = {name: np.zeros(SHAPE, np.float32) for name in "yzu"}
    run_to(session, places)
    for name, expected in zip("yzu", expected_of(content), strict=True):
        np.testing.assert_allclose(places[name], expected, rtol=1e-4, atol=1e-3)
    assert copies_of(session) == CopyCounts()


@pytest.mark.parametrize("start", [0, 100])
def test_memory_of_an_input_is_written_after_it_is_read(start: int) -> None:
    """A place that is an input, whole or in part."""
    content = made_of(
        [node("Exp", "x", "e"), node("MatMul", "e w", "m"), node("Add", "m x", "y")], ["y"]
    )
    session = ort.InferenceSession(content, providers=CPU)
    memory = np.zeros((456, 192), np.float32)
    x, place = memory[:256], memory[start : start + 256]
    x[:] = X
    run_to(session, {"y": place}, x)
    np.testing.assert_allclose(place, expected_of(content)[0], rtol=1e-4, atol=1e-3)
    assert copies_of(session).to_host == 1


def test_places_that_overlap_leave_other_outputs_right() -> None:
    nodes = [node("Exp", "x", "y"), node("Neg", "x", "z"), node("Mul", "z y", "u")]
    content = made_of(nodes, ["y", "z", "u"])
    session = ort.InferenceSession(content, providers=CPU)
    memory, u = np.zeros((300, 192), np.float32), np.zeros(SHAPE, np.float32)
    run_to(session, {"y": memory[:256], "z": memory[44:], "u": u})
    np.testing.assert_allclose(u, expected_of(content)[2], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(memory[44:], -X)


def test_an_output_that_is_not_bound_is_not_in_the_place_of_another() -> None:
    nodes = [node("Split", "x", "a b", axis=0), node("Exp", "a", "y"), node("Exp", "b", "z")]
    half = [128, 192]
    content = made_of(nodes, ["y", "z"], half)
    session = ort.InferenceSession(content, providers=CPU)
    place = np.zeros(half, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    binding.bind_ortvalue_output("z", ort.OrtValue.ortvalue_from_numpy(place))
    session.run_with_iobinding(binding)
    y, z = (value.numpy() for value in binding.get_outputs())
    assert not np.shares_memory(y, z)
    for mine, expected in zip((y, place), expected_of(content), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5)


def test_an_output_of_another_shape_is_refused() -> None:
    session = ort.InferenceSession(made_of(OPERATORS["Exp"], ["y"]), providers=CPU)
    with pytest.raises(ort.InvalidArgument, match=r"output y is float32\[256, 192\], the memory"):
        run_to(session, {"y": np.zeros((255, 192), np.float32)})


def test_small_outputs_and_strided_places_are_copied() -> None:
    content = made_of(OPERATORS["Exp"], ["y"])
    session = ort.InferenceSession(content, providers=CPU)
    place = np.zeros((256, 384), np.float32)
    value = ort.OrtValue.ortvalue_from_numpy(np.zeros(SHAPE, np.float32))
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y", "cpu", 0, np.float32, SHAPE, place.ctypes.data)
    session.run_with_iobinding(binding)
    expected = expected_of(content)[0]
    np.testing.assert_allclose(place.reshape(-1)[: expected.size], expected.reshape(-1), rtol=1e-5)
    assert copies_of(session) == CopyCounts(), "memory by its address"
    del value


def test_threads_write_to_places_of_their_own() -> None:
    content = made_of([node("Exp", "x", "e"), node("MatMul", "e w", "y")], ["y"])
    session = ort.InferenceSession(content, providers=CPU)

    def run(number: int) -> bool:
        x, place = X / (number + 1), np.zeros(SHAPE, np.float32)
        run_to(session, {"y": place}, x)
        return bool(np.allclose(place, np.exp(x) @ W, rtol=1e-3, atol=1e-3))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(24)))
    assert copies_of(session) == CopyCounts()


def test_run_options_and_a_profile_change_nothing(tmp_path: Any) -> None:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    content = made_of(OPERATORS["MatMul"], ["y"])
    session = ort.InferenceSession(content, options, providers=CPU)
    place = np.zeros(SHAPE, np.float32)
    run_to(session, {"y": place})
    np.testing.assert_allclose(place, expected_of(content)[0], rtol=1e-4, atol=1e-4)
    assert copies_of(session) == CopyCounts()
    session.end_profiling()


HEADS, SIZE, ROOM, SEEN = 4, 32, 256, 199
CACHE, NEW = [1, HEADS, ROOM, SIZE], [1, 1, HEADS * SIZE]


def decoder(*, reads_past: bool = False) -> bytes:
    """GroupQueryAttention with caches of 256 positions; and past_key + 1, if it is read again."""
    names = ["query", "key", "value", "past_key", "past_value", "lasts", "total"]
    attention = helper.make_node(
        "GroupQueryAttention",
        names,
        ["y", "present_key", "present_value"],
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=HEADS,
    )
    nodes, outputs = [attention], [("y", NEW), ("present_key", CACHE), ("present_value", CACHE)]
    if reads_past:
        nodes.append(helper.make_node("Neg", ["past_key"], ["n"]))
        outputs.append(("n", CACHE))
    inputs = [*((name, NEW) for name in names[:3]), *((name, CACHE) for name in names[3:5])]
    made = model(nodes, inputs, outputs, {})
    for name, shape in (("lasts", [1]), ("total", [])):
        made.graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT32, shape))
    if not any(one.domain == "com.microsoft" for one in made.opset_import):
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return bytes(made.SerializeToString())


def decoder_feed() -> dict[str, Array]:
    random = np.random.default_rng(4)
    shapes = dict.fromkeys(("query", "key", "value"), NEW)
    shapes |= dict.fromkeys(("past_key", "past_value"), CACHE)
    feed = {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    return feed | {
        "lasts": np.array([SEEN], np.int32),
        "total": np.array(SEEN + 1, np.int32),
    }


@pytest.mark.parametrize("shares", [False, True], ids=["two buffers", "in place"])
@pytest.mark.parametrize("reads_past", [False, True], ids=["", "read again"])
def test_caches_of_keys_and_values_are_written_where_they_are_bound(
    *, shares: bool, reads_past: bool
) -> None:
    """In place only the new position is written, unless something else reads the past."""
    content, feed = decoder(reads_past=reads_past), decoder_feed()
    peer = onnxruntime.InferenceSession(content, providers=CPU)
    expected = peer.run(None, feed)
    session = ort.InferenceSession(content, providers=CPU)
    past = {name: feed[f"past_{name}"] for name in ("value", "key")}
    places = {n: a if shares else np.full(CACHE, np.nan, np.float32) for n, a in past.items()}
    rest = {name: array[:, :, SEEN + 1 :].copy() for name, array in past.items()}
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    for name in ["y", "n"][: 1 + reads_past]:
        binding.bind_output(name)
    for name, place in places.items():
        value = ort.OrtValue.ortvalue_from_numpy(place)
        binding.bind_ortvalue_output(f"present_{name}", value)
    session.run_with_iobinding(binding)
    y, *others = (value.numpy() for value in binding.get_outputs())
    np.testing.assert_allclose(y, expected[0], rtol=1e-4, atol=1e-5)
    for name, answer in (("key", expected[1]), ("value", expected[2])):
        np.testing.assert_array_equal(places[name][:, :, : SEEN + 1], answer[:, :, : SEEN + 1])
    if reads_past:
        np.testing.assert_array_equal(others[0], expected[3])
    elif shares:
        for name, array in rest.items():
            np.testing.assert_array_equal(places[name][:, :, SEEN + 1 :], array)
    copied = 2 if shares and reads_past else 0  # the kernel gets both places or none
    assert copies_of(session).to_host == copied


def test_the_value_of_one_cache_may_not_be_the_key_of_the_other() -> None:
    """Outputs bound to memory of inputs that are not theirs."""
    content, feed = decoder(), decoder_feed()
    expected = onnxruntime.InferenceSession(content, providers=CPU).run(None, feed)
    session = ort.InferenceSession(content, providers=CPU)
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    for output, source in (("key", "value"), ("value", "key")):
        value = ort.OrtValue.ortvalue_from_numpy(feed[f"past_{source}"])
        binding.bind_ortvalue_output(f"present_{output}", value)
    session.run_with_iobinding(binding)
    results = [value.numpy() for value in binding.get_outputs()]
    for mine, answer in zip(results[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(mine[:, :, : SEEN + 1], answer[:, :, : SEEN + 1])
    np.testing.assert_allclose(results[0], expected[0], rtol=1e-4, atol=1e-5)
    assert copies_of(session).to_host == 2
