"""Model files read in pieces: the same bytes and the same models as in one piece."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from system_limits import needs_removal_while_open

from ctx_formats import model_file, stamped_file
from ctx_formats.errors import FileChangedError, FormatError, Reason
from ctx_formats.model_file import read_model_file
from ctx_formats.model_reader import read_model
from ctx_formats.onnx_model import Tensor
from ctx_formats.stamped_file import StampedFile
from ctx_formats.wire import write_varint

if sys.platform == "linux":
    from ctx_formats.open_writers import is_open_elsewhere

if TYPE_CHECKING:
    from pathlib import Path

    from ctx_formats.model_file import ModelBytes
    from ctx_formats.onnx_model import Model

LONG = model_file.APART_FROM // 4 + 5
"""Elements of a float tensor that is by itself."""


def every_place() -> bytes:
    """A model with a long run in each place that one may be in, and short tensors between."""
    drawn = np.random.default_rng(3)

    def tensor(name: str, count: int = LONG) -> TensorProto:
        return numpy_helper.from_array(drawn.standard_normal(count).astype(np.float32), name)

    body = helper.make_graph(
        [helper.make_node("Identity", ["inner"], ["z"])],
        "body",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [LONG])],
        [tensor("inner")],
    )
    sparse = helper.make_sparse_tensor(
        tensor("sparse"), numpy_helper.from_array(np.arange(LONG), "indices"), [2 * LONG]
    )
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensor("in_node")),
        helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body),
        helper.make_node(
            "EPContext", [], ["p"], domain="com.microsoft", ep_cache_context=b"7" * 4 * LONG
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [LONG])],
        [tensor("a"), tensor("short", 7), tensor("b"), tensor("last", 3)],
        sparse_initializer=[sparse],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return made.SerializeToString()


def read(path: Path) -> ModelBytes:
    with StampedFile(path) as file:
        found = read_model_file(file)
        file.require_unchanged()
    return found


def test_a_file_in_pieces_has_all_its_bytes_and_gives_the_same_model(tmp_path: Path) -> None:
    data = every_place()
    (tmp_path / "m").write_bytes(data)
    found = read(tmp_path / "m")
    assert len(found) == len(data)
    assert b"".join(found.pieces()) == data
    assert len(found.runs) == 8
    assert read_model(found.view, runs=found.runs) == read_model(memoryview(data))


def test_a_long_tensor_begins_with_its_memory_and_keeps_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(every_place())
    found = read(tmp_path / "m")
    tensor = read_model(found.view, runs=found.runs).graph.initializers["b"]
    assert isinstance(tensor.data, memoryview)
    assert np.frombuffer(tensor.data, np.uint8).ctypes.data % 4096 == 0
    assert len(tensor.data.obj) == len(tensor.data)


def test_long_runs_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(every_place())
    with StampedFile(tmp_path / "m") as file:
        found = read_model_file(file, runs=False)
    assert not found.runs
    model = read_model(found.view)
    assert [node.op_type for node in model.graph.nodes] == ["Constant", "If", "EPContext"]


def outcome(data: memoryview, runs: dict[int, memoryview]) -> Model | str:
    try:
        return read_model(data, runs=runs)
    except FormatError as exc:
        return str(exc)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_read_as_in_one_piece(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    whole = every_place()
    (tmp_path / "m").write_bytes(whole)
    ends = [end for a, run in read(tmp_path / "m").runs.items() for end in (a, a + len(run))]
    headers = [at for end in (200, *ends) for at in range(end - 60, end + 60) if at < len(whole)]
    for _ in range(25):
        data = bytearray(whole)
        if drawn.random() < 0.3:
            del data[drawn.choice(headers) :]
        else:
            for _ in range(drawn.randrange(1, 4)):
                data[drawn.choice(headers)] = drawn.randrange(256)
        (tmp_path / "m").write_bytes(data)
        found = read(tmp_path / "m")
        expected = outcome(memoryview(bytes(data)), {})
        assert outcome(found.view, found.runs) == expected


def test_nesting_as_deep_as_the_file_is_long_is_refused_not_followed(tmp_path: Path) -> None:
    message = b"\x01" * (model_file.APART_FROM + 100)
    for _ in range(3000):
        for tag in (0x32, 0x2A, 0x0A):  # attribute.g, node.attribute, graph.node
            message = bytes([tag]) + write_varint(len(message)) + message
    (tmp_path / "m").write_bytes(b"\x3a" + write_varint(len(message)) + message)
    found = read(tmp_path / "m")
    with pytest.raises(FormatError, match="nested"):
        read_model(found.view, runs=found.runs)


def test_a_hole_takes_no_memory(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="Windows counts memory otherwise")
    size = 3 << 30
    with (tmp_path / "m").open("wb") as file:
        file.write(b"begin")
        file.truncate(size - 3)
        file.seek(size - 3)
        file.write(b"end")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with StampedFile(tmp_path / "m") as file:
        target = stamped_file.private_memory(size)
        file.read_into(target, 0)
    assert bytes(target[:6]) == b"begin\0"
    assert bytes(target[-4:]) == b"\0end"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10


@pytest.mark.parametrize("change", ["write", "truncate", "grow", "touch"])
def test_a_change_while_it_is_read_is_noticed(tmp_path: Path, change: str) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"a" * 5000)
    with StampedFile(path) as file:
        if change == "write":
            path.write_bytes(b"b" * 5000)
        elif change == "touch":
            os.utime(path)
        else:
            os.truncate(path, 100 if change == "truncate" else 9000)
        with pytest.raises(FileChangedError, match="changed while it was read") as caught:
            file.require_unchanged()
    assert caught.value.reason is Reason.INTEGRITY


def test_a_file_that_is_shorter_than_it_was_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"a" * 5000)
    with StampedFile(tmp_path / "m") as file:
        os.truncate(tmp_path / "m", 100)
        with pytest.raises(FileChangedError):
            file.read_into(memoryview(bytearray(5000)), 0)


@needs_removal_while_open
def test_a_file_that_was_replaced_is_still_the_one_that_was_opened(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"new")
    with StampedFile(tmp_path / "m") as file:
        (tmp_path / "new").replace(tmp_path / "m")
        target = bytearray(3)
        file.read_into(memoryview(target), 0)
        file.require_unchanged()
        assert target == b"old"
        with pytest.raises(FileChangedError):
            file.require_unchanged(in_place=True)


def test_tensors_are_equal_by_content() -> None:
    one, other = (Tensor("t", 1, (1,), memoryview(bytes([1, 2, 3, b]))) for b in (4, 5))
    assert one != other
    assert one == Tensor("t", 1, (1,), memoryview(bytearray([1, 2, 3, 4])))


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_file_that_another_process_writes_is_read_once_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of one write() the times say nothing."""
    for name in ("WRITERS", "LATELY_NS"):
        monkeypatch.setattr(stamped_file, name, 1 << 60)
    path = tmp_path / "m"
    path.write_bytes(b"a" * 5000)
    code = (
        "import os, sys; file = os.open(sys.argv[1], os.O_WRONLY); print('open', flush=True);"
        "sys.stdin.readline(); os.write(file, b'b' * 5000); os.close(file)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        with path.open("rb") as file:
            assert is_open_elsewhere(file.fileno())
        thread = threading.Thread(target=tell, args=(child.stdin,))
        thread.start()
        with StampedFile(path) as stamped:
            found = bytearray(5000)
            stamped.read_into(memoryview(found), 0)
            stamped.require_unchanged()
        thread.join()
    assert found == b"b" * 5000


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_write_that_ends_before_its_writer_is_asked_for_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"a" * 5000)
    os.utime(path, (1, 1))
    asked = []

    def written_meanwhile(*_: object) -> bool:
        if not asked:
            path.write_bytes(b"b" * 5000)
        asked.append(1)
        return False

    monkeypatch.setattr(stamped_file, "_is_within_tick", lambda _: False)
    monkeypatch.setattr(stamped_file, "_is_being_written", written_meanwhile)
    with StampedFile(path) as stamped:
        found = bytearray(5000)
        stamped.read_into(memoryview(found), 0)
        stamped.require_unchanged()
    assert found == b"b" * 5000
    assert len(asked) == 2


def tell(writer: IO[bytes]) -> None:
    writer.write(b"go\n")
    writer.flush()


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_file_that_this_process_has_open_is_read_at_once(tmp_path: Path) -> None:
    with (tmp_path / "m").open("wb") as writer:
        writer.write(b"a" * 5000)
        writer.flush()
        with (tmp_path / "m").open("rb") as file:
            assert not is_open_elsewhere(file.fileno())
