"""Weights that several compiled models have in common are stored once, and come back exactly."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from context_models import OPENVINO
from onnx import helper, numpy_helper
from signed_models import TRUST, make_key
from small_models import feed, model
from system_limits import needs_posix, needs_removal_while_open

import ort_lite as ort
from ctx_formats.container_reader import read_container

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto

SIDE = 512
COUNT = 16
"""Weights of one model: 16 x 1 MiB."""


def weights() -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(5)
    scale = np.float32(SIDE**-0.5)
    return {
        f"w{i}": random.standard_normal((SIDE, SIDE)).astype(np.float32) * scale
        for i in range(COUNT)
    }


def chain(order: Sequence[int], activation: str) -> ModelProto:
    """MatMuls with the weights in some order, an activation between them."""
    nodes, value = [], "x"
    for at, i in enumerate(order):
        last = "y" if at == len(order) - 1 else f"a{i}"
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node(activation, [f"m{i}"], [last]))
        value = last
    return model(nodes, [("x", [2, SIDE])], [("y", [2, SIDE])], weights())


def saved(folder: Path, name: str, proto: ModelProto) -> Path:
    """The model with its weights in weights.data, which all models of the folder share."""
    data = folder / "weights.data"
    if not data.exists():
        data.write_bytes(b"".join(array.tobytes() for array in weights().values()))
    for tensor in proto.graph.initializer:
        size = len(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        del tensor.external_data[:]
        offset = int(tensor.name[1:]) * size
        for key, value in (("location", data.name), ("offset", offset), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
    (folder / name).write_bytes(proto.SerializeToString())
    return folder / name


def compiled(path: Path, group: ort.SharedContexts | None) -> list[Any]:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    if group is not None:
        group.join(options)
    proto = onnx.load(path, load_external_data=False)
    with ort.InferenceSession(path, options, providers=[OPENVINO]) as session:
        return session.run(None, feed(proto))


def context(path: Path) -> Path:
    return path.with_name(f"{path.stem}_ctx.onnx")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[list[Any]]]:
    """Two models over one weights file, compiled as a group; the weights file gone."""
    folder = tmp_path_factory.mktemp("pair")
    paths = [
        saved(folder, "one.onnx", chain(range(COUNT), "Relu")),
        saved(folder, "two.onnx", chain(range(COUNT)[::-1], "Tanh")),
    ]
    with ort.SharedContexts() as group:
        results = [compiled(path, group) for path in paths]
    (folder / "weights.data").unlink()
    return paths, results


def payload(path: Path) -> Path:
    (found,) = path.parent.glob("*.bin")
    return found


def test_two_models_over_one_weights_file_take_the_room_of_one(
    pair: tuple[list[Path], list[list[Any]]], tmp_path: Path
) -> None:
    (first, _), _ = pair
    alone = saved(tmp_path, "one.onnx", chain(range(COUNT), "Relu"))
    compiled(alone, None)
    size, one = payload(first).stat().st_size, payload(alone).stat().st_size
    assert one > COUNT << 20
    assert size <= 1.2 * one
    found = read_container(memoryview(payload(first).read_bytes()))
    assert len(found.entries) == 2
    assert len(found.weights) == 1
    assert {entry.weights for entry in found.entries.values()} == {("0",)}


def test_they_come_back_bit_for_bit(pair: tuple[list[Path], list[list[Any]]]) -> None:
    for path, expected in zip(*pair, strict=True):
        proto = onnx.load(path, load_external_data=False)
        with ort.InferenceSession(context(path), providers=[OPENVINO]) as session:
            np.testing.assert_array_equal(session.run(None, feed(proto))[0], expected[0])


@needs_posix
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc/self/smaps here")
def test_sessions_of_a_group_hold_one_copy_of_the_file_in_memory(
    pair: tuple[list[Path], list[list[Any]]],
) -> None:
    """Maps may be several (OpenVINO makes one per import); the pages behind them are one set."""
    paths, results = pair
    with ort.SharedContexts() as group:
        options = group.join(ort.SessionOptions())
        sessions = [
            ort.InferenceSession(context(path), options, providers=[OPENVINO]) for path in paths
        ]
        assert group.payload_files.reads == 1
    for session, path, expected in zip(sessions, paths, results, strict=True):
        proto = onnx.load(path, load_external_data=False)
        np.testing.assert_array_equal(session.run(None, feed(proto))[0], expected[0])
    shares, private = mapped(payload(paths[0]))
    size = payload(paths[0]).stat().st_size
    assert 0 < shares <= 1.02 * size
    assert private == 0
    for session in sessions:
        session.close()


def mapped(path: Path) -> tuple[int, int]:
    """Bytes of memory behind all maps of a file, and those that are no longer the file's."""
    shares = private = 0
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = line.endswith(os.fspath(path))
        elif inside and line.startswith("Pss:"):
            shares += int(line.split()[1]) << 10
        elif inside and line.startswith("Anonymous:"):
            private += int(line.split()[1]) << 10
    return shares, private


@needs_removal_while_open
def test_the_file_may_lose_its_name_while_sessions_load(
    pair: tuple[list[Path], list[list[Any]]], tmp_path: Path
) -> None:
    """OpenVINO is given the very file that was checked, not what has its name by then."""
    paths, results = pair
    copies = [tmp_path / context(path).name for path in paths]
    for copy, path in zip(copies, paths, strict=True):
        copy.write_bytes(context(path).read_bytes())
    data = payload(paths[0]).read_bytes()
    place = tmp_path / payload(paths[0]).name
    place.write_bytes(data)
    with (
        ort.SharedContexts() as group,
        ort.InferenceSession(
            copies[0], group.join(ort.SessionOptions()), providers=[OPENVINO]
        ) as session,
    ):
        place.unlink()
        proto = onnx.load(paths[0], load_external_data=False)
        np.testing.assert_array_equal(session.run(None, feed(proto))[0], results[0][0])


def test_damaged_weights_are_refused(
    pair: tuple[list[Path], list[list[Any]]], tmp_path: Path
) -> None:
    paths, _ = pair
    (tmp_path / "c.onnx").write_bytes(context(paths[0]).read_bytes())
    data = bytearray(payload(paths[0]).read_bytes())
    run = read_container(memoryview(bytes(data))).weights["0"]
    data[run.offset + run.size // 2] ^= 1
    (tmp_path / payload(paths[0]).name).write_bytes(data)
    with pytest.raises(ort.InvalidGraph, match="weights '0'") as refused:
        ort.InferenceSession(tmp_path / "c.onnx", providers=[OPENVINO])
    assert refused.value.reason == "integrity"
    (verdict,) = ort.check_compatibility(tmp_path / "c.onnx")
    assert verdict.reason == "integrity"


def test_weights_of_another_group_are_refused(
    pair: tuple[list[Path], list[list[Any]]], tmp_path: Path
) -> None:
    """A whole, sound payload file with the same partitions and payloads, and other weights."""
    paths, _ = pair
    other = chain(range(COUNT), "Relu")
    for tensor in other.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(tensor), tensor.name))
    path = tmp_path / "one.onnx"
    path.write_bytes(other.SerializeToString())
    with ort.SharedContexts() as group:
        compiled(path, group)
    context(path).write_bytes(context(paths[0]).read_bytes())
    with pytest.raises(ort.InvalidGraph) as refused:
        ort.InferenceSession(context(path), providers=[OPENVINO])
    assert refused.value.reason == "integrity"


def test_a_payload_with_shared_weights_does_not_load_from_memory(
    pair: tuple[list[Path], list[list[Any]]],
) -> None:
    path = pair[0][0]
    data = payload(path).read_bytes()

    def read(name: str, buffer: ort.OrtEpContextDataBuffer) -> None:
        buffer.allocate(len(data))
        buffer.write(data)

    options = ort.SessionOptions()
    options.set_ep_context_data_read_func(read)
    with pytest.raises(ort.InvalidGraph, match="shared, and the container is not a file"):
        ort.InferenceSession(context(path), options, providers=[OPENVINO])


def test_what_shares_nothing_worth_it_is_kept_whole(tmp_path: Path) -> None:
    small = {"w": np.ones((4, 4), np.float32)}
    proto = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", [2, 4])], [("y", [2, 4])], small
    )
    path = tmp_path / "small.onnx"
    path.write_bytes(proto.SerializeToString())
    with ort.SharedContexts() as group:
        expected = compiled(path, group)
    found = read_container(memoryview(payload(path).read_bytes()))
    assert not found.weights
    with ort.InferenceSession(context(path), providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, feed(proto))[0], expected[0])


def test_payloads_with_shared_weights_pass_a_probe_only_with_a_trusted_signature(
    pair: tuple[list[Path], list[list[Any]]], tmp_path: Path
) -> None:
    """A probe's child cannot try them; who wrote them has to be known by more than a seal."""
    folder = shutil.copytree(context(pair[0][0]).parent, tmp_path / "shipped")
    path = folder / context(pair[0][0]).name
    options = ort.SessionOptions()
    options.add_session_config_entry("session.ep_context_probe", "auto")
    with pytest.raises(ort.NotImplemented, match="cannot try payloads whose weights are shared"):
        ort.InferenceSession(path, options, providers=[OPENVINO])
    key = make_key(tmp_path, "release")
    key.sign(path)
    options.add_session_config_entry(TRUST, str(key.public))
    ort.InferenceSession(path, options, providers=[OPENVINO]).close()
    options.add_session_config_entry("session.ep_context_probe", "always")
    with pytest.raises(ort.NotImplemented, match="cannot try payloads whose weights are shared"):
        ort.InferenceSession(path, options, providers=[OPENVINO])
