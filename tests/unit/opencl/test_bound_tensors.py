"""Tensors that stay on an OpenCL device: values, bindings, and how many copies runs make."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.runtime.tensors import ranked_devices
from ort_lite.ep import CopyCounts, SupportsBoundRuns

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
OPENCL = ["OpenCLExecutionProvider"]
SHAPE = [24, 24]
X = np.random.default_rng(7).standard_normal(SHAPE).astype(np.float32)
W = np.random.default_rng(8).standard_normal(SHAPE).astype(np.float32)
TYPES = ("float32", "float16", "int64", "int8", "uint16", "bool", "float64")


def model(nodes: Sequence[Any], outputs: Sequence[str], rows: int | str = 24) -> bytes:
    """A model with an input x and a weight w of [24, 24]."""
    shape = [rows, 24]
    graph = helper.make_graph(
        nodes,
        "bound",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [helper.make_tensor("w", TensorProto.FLOAT, SHAPE, W.reshape(-1))],
    )
    opsets = [helper.make_opsetid("", 17)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return made


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


RELU = model([node("Relu", "x", "r"), node("Sub", "r w", "y")], ["y"])
PRODUCT = model([node("MatMul", "x w", "y")], ["y"])


def session(content: bytes, options: ort.SessionOptions | None = None) -> ort.InferenceSession:
    return ort.InferenceSession(content, options, providers=OPENCL)


def lose_device(made: ort.InferenceSession) -> None:
    """Have a session go on with the CPU EP, as after a run that failed."""
    with pytest.warns(UserWarning, match="The session goes on with: CPUExecutionProvider"):
        made._fall_back_after(ort.EPFail("as if the device were lost"), made._present().prepared)


@pytest.fixture(scope="module")
def relu() -> ort.InferenceSession:
    return session(RELU)


@pytest.fixture(scope="module")
def product() -> ort.InferenceSession:
    return session(PRODUCT)


def copies_of(made: ort.InferenceSession) -> CopyCounts:
    """Copies that runs of the session made so far."""
    partitions = made._present().prepared.partitions
    mine = [p.compiled for p in partitions if isinstance(p.compiled, SupportsBoundRuns)]
    return mine[0].copy_counts()  # all of an EP count together


def on_device(array: np.ndarray[Any, Any]) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array, "opencl", 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_value_on_the_device_has_what_was_put_there(dtype: str) -> None:
    array = (X * 9).astype(dtype)
    value = on_device(array)
    host = ort.OrtValue.ortvalue_from_numpy(array)
    assert value.device_name() == "opencl"
    assert (value.shape(), value.data_type()) == (host.shape(), host.data_type())
    assert value.element_type() == host.element_type()
    assert value.tensor_size_in_bytes() == array.nbytes
    assert value.is_tensor()
    assert value.has_value()
    assert value.data_ptr()
    np.testing.assert_array_equal(value.numpy(), array)


def test_a_value_of_a_shape_is_zeros_until_it_is_updated() -> None:
    value = ort.OrtValue.ortvalue_from_shape_and_type(SHAPE, np.float32, "opencl", 0)
    np.testing.assert_array_equal(value.numpy(), np.zeros(SHAPE, np.float32))
    value.update_inplace(X)
    np.testing.assert_array_equal(value.numpy(), X)
    value.update_inplace(on_device(W))
    np.testing.assert_array_equal(value.numpy(), W)
    with pytest.raises(ort.InvalidArgument, match=r"update with tensor\(float\)\[24\], expected"):
        value.update_inplace(X[0])


def test_a_value_without_elements_is_one() -> None:
    assert on_device(np.zeros((0, 3), np.float32)).numpy().shape == (0, 3)


def test_a_memory_info_names_the_device() -> None:
    info = ort.OrtMemoryInfo("OpenCL")
    value = ort.OrtValue.ortvalue_from_shape_and_type([2], np.float32, memory_info=info)
    assert value.device_name() == "opencl"
    device = ort.OrtDevice.make("opencl", 0)
    assert ort.OrtValue.ortvalue_from_numpy(X, device).device_name() == "opencl"


def test_copies_between_tensors_pass_the_host_only_where_one_is_there() -> None:
    source, target = on_device(X), on_device(W)
    memory = source.held_value().memory
    before = memory.copy_counts()
    ort.copy_tensors([source], [target])
    after = memory.copy_counts()
    assert (after.on_device - before.on_device, after.host_copies - before.host_copies) == (1, 0)
    place = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(X))
    ort.copy_tensors([target], [place])
    np.testing.assert_array_equal(place.numpy(), X)
    assert memory.copy_counts().to_host - after.to_host == 1


def test_what_does_not_fit_is_refused_before_anything_is_allocated() -> None:
    memory = on_device(X).held_value().memory
    before = memory.tensors.peak
    with pytest.raises(ort.InvalidArgument, match="needs 4398046511104 bytes in"):
        ort.OrtValue.ortvalue_from_shape_and_type([1 << 30, 1 << 10], np.float32, "opencl", 0)
    assert memory.tensors.peak == before


def test_a_device_that_is_not_here_is_refused_with_those_that_are() -> None:
    with pytest.raises(ort.InvalidArgument, match="opencl device 99 does not exist; found 0: "):
        ort.OrtValue.ortvalue_from_numpy(X, "opencl", 99)


def test_memory_goes_back_with_the_value() -> None:
    value = on_device(X)
    memory = value.held_value().memory
    before = memory.tensors.live
    other = on_device(X)
    assert memory.tensors.live == before + X.nbytes
    del other
    assert memory.tensors.live == before
    value.held_value().release()
    with pytest.raises(RuntimeError, match=r"float32\[24, 24\] is used after its release"):
        value.numpy()


def test_a_released_value_is_the_programs_mistake_and_no_reason_to_fall_back() -> None:
    """Of a session on the device, and of one that has fallen back."""
    with session(RELU) as made:
        value, sound, binding = on_device(X), on_device(X), made.io_binding()
        binding.bind_ortvalue_input("x", value)
        binding.bind_output("y", "opencl", 0)
        value.held_value().release()
        chosen = made.get_providers()
        for providers in (chosen, ["CPUExecutionProvider"]):
            if providers is not chosen:
                lose_device(made)
            with pytest.raises(ort.InvalidArgument, match="is used after its release"):
                made.run_with_iobinding(binding)
            with pytest.raises(ort.InvalidArgument, match="is used after its release"):
                made.run(None, {"x": value})
            for pair in ([value], [sound]), ([sound], [value]):
                with pytest.raises(ort.InvalidArgument, match="is used after its release"):
                    ort.copy_tensors(*pair)
            assert made.get_providers() == providers


def test_a_run_on_the_device_copies_nothing(relu: ort.InferenceSession) -> None:
    value, binding = on_device(X), relu.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "opencl", 0)
    before = copies_of(relu)
    relu.run_with_iobinding(binding)
    binding.synchronize_outputs()
    assert copies_of(relu) == before
    (result,) = binding.get_outputs()
    assert result.device_name() == "opencl"
    np.testing.assert_array_equal(result.numpy(), np.maximum(X, 0) - W)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], np.maximum(X, 0) - W)
    np.testing.assert_array_equal(value.numpy(), X)


def test_outputs_go_to_the_device_after_a_fallback_too() -> None:
    with session(RELU) as made:
        lose_device(made)
        place, binding = on_device(W), made.io_binding()
        binding.bind_ortvalue_input("x", on_device(X))
        for bind in (
            lambda: binding.bind_output("y", "opencl", 0),
            lambda: binding.bind_ortvalue_output("y", place),
        ):
            bind()
            made.run_with_iobinding(binding)
            (result,) = binding.get_outputs()
            assert result.device_name() == "opencl"
            np.testing.assert_array_equal(result.numpy(), np.maximum(X, 0) - W)
        assert result.data_ptr() == place.data_ptr()


def test_host_and_device_may_be_mixed(relu: ort.InferenceSession) -> None:
    expected = np.maximum(X, 0) - W
    before = copies_of(relu)
    np.testing.assert_array_equal(relu.run(None, {"x": on_device(X)})[0], expected)
    assert copies_of(relu).to_device == before.to_device
    binding = relu.io_binding()
    binding.bind_cpu_input("x", X)
    place = ort.OrtValue.ortvalue_from_shape_and_type(SHAPE, np.float32, "opencl", 0)
    binding.bind_ortvalue_output("y", place)
    relu.run_with_iobinding(binding)
    np.testing.assert_array_equal(place.numpy(), expected)
    np.testing.assert_array_equal(relu.run(None, {"x": X})[0], expected)  # from the arena again
    (result,) = relu.run_with_ort_values(None, {"x": on_device(X)})
    np.testing.assert_array_equal(result.numpy(), expected)


def test_an_output_in_the_memory_of_an_input_is_written_in_place(
    relu: ort.InferenceSession,
) -> None:
    value, binding = on_device(X), relu.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    before = copies_of(relu)
    relu.run_with_iobinding(binding)
    relu.run_with_iobinding(binding)
    assert copies_of(relu) == before
    once = np.maximum(X, 0) - W
    np.testing.assert_array_equal(value.numpy(), np.maximum(once, 0) - W)


def test_a_kernel_that_cannot_work_in_place_gets_memory_of_its_own(
    product: ort.InferenceSession,
) -> None:
    value, binding = on_device(X), product.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    before = copies_of(product)
    product.run_with_iobinding(binding)
    after = copies_of(product)
    assert (after.host_copies, after.on_device) == (before.host_copies, before.on_device + 1)
    np.testing.assert_allclose(value.numpy(), X @ W, rtol=1e-4, atol=1e-5)


def test_sessions_chain_on_the_device(
    relu: ort.InferenceSession, product: ort.InferenceSession
) -> None:
    first, second = relu.io_binding(), product.io_binding()
    first.bind_ortvalue_input("x", on_device(X))
    first.bind_output("y", "opencl", 0)
    before = copies_of(relu), copies_of(product)
    relu.run_with_iobinding(first)
    second.bind_ortvalue_input("x", first.get_outputs()[0])
    second.bind_output("y", "opencl", 0)
    product.run_with_iobinding(second)
    assert (copies_of(relu), copies_of(product)) == before
    expected = (np.maximum(X, 0) - W) @ W
    np.testing.assert_allclose(second.get_outputs()[0].numpy(), expected, rtol=1e-4, atol=1e-4)


def test_an_output_of_another_shape_is_refused(relu: ort.InferenceSession) -> None:
    binding = relu.io_binding()
    binding.bind_ortvalue_input("x", on_device(X))
    binding.bind_ortvalue_output("y", on_device(X[:2]))
    with pytest.raises(ort.InvalidArgument, match=r"output y is float32\[24, 24\], the memory bo"):
        relu.run_with_iobinding(binding)
    with pytest.raises(ort.InvalidArgument, match="Got: 2 Expected: 24"):
        relu.run(None, {"x": on_device(X[:2])})
    with pytest.raises(ort.InvalidArgument, match="Unexpected input data type"):
        relu.run(None, {"x": on_device(X.astype(np.float16))})


def two_partitions() -> bytes:
    """x -> a on OpenCL; a -> b where OpenCL has no kernel; a, b -> y, z on OpenCL."""
    nodes = [
        node("Relu", "x", "a"),
        node("Unique", "a", "b", sorted=1),
        node("ReduceMax", "b", "m", keepdims=0),
        node("Mul", "a m", "y"),
    ]
    return model(nodes, ["y"])


def test_partitions_of_one_provider_hand_on_what_they_make() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.placement", "all")
    made = session(two_partitions(), options)
    owners = [p.ep.name for p in made._present().prepared.partitions]
    assert owners.count(OPENCL[0]) == 2
    before = copies_of(made)
    (y,) = made.run(None, {"x": X})
    np.testing.assert_array_equal(y, np.maximum(X, 0) * X.max())
    after = copies_of(made)
    # x and what the CPU EP makes go to the device, y comes back; a stays there.
    assert (after.to_device - before.to_device, after.to_host - before.to_host) == (2, 1)


def test_inputs_of_any_size_are_bound() -> None:
    made = session(model([node("Relu", "x", "r"), node("MatMul", "r w", "y")], ["y"], rows="n"))
    for rows in (3, 5, *[3] * 20):
        binding = made.io_binding()
        binding.bind_ortvalue_input("x", on_device(X[:rows]))
        binding.bind_output("y", "opencl", 0)
        made.run_with_iobinding(binding)
        result = binding.get_outputs()[0]
        expected = np.maximum(X[:rows], 0) @ W
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)
    assert copies_of(made).host_copies == 0
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", on_device(X[:0]))
    binding.bind_output("y", "opencl", 0)
    made.run_with_iobinding(binding)
    assert binding.get_outputs()[0].numpy().shape == (0, 24)


def test_a_context_keeps_what_may_be_bound(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(RELU)
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    ort.InferenceSession(path, options, providers=OPENCL)
    made = ort.InferenceSession(tmp_path / "model_ctx.onnx", providers=OPENCL)
    value, binding = on_device(X), made.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    made.run_with_iobinding(binding)
    assert copies_of(made) == CopyCounts()
    np.testing.assert_array_equal(value.numpy(), np.maximum(X, 0) - W)


def test_threads_bind_tensors_of_their_own(relu: ort.InferenceSession) -> None:
    def run(number: int) -> bool:
        value, binding = on_device(X + number), relu.io_binding()
        binding.bind_ortvalue_input("x", value)
        binding.bind_ortvalue_output("y", value)
        for _ in range(5):
            value.update_inplace(X + number)
            relu.run_with_iobinding(binding)
        expected = np.maximum(X + np.float32(number), 0) - W
        return bool(np.array_equal(value.numpy(), expected))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(8)))


def test_a_profile_counts_copies(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    made = session(RELU, options)
    made.run(None, {"x": X})
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", on_device(X))
    binding.bind_output("y", "opencl", 0)
    made.run_with_iobinding(binding)
    events = json.loads(Path(made.end_profiling()).read_text())
    counts = [
        (event["args"]["copies_to_device"], event["args"]["copies_to_host"])
        for event in events
        if "copies_to_host" in event["args"]
    ]
    assert counts == [("1", "1"), ("0", "0")]


def test_an_input_that_is_also_an_output_is_copied_before_it_is_overwritten() -> None:
    """Both outputs are bound; one of them to the memory of the input that the other one is."""
    made = session(model([node("Neg", "x", "y"), node("Identity", "x", "z")], ["y", "z"]))
    value, place, binding = on_device(X), on_device(W), made.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    binding.bind_ortvalue_output("z", place)
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(value.numpy(), -X)
    np.testing.assert_array_equal(place.numpy(), X)


@pytest.mark.parametrize("content", [RELU, PRODUCT], ids=["relu", "product"])
@pytest.mark.parametrize("form", ["memory", "tensor"])
def test_an_output_that_is_bound_on_another_device_is_copied_there(
    form: str, content: bytes
) -> None:
    """Kernels of one driver never get a buffer of another one's, which ends the process."""
    if len(ranked_devices()) < 2:
        pytest.skip("one OpenCL device alone")
    right = session(content).run(None, {"x": X})[0]
    pocl = len(ranked_devices()) - 1  # the last one of all
    for options, bound_on in (({}, pocl), ({"platform": "portable"}, 0)):
        made = ort.InferenceSession(content, providers=[(OPENCL[0], options)])
        made.disable_fallback()
        binding = made.io_binding()
        binding.bind_cpu_input("x", X)
        if form == "memory":
            binding.bind_output("y", "opencl", bound_on)
        else:
            empty = ort.OrtValue.ortvalue_from_shape_and_type(SHAPE, np.float32, "opencl", bound_on)
            binding.bind_ortvalue_output("y", empty)
        made.run_with_iobinding(binding)
        (y,) = binding.get_outputs()
        assert y.device_name() == "opencl"
        np.testing.assert_allclose(y.numpy(), right, rtol=1e-5, atol=1e-6)
