"""Weights live for as long as an execution provider reads them."""

from __future__ import annotations

import gc
import mmap
import weakref
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import ort_lite as ort
from ctx_formats import model_file
from ort_lite.model import external_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CPU, OPENVINO, OPENCL = (f"{n}ExecutionProvider" for n in ("CPU", "OpenVINO", "OpenCL"))
WIDTH = 512
SIZE = WIDTH * WIDTH * 4


class Memory(mmap.mmap):
    """A map that can be watched."""


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Bytes of models that were read and not given back."""
    maps: weakref.WeakSet[Memory] = weakref.WeakSet()

    def private_memory(size: int, *, sparse: bool = False) -> memoryview:
        if sparse:
            return memoryview(bytearray(size))
        found = Memory(-1, size)
        maps.add(found)
        return memoryview(found)

    for module in (model_file, external_file):
        monkeypatch.setattr(module, "private_memory", private_memory)

    def count() -> int:
        gc.collect()
        return sum(map(len, maps))

    return count


def save(folder: Path, *, external: bool = False, rows: int | str = 2) -> Path:
    """y = Relu(x @ a @ b)."""
    drawn = np.random.default_rng(5)
    weights = []
    data = bytearray()
    for name in "ab":
        values = drawn.standard_normal((WIDTH, WIDTH)).astype(np.float32)
        tensor = numpy_helper.from_array(values, name)
        if external:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, text in {"location": "w.bin", "offset": str(len(data))}.items():
                tensor.external_data.add(key=key, value=text)
            data += values.tobytes()
        weights.append(tensor)
    if external:
        (folder / "w.bin").write_bytes(data)
    shape = [rows, WIDTH]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "a"], ["xa"]),
            helper.make_node("MatMul", ["xa", "b"], ["xab"]),
            helper.make_node("Relu", ["xab"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    (folder / "m.onnx").write_bytes(made.SerializeToString())
    return folder / "m.onnx"


def require(ep: str) -> None:
    if ep not in ort.get_available_providers():
        pytest.skip(f"{ep} has no device here")


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize(("ep", "kept"), [(CPU, 2 * SIZE), (OPENVINO, 0), (OPENCL, 0)])
def test_a_session_keeps_the_weights_that_it_reads(
    tmp_path: Path, alive: Callable[[], int], ep: str, kept: int, *, external: bool
) -> None:
    require(ep)
    path = save(tmp_path, external=external)
    feed = {"x": np.ones((2, WIDTH), np.float32)}
    with ort.InferenceSession(path, providers=[ep]) as session:
        assert alive() == kept
        session.run(None, feed)
        assert session.explain().providers[0] == ep
        assert session.load_report().model_bytes == path.stat().st_size
        assert session.get_modelmeta().graph_name == "g"
    del session
    assert alive() == 0


def test_programs_for_new_shapes_are_compiled_from_weights_that_stay(
    tmp_path: Path, alive: Callable[[], int]
) -> None:
    require(OPENCL)
    path = save(tmp_path, rows="n")
    with ort.InferenceSession(path, providers=[OPENCL]) as session:
        assert alive() == 2 * SIZE
        found = [session.run(None, {"x": np.ones((rows, WIDTH), np.float32)})[0] for rows in (1, 3)]
    np.testing.assert_allclose(found[1], np.repeat(found[0], 3, axis=0), rtol=1e-4, atol=1e-3)


def test_a_compile_in_the_background_lets_go_of_them_too(
    tmp_path: Path, alive: Callable[[], int]
) -> None:
    require(OPENVINO)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_compile_in_background", "1")
    with ort.InferenceSession(save(tmp_path), options, providers=[OPENVINO]) as session:
        assert session.background_compile(None).state == "done"
        assert alive() == 0
        session.run(None, {"x": np.ones((2, WIDTH), np.float32)})


@pytest.mark.parametrize("cached", [False, True])
def test_a_session_with_the_cache_lets_go_of_them(
    tmp_path: Path, alive: Callable[[], int], *, cached: bool
) -> None:
    require(OPENVINO)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_cache", "1")
    options.add_session_config_entry("session.ep_context_cache_dir", str(tmp_path / "cache"))
    path = save(tmp_path, external=True)
    if cached:
        ort.InferenceSession(path, options, providers=[OPENVINO]).close()
    with ort.InferenceSession(path, options, providers=[OPENVINO]) as session:
        assert session.load_report().cache.state == ("hit" if cached else "stored")
        assert alive() == 0
