"""LoRA adapters: the same program for onnxruntime, and files of the one for the other."""

from __future__ import annotations

import logging
import random
import struct
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from ctx_formats.adapter_file import Adapter, read_adapter, write_adapter
from ctx_formats.errors import FormatError
from ctx_formats.onnx_model import Tensor
from ort_lite.capi.convert_npz_to_onnx_adapter import main
from ort_lite.model.tensor_values import from_numpy
from ort_lite.status import BindingError

if TYPE_CHECKING:
    from pathlib import Path

CPU = ["CPUExecutionProvider"]
BOTH = pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
A = np.array([[3], [4], [5], [6]], np.float32)
B = np.array([[7, 8, 9, 10]], np.float32)
X = np.ones((4, 4), np.float32)
W = np.arange(1, 17, dtype=np.float32).reshape(4, 4)


def model() -> bytes:
    """X W + (X a) b, whose a and b are empty until an adapter gives them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("MatMul", ["x", "a"], ["xa"]),
        helper.make_node("MatMul", ["xa", "b"], ["xab"]),
        helper.make_node("Add", ["xw", "xab"], ["y"]),
    ]
    shapes: list[tuple[str, list[Any]]] = [("x", [4, 4]), ("a", [4, "r"]), ("b", ["r", 4])]
    weights = {"w": W, "a": np.zeros((4, 0), np.float32), "b": np.zeros((0, 4), np.float32)}
    graph = helper.make_graph(
        nodes,
        "lora",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in shapes],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 4])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def exported(module: Any, path: Path, **parameters: Any) -> str:
    content = module.AdapterFormat()
    content.set_adapter_version(7)
    content.set_model_version(-2)
    make = module.OrtValue.ortvalue_from_numpy
    content.set_parameters({name: make(array) for name, array in parameters.items()})
    content.export_adapter(str(path))
    return str(path)


KEPT: list[Any] = []
"""Adapters: onnxruntime's RunOptions does not keep alive what it points at."""


def options(module: Any, *files: str) -> Any:
    made = module.RunOptions()
    for file in files:
        adapter = module.LoraAdapter()
        adapter.Load(file)
        made.add_active_adapter(adapter)
        KEPT.append(adapter)
    return made


def session(module: Any) -> Any:
    quiet = module.SessionOptions()
    quiet.log_severity_level = 3
    return module.InferenceSession(model(), quiet, providers=CPU)


@BOTH
@pytest.mark.parametrize("writer", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
def test_a_file_of_the_one_is_read_by_the_other(module: Any, writer: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "half": np.arange(6, dtype=np.float16).reshape(2, 3),
        "bytes": np.arange(5, dtype=np.uint8),
        "empty": np.zeros((0, 3), np.float32),
        "long ä": np.array([1 << 40], np.int64),
    }
    read = module.AdapterFormat.read_adapter(exported(writer, tmp_path / "a", **given))
    assert read.get_format_version() == 1
    assert (read.get_adapter_version(), read.get_model_version()) == (7, -2)
    found = read.get_parameters()
    assert found.keys() == given.keys()
    for name, array in given.items():
        values = found[name].numpy()
        assert isinstance(values, np.ndarray)
        np.testing.assert_array_equal(values, array)
        assert values.dtype == array.dtype


@BOTH
def test_narrow_floats_are_kept(module: Any, tmp_path: Path) -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    content, path = module.AdapterFormat(), str(tmp_path / "a")
    make = module.OrtValue.ortvalue_from_numpy_with_onnx_type
    content.set_parameters({"b": make(bits, TensorProto.BFLOAT16)})
    content.export_adapter(path)
    value = module.AdapterFormat.read_adapter(path).get_parameters()["b"]
    assert (value.data_type(), value.shape()) == ("tensor(bfloat16)", [2])


@BOTH
def test_an_adapter_changes_a_run(module: Any, tmp_path: Path) -> None:
    file, made = exported(module, tmp_path / "a", a=A, b=B), session(module)
    active = options(module, file)
    expected = X @ W + X @ A @ B
    np.testing.assert_array_equal(made.run(None, {"x": X}, active)[0], expected)
    value = module.OrtValue.ortvalue_from_numpy(X)
    (found,) = made.run_with_ort_values(None, {"x": value}, active)
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(made.run(None, {"x": X})[0], X @ W)


@BOTH
def test_the_first_adapter_counts_and_wins_over_the_feed(module: Any, tmp_path: Path) -> None:
    files = [exported(module, tmp_path / str(by), a=A * by, b=B) for by in (1, 10)]
    made = session(module)
    for order, by in ((files, 1), (files[::-1], 10)):
        (found,) = made.run(None, {"x": X}, options(module, *order))
        np.testing.assert_array_equal(found, X @ W + X @ (A * by) @ B)
    (found,) = made.run(None, {"x": X, "a": A * 3}, options(module, files[0]))
    np.testing.assert_array_equal(found, X @ W + X @ A @ B)
    reloaded = module.LoraAdapter()
    for file in files:
        reloaded.Load(file)
    active = module.RunOptions()
    active.add_active_adapter(reloaded)
    (found,) = made.run(None, {"x": X}, active)
    np.testing.assert_array_equal(found, X @ W + X @ (A * 10) @ B)


@BOTH
def test_other_forms_of_run_heed_no_adapter(module: Any, tmp_path: Path) -> None:
    active, made = options(module, exported(module, tmp_path / "a", a=A, b=B)), session(module)
    binding, done, found = made.io_binding(), threading.Event(), []
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    made.run_with_iobinding(binding, active)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X @ W)

    def take(outputs: Any, _: Any, error: str) -> None:
        found.append((outputs, error))
        done.set()

    made.run_async(None, {"x": X}, take, None, active)
    assert done.wait(60)
    ((outputs, error),) = found
    assert not error
    np.testing.assert_array_equal(outputs[0], X @ W)


def test_that_they_do_not_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = ort.InferenceSession(model(), providers=CPU)
    binding = made.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    with caplog.at_level(logging.WARNING):
        made.run_with_iobinding(binding, options(ort, exported(ort, tmp_path / "a", a=A)))
    assert "run_with_iobinding has active adapters specified" in caplog.text


@BOTH
def test_parameters_are_checked_as_feeds_are(module: Any, tmp_path: Path) -> None:
    cases = {
        "Invalid input name: other": {"other": A},
        "Unexpected input data type": {"a": A.astype(np.float64)},
        "Got invalid dimensions for input: a": {"a": A[:2]},
    }
    for index, (said, parameters) in enumerate(cases.items()):
        file = exported(module, tmp_path / str(index), **parameters)
        with pytest.raises(Exception, match=said):
            session(module).run(None, {"x": X}, options(module, file))


@BOTH
def test_parameters_are_replaced_and_written_again(module: Any, tmp_path: Path) -> None:
    file = exported(module, tmp_path / "a", a=A)
    content = module.AdapterFormat.read_adapter(file)
    content.set_parameters({"b": module.OrtValue.ortvalue_from_numpy(B)})
    content.export_adapter(file)
    assert list(module.AdapterFormat.read_adapter(file).get_parameters()) == ["b"]


@BOTH
def test_what_is_no_adapter_is_a_runtime_error(module: Any, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"no adapter at all")
    for load in (module.AdapterFormat.read_adapter, module.LoraAdapter().Load):
        for path in (text, tmp_path / "absent", tmp_path):
            with pytest.raises(RuntimeError):
                load(str(path))
    with pytest.raises(RuntimeError, match="does not appear to be a valid lora parameter format"):
        module.LoraAdapter().Load(str(text))


def test_an_npz_becomes_an_adapter(tmp_path: Path) -> None:
    npz, path = tmp_path / "weights.npz", str(tmp_path / "a")
    np.savez(npz, first=A, second=B)
    told = ["--adapter_version", "3", "--model_version", "4"]
    assert main(["--npz_file_path", str(npz), "--output_file_path", path, *told]) == 0
    read = onnxruntime.AdapterFormat.read_adapter(path)
    assert (read.get_adapter_version(), read.get_model_version()) == (3, 4)
    assert {name: value.shape() for name, value in read.get_parameters().items()} == {
        "first": [4, 1],
        "second": [1, 4],
    }


def test_what_no_file_may_hold_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    cases = {
        "BOOL": ort.OrtValue.ortvalue_from_numpy(np.array([True])),
        "STRING": ort.OrtValue.holding(np.array(["text"], object)),
        "dims": ort.OrtValue.ortvalue_from_numpy(np.array(3.0)),
    }
    for said, value in cases.items():
        content = ort.AdapterFormat()
        content.set_parameters({"p": value})
        with pytest.raises(RuntimeError, match=said):
            content.export_adapter(path)
        assert not path.exists()
    for wrong in (1 << 31, "one"):
        with pytest.raises(TypeError, match="an integer of 32 bits"):
            ort.AdapterFormat().set_adapter_version(wrong)  # type: ignore[arg-type] # the point
    with pytest.raises(TypeError, match="LoraAdapter"):
        ort.RunOptions().add_active_adapter(3)  # type: ignore[arg-type] # the point


VALID = write_adapter(
    Adapter(
        adapter_version=1,
        parameters=(from_numpy(A, "first"), from_numpy(B, "second"), from_numpy(W, "third")),
    )
)


def holds_together(adapter: Adapter) -> bool:
    """Whether every parameter lies inside the file with as many bytes as it says."""
    for tensor in adapter.parameters:
        assert ort.OrtValue.of_tensor(tensor).shape() == list(tensor.dims)
    return True


def test_every_cut_and_thousands_of_damaged_files_are_refused_or_hold_together() -> None:
    for size in range(len(VALID)):
        with pytest.raises(FormatError):
            read_adapter(memoryview(VALID[:size]))
    chance, refused = random.Random(15), 0
    for _ in range(6000):
        damaged = bytearray(VALID)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(damaged) - 4)
            if chance.random() < 0.5:
                damaged[place] ^= 1 << chance.randrange(8)
            else:
                wild = chance.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 31, len(damaged)])
                struct.pack_into("<I", damaged, place, wild)
        try:
            assert holds_together(read_adapter(memoryview(damaged)))
        except FormatError:
            refused += 1
    assert refused > 2000


def test_names_in_a_file_are_no_longer_than_it_together() -> None:
    """Thousands of parameters that share a name of a megabyte are not decoded one by one."""
    tensor = from_numpy(A, "n" * (1 << 20))
    once = write_adapter(Adapter(parameters=(tensor, Tensor("x", 1, tensor.dims, tensor.data))))
    shared = bytearray(once)
    first, second = (base + 4 * i for i, base in enumerate((56, 56)))
    target = first + struct.unpack_from("<I", shared, first)[0]
    struct.pack_into("<I", shared, second, target - second)
    with pytest.raises(FormatError, match=r"a new name|at most"):
        read_adapter(memoryview(shared))


def test_a_shape_that_no_array_has_is_refused(tmp_path: Path) -> None:
    """It has no elements, so the file has all of them."""
    tensor = Tensor("x", 1, (1 << 31, 1 << 33, 1 << 33, 0), memoryview(b""))
    path = tmp_path / "a"
    path.write_bytes(write_adapter(Adapter(parameters=(tensor,))))
    with pytest.raises(BindingError, match="no array has the shape"):
        ort.AdapterFormat.read_adapter(path).get_parameters()


@pytest.mark.parametrize(
    ("place", "number", "said"),
    [(4, 0, "identifier"), (24, 2, "format_version: 2, expected 1"), (0, 1 << 30, "root")],
)
def test_a_damaged_header_is_named(place: int, number: int, said: str) -> None:
    damaged = bytearray(VALID)
    struct.pack_into("<I", damaged, place, number)
    with pytest.raises(FormatError, match=said):
        read_adapter(memoryview(damaged))
