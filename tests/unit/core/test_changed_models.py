"""Model files that somebody writes to while a session loads them or has them open."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from cached_starts import OPENVINO, options
from onnx import TensorProto, helper, numpy_helper
from system_limits import needs_removal_while_open, needs_symlinks

import ort_lite as ort
from ctx_formats.errors import Reason
from ctx_formats.stamped_file import StampedFile
from ort_lite.model import external_file, loader
from ort_lite.model_cache import source_digest
from ort_lite.model_cache.store import CacheStore
from ort_lite.status import InvalidGraph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ort_lite.model.loader import LoadedModel

    Array = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

COUNT = 1 << 17
EPS = ["CPUExecutionProvider", "OpenVINOExecutionProvider", "OpenCLExecutionProvider"]


def save(folder: Path, value: float, *, shift: int = 0, external: bool = False) -> Path:
    """y = x + w, every element of w being `value`, w at another alignment for each `shift`."""
    raw = np.full(COUNT, value, np.float32)
    weights = numpy_helper.from_array(raw, "w")
    if external:
        weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[COUNT])
        weights.data_location = TensorProto.EXTERNAL
        entries = {"location": "w.bin", "offset": str(shift), "length": str(raw.nbytes)}
        for key, text in entries.items():
            weights.external_data.add(key=key, value=text)
        (folder / "w.bin").write_bytes(bytes(shift) + raw.tobytes())
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g" * (1 + shift),
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [COUNT])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [COUNT])],
        [weights],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(made, folder / "m.onnx")
    return folder / "m.onnx"


def answers(session: ort.InferenceSession) -> set[float]:
    (found,) = session.run(None, {"x": np.zeros(COUNT, np.float32)})
    return set(map(float, np.unique(found)))


@pytest.mark.parametrize("ep", EPS)
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("shift", range(4))
def test_saving_over_a_model_changes_nothing_for_its_session(
    tmp_path: Path, ep: str, shift: int, *, external: bool
) -> None:
    if ep not in ort.get_available_providers():
        pytest.skip(f"{ep} has no device here")
    path = save(tmp_path, 1.0, shift=shift, external=external)
    with ort.InferenceSession(path, providers=[ep]) as session:
        save(tmp_path, 2.0, shift=shift, external=external)
        assert answers(session) == {1.0}
        for file in tmp_path.iterdir():
            os.truncate(file, 10)
        assert answers(session) == {1.0}


@pytest.fixture
def meddle(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], None]], None]:
    """Has a function called before each read of a file, with the number of the read."""

    def install(change: Callable[[int], None]) -> None:
        real = StampedFile.read_into
        reads = iter(range(1 << 30))

        def read_into(file: StampedFile, target: memoryview, offset: int) -> None:
            change(next(reads))
            real(file, target, offset)

        monkeypatch.setattr(StampedFile, "read_into", read_into)

    return install


@pytest.mark.parametrize("external", [False, True])
def test_a_model_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, meddle: Callable[[Callable[[int], None]], None], *, external: bool
) -> None:
    path = save(tmp_path, 1.0, external=external)

    def change(read: int) -> None:
        if read == 1:
            save(tmp_path, 2.0, external=external)

    meddle(change)
    with ort.InferenceSession(path, providers=["CPUExecutionProvider"]) as session:
        assert answers(session) == {2.0}


def test_a_model_that_never_comes_to_rest_is_refused(
    tmp_path: Path, meddle: Callable[[Callable[[int], None]], None]
) -> None:
    path = save(tmp_path, 1.0)
    reads = []

    def change(read: int) -> None:
        reads.append(read)
        save(tmp_path, float(read))

    meddle(change)
    with pytest.raises(InvalidGraph, match="changed while it was read") as caught:
        ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert caught.value.reason is Reason.INTEGRITY
    assert len(reads) >= loader.ATTEMPTS


@needs_symlinks
def test_a_folder_swapped_between_model_and_weights_gives_one_version(
    tmp_path: Path, meddle: Callable[[Callable[[int], None]], None]
) -> None:
    for name, value in (("one", 1.0), ("two", 2.0)):
        (tmp_path / name).mkdir()
        path = save(tmp_path / name, value, external=True)
        proto = onnx.load(path, load_external_data=False)
        proto.graph.node[0].op_type = "Add" if value == 1.0 else "Sub"
        onnx.save(proto, path)
    link = tmp_path / "link"
    link.symlink_to("one")

    def swap(_: int) -> None:
        now = link.readlink().name
        link.unlink()
        link.symlink_to("two" if now == "one" else "one")

    meddle(swap)
    with ort.InferenceSession(link / "m.onnx", providers=["CPUExecutionProvider"]) as session:
        assert answers(session) in ({1.0}, {-2.0})


def test_memory_that_its_owner_writes_to_changes_nothing(tmp_path: Path) -> None:
    data = bytearray(save(tmp_path, 1.0).read_bytes())
    with ort.InferenceSession(data, providers=["CPUExecutionProvider"]) as session:
        data[:] = save(tmp_path, 2.0).read_bytes()
        assert answers(session) == {1.0}


def test_weights_used_by_several_tensors_are_read_once(tmp_path: Path) -> None:
    """A file of 4 MB under 4,000 overlapping tensors would else take 16 GB."""
    (tmp_path / "w.bin").write_bytes(np.arange(1 << 20, dtype=np.float32).tobytes())
    weights = []
    for i in range(4000):
        tensor = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[(1 << 20) - 4000])
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in {"location": "w.bin", "offset": str(4 * i)}.items():
            tensor.external_data.add(key=key, value=text)
        weights.append(tensor)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["w7", "x"], ["a"]),
            helper.make_node("Gather", ["w3999", "x"], ["b"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "ab"],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with ort.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"]) as session:
        a, b = session.run(None, {"x": np.array([0, 100])})
    np.testing.assert_array_equal(a, [7, 107])
    np.testing.assert_array_equal(b, [3999, 4099])


@needs_symlinks
def test_the_cache_keeps_no_model_under_the_digest_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is known by the file's stamps, and then another file is read."""
    pytest.importorskip("openvino")
    monkeypatch.setattr(source_digest, "YOUNG_NS", -(1 << 60))  # remember what was just written
    link, store = tmp_path / "link", CacheStore(tmp_path / "cache")
    for name, value in (("one", 1.0), ("two", 2.0)):
        (tmp_path / name).mkdir()
        save(tmp_path / name, value)
    link.symlink_to("one")

    def start() -> tuple[str, str, set[float]]:
        found = options(tmp_path / "cache")
        with ort.InferenceSession(link / "m.onnx", found, providers=[OPENVINO]) as session:
            cache = session.load_report().cache
            return cache.state, cache.reason, answers(session)

    def point_to(name: str) -> None:
        link.unlink()
        link.symlink_to(name)

    def swapped(source: object, options: ort.SessionOptions) -> LoadedModel:
        point_to("two")
        found = load(source, options)
        point_to("one")
        return found

    assert start()[0] == "stored"
    for key in store.entry_keys():
        store.drop(key)
    load = loader.load
    with monkeypatch.context() as swapping:
        swapping.setattr(loader, "load", swapped)
        assert start() == ("missed", "it changed after it was digested", {2.0})
    assert start()[2] == {1.0}


@needs_symlinks
def test_the_cache_notices_that_a_link_leads_to_other_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openvino")
    monkeypatch.setattr(source_digest, "YOUNG_NS", -(1 << 60))
    found = []
    for value in (1.0, 2.0):
        path = save(tmp_path, value, external=True)
        (tmp_path / "w.bin").rename(tmp_path / f"w{value}.bin")
    for value in (1.0, 1.0, 2.0):
        (tmp_path / "w.bin").unlink(missing_ok=True)
        (tmp_path / "w.bin").symlink_to(f"w{value}.bin")
        with ort.InferenceSession(
            path, options(tmp_path / "cache"), providers=[OPENVINO]
        ) as session:
            found.append((session.load_report().cache.state, answers(session)))
    assert found == [("stored", {1.0}), ("hit", {1.0}), ("stored", {2.0})]


def mapping() -> ort.SessionOptions:
    found = ort.SessionOptions()
    found.add_session_config_entry("session.model_external_initializers_map", "1")
    return found


@needs_removal_while_open
def test_data_files_can_be_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path, 1.0, external=True)
    read: list[object] = []
    monkeypatch.setattr(external_file, "private_memory", lambda size: read.append(size))
    with ort.InferenceSession(path, mapping(), providers=["CPUExecutionProvider"]) as session:
        assert answers(session) == {1.0}
        (path.parent / "new").mkdir()
        save(path.parent / "new", 2.0, external=True)
        (path.parent / "new" / "w.bin").replace(path.parent / "w.bin")
        assert answers(session) == {1.0}
    assert not read


@needs_removal_while_open
@pytest.mark.parametrize("compiled", [False, True])
def test_a_mapped_data_file_that_changes_before_the_session_is_there_is_refused(
    tmp_path: Path, *, compiled: bool
) -> None:
    path, options = save(tmp_path, 1.0, external=True), mapping()
    options.set_progress_func(lambda *_: save(tmp_path, 2.0, external=True) and None)
    start = (
        ort.ModelCompiler(options, path).compile_to_bytes
        if compiled
        else partial(ort.InferenceSession, path, options, providers=["CPUExecutionProvider"])
    )
    with pytest.raises(InvalidGraph, match="changed while it was read") as caught:
        start()
    assert caught.value.reason is Reason.INTEGRITY
