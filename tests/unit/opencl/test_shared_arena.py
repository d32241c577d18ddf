"""One arena for the sessions of a device (`session.use_env_allocators`), against onnxruntime."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from small_models import model

import ort_lite as ort
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from eps.opencl import FACTORY
from eps.opencl.cl.devices import Device
from eps.opencl.payload.table import decode_spec, encode_spec
from eps.opencl.program_spec import (
    ArenaFill,
    ArenaSpan,
    LaunchSpec,
    ProgramSpec,
    WeightArgument,
    weight_of,
)
from eps.opencl.runtime.executable import Executable
from eps.opencl.runtime.room import own_bytes

if TYPE_CHECKING:
    from pathlib import Path

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
OPENCL = ["OpenCLExecutionProvider"]
Array = np.ndarray[Any, np.dtype[Any]]


def shared_options(**entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.placement", "all")
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    return options


def dense(width: int, seed: int = 1, rows: int | str = 256) -> bytes:
    """y = Tanh(Exp(x @ w))."""
    w = np.random.default_rng(seed).standard_normal((width, width)).astype(np.float32) / width
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("Tanh", ["b"], ["y"]),
    ]
    made = model(nodes, [("x", [rows, width])], [("y", [rows, width])], {"w": w})
    return bytes(made.SerializeToString())


def convolutions(seed: int = 2) -> bytes:
    """Padded convolutions and a pooling, whose borders stay from run to run."""
    random = np.random.default_rng(seed)
    first = random.standard_normal((8, 3, 3, 3)).astype(np.float32)
    second = random.standard_normal((8, 8, 5, 5)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "f"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["b", "s"], ["c"], pads=[2, 2, 2, 2]),
        helper.make_node("Softmax", ["c"], ["y"]),
    ]
    shape = [1, 3, 32, 32]
    made = model(nodes, [("x", shape)], [("y", [1, 8, 32, 32])], {"f": first, "s": second})
    return bytes(made.SerializeToString())


def open_session(content: bytes, options: ort.SessionOptions | None = None) -> ort.InferenceSession:
    return ort.InferenceSession(content, options or shared_options(), providers=OPENCL)


def draw(session: ort.InferenceSession, seed: int) -> Array:
    (info,) = session.get_inputs()
    shape = [size if isinstance(size, int) else 64 for size in info.shape]
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def peer_answer(content: bytes, x: Array) -> Array:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    answer: Array = session.run(None, {"x": x})[0]
    return answer


def assert_right(content: bytes, session: ort.InferenceSession, seed: int = 0) -> None:
    x = draw(session, seed)
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, peer_answer(content, x), rtol=2e-4, atol=2e-5)


def arena_of(session: ort.InferenceSession) -> int:
    (device,) = session.memory_report().devices
    assert device.arena is not None
    return device.arena


def live(session: ort.InferenceSession) -> int:
    (device,) = session.memory_report().devices
    assert device.device_live is not None
    return device.device_live


def test_sessions_need_the_largest_arena_and_give_it_back() -> None:
    small, large = dense(64), dense(256)
    with open_session(large, ort.SessionOptions()) as alone:
        own = arena_of(alone)
    with open_session(small) as first:
        before, weights = live(first), 256 * 256 * 4
        with open_session(large) as second, open_session(large) as third:
            assert arena_of(second) == arena_of(first) == arena_of(third) == own
            added = live(first) - before
            assert added < own + 2.5 * weights, "one arena and two times the weights"
            for content, session in ((small, first), (large, second), (large, third)):
                assert_right(content, session)
        assert live(first) <= before
        assert_right(small, first)
        assert arena_of(first) < own


def test_a_session_without_the_entry_has_an_arena_of_its_own() -> None:
    content = dense(64)
    with open_session(content) as shared, open_session(content, ort.SessionOptions()) as alone:
        before = live(shared)
        with open_session(content, ort.SessionOptions()) as other:
            assert live(shared) - before >= arena_of(other)
        notes = [note for one in (shared, alone) for note in one.memory_report().devices[0].notes]
        assert notes == [
            "OpenCL: the arena is shared by the sessions with session.use_env_allocators"
        ]


def test_partitions_of_a_session_count_their_arena_once() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Unique", ["a"], ["b"], sorted=1),
        helper.make_node("ReduceMax", ["b"], ["m"], keepdims=0),
        helper.make_node("Mul", ["a", "m"], ["y"]),
    ]
    shape = [512, 512]
    content = model(nodes, [("x", shape)], [("y", shape)], {}).SerializeToString()
    with open_session(content) as session:
        partitions = session._present().prepared.partitions
        assert [p.ep.name for p in partitions].count(OPENCL[0]) == 2
        report = session.memory_report()
        (device,) = [one for one in report.devices if one.provider == OPENCL[0]]
        assert device.arena is not None
        assert device.arena < 3 * 512 * 512 * 4, "each partition needs two tensors"
        assert device.peak is not None
        assert device.peak >= device.arena
        assert_right(content, session)


def test_programs_for_several_shapes_share_it() -> None:
    content = dense(128, rows="rows")
    with open_session(content) as session:
        sizes = []
        for rows in (512, 64, 256):
            x = np.random.default_rng(rows).standard_normal((rows, 128)).astype(np.float32)
            (y,) = session.run(None, {"x": x})
            np.testing.assert_allclose(y, peer_answer(content, x), rtol=2e-4, atol=2e-5)
            sizes.append(arena_of(session))
    assert sizes[0] == sizes[1] == sizes[2]


def test_runs_at_the_same_time_are_right() -> None:
    contents = [dense(64), convolutions(2), dense(128, 3), convolutions(4)]
    sessions = [open_session(content) for content in contents]
    inputs = [[draw(one, seed) for seed in range(4)] for one in sessions]
    expected = [
        [peer_answer(content, x) for x in mine]
        for content, mine in zip(contents, inputs, strict=True)
    ]

    def run(number: int) -> bool:
        which, seed = number % len(sessions), number // len(sessions) % 4
        (y,) = sessions[which].run(None, {"x": inputs[which][seed]})
        return bool(np.allclose(y, expected[which][seed], rtol=2e-4, atol=2e-5))

    def come_and_go(number: int) -> bool:
        """Arenas grow and shrink while others run."""
        content = dense(256 + 64 * (number % 3))
        with open_session(content) as session:
            assert_right(content, session, number)
        return True

    with ThreadPoolExecutor(5) as pool:
        guests = pool.map(come_and_go, range(3))
        assert all(pool.map(run, range(96)))
        assert all(guests)
    for session in sessions:
        session.close()


def test_runs_on_queues_of_their_own_wait_for_each_other() -> None:
    """With `command_queue` a run returns before its kernels have ended."""
    listed = next(one for one in ort.get_ep_devices() if one.ep_name == OPENCL[0])
    contents = [dense(256), convolutions()]
    streams = [listed.create_sync_stream() for _ in contents]
    place = listed.memory_info(ort.OrtDeviceMemoryType.DEFAULT)
    assert place is not None
    bindings, results, sessions = [], [], []
    for content, stream in zip(contents, streams, strict=True):
        options = {**listed.ep_options, "command_queue": str(stream.get_handle())}
        made = ort.InferenceSession(content, shared_options(), providers=[(OPENCL[0], options)])
        x = ort.OrtValue.ortvalue_from_numpy(draw(made, 7), "opencl", place.device_id)
        (output,) = made.get_outputs()
        y = ort.OrtValue.ortvalue_from_shape_and_type(output.shape, np.float32, memory_info=place)
        binding = made.io_binding()
        binding.bind_ortvalue_input("x", x)
        binding.bind_ortvalue_output("y", y)
        bindings.append(binding)
        results.append(y)
        sessions.append(made)
    for _ in range(10):
        for session, binding in zip(sessions, bindings, strict=True):
            session.run_with_iobinding(binding)
    for content, session, y in zip(contents, sessions, results, strict=True):
        expected = peer_answer(content, draw(session, 7))
        np.testing.assert_allclose(y.numpy(), expected, rtol=2e-4, atol=2e-5)
    for session in sessions:
        session.close()


def test_bound_tensors_stay_bound_when_the_arena_moves() -> None:
    content = dense(64)
    with open_session(content) as session:
        x = ort.OrtValue.ortvalue_from_numpy(draw(session, 3), "opencl", 0)
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", x)
        binding.bind_output("y", "opencl", 0)
        session.run_with_iobinding(binding)
        with open_session(dense(512)):
            session.run_with_iobinding(binding)
            expected = peer_answer(content, x.numpy())
            y = binding.get_outputs()[0].numpy()
            np.testing.assert_allclose(y, expected, rtol=2e-4, atol=2e-5)
        assert_right(content, session)


def test_a_reloaded_context_shares_it_too(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(convolutions())
    writing = {"ep.context_enable": "1", "ep.context_file_path": str(tmp_path / "c.onnx")}
    with open_session(convolutions(), shared_options(**writing)) as compiled:
        own = arena_of(compiled)
    with ort.InferenceSession(tmp_path / "c.onnx", shared_options(), providers=OPENCL) as made:
        assert arena_of(made) == own
        with open_session(dense(256)) as other:
            assert_right(convolutions(), made)
            assert_right(dense(256), other)
            assert_right(convolutions(), made, 1)


def test_what_does_not_fit_leaves_others_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    content = dense(64)
    with open_session(content) as session:
        room = live(session) + 1000
        with monkeypatch.context() as patch:
            patch.setattr(Device, "global_mem_size", property(lambda _: room))
            with pytest.raises(ort.EPFail, match=r"needs \d+ bytes on .* close other sessions"):
                ort.InferenceSession(
                    dense(512), shared_options(), providers=OPENCL, enable_fallback=0
                )
        assert_right(content, session)
        assert live(session) <= room


@pytest.mark.parametrize("byte", [0x7F, 0xFF])
@pytest.mark.parametrize("content", [dense(48), convolutions()], ids=["dense", "convolutions"])
def test_no_program_relies_on_what_others_may_overwrite(
    content: bytes, byte: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each run the memory that is not the program's own is filled."""
    filled = []

    def fill(executable: Executable) -> None:
        kept = executable.spec.kept
        assert kept is not None
        buffer, offset = executable._locate(kept)
        rest = executable.spec.arena - kept
        executable._queue.fill(buffer, byte, offset, rest)
        filled.append(rest)

    real = Executable._write

    def write(executable: Executable, inputs: Any) -> None:
        fill(executable)
        real(executable, inputs)

    monkeypatch.setattr(Executable, "_write", write)
    with open_session(content) as session:
        assert_right(content, session)
        assert_right(content, session, 1)
    assert len(filled) == 2
    assert min(filled) > 0


CALL = LaunchSpec(
    kernel="k0123456789ab", tasks=1, group=1, arguments=(ArenaSpan(0, 64), ArenaSpan(64, 128))
)
SPEC = ProgramSpec(
    source="", options="", calls=(CALL,), arena=192, weights=(), inputs=(), outputs=()
)


def test_a_table_says_what_is_kept_and_older_tables_keep_all() -> None:
    for spec in (SPEC, replace(SPEC, kept=64), replace(SPEC, kept=0)):
        assert decode_spec(encode_spec(spec), "", (), 64) == spec
    assert "kept" not in encode_spec(SPEC)
    with open_session(dense(64)) as session:
        (partition,) = session._present().prepared.partitions
        arena = partition.compiled.executable.shared_arena  # type: ignore[attr-defined] # OpenCL's
    assert own_bytes(SPEC, arena) == SPEC.arena
    assert own_bytes(replace(SPEC, kept=64), arena) == 64
    assert own_bytes(replace(SPEC, kept=64), None) == SPEC.arena


@pytest.mark.parametrize("row", [[False, 64], [0.0, 64], [0, 64.0], [0, True], False, 0.0])
def test_a_table_whose_argument_is_no_number_is_refused_after_one_that_equals_it(
    row: object,
) -> None:
    """Arguments that were read before are found by their numbers, which 0.0 and False equal."""
    weight = weight_of(memoryview(b"12345678"))
    arguments = (WeightArgument(0), ArenaSpan(0, 64), WeightArgument(0), ArenaSpan(0, 64))
    spec = replace(SPEC, weights=(weight,), calls=(replace(CALL, arguments=arguments),))
    table = encode_spec(spec)
    decoded = decode_spec(table, "", (weight,), 64)
    assert decoded == spec
    first, second, third, last = decoded.calls[0].arguments
    assert first is third
    assert second is last
    table["calls"][0][3].append(row)  # type: ignore[index] # JSON
    with pytest.raises(FormatError, match="place"):
        decode_spec(table, "", (weight,), 64)


@pytest.mark.parametrize("kept", [-1, 32, 128, 256, "64", None])
def test_a_table_that_cuts_a_buffer_is_refused(kept: object) -> None:
    with pytest.raises(FormatError, match="kept"):
        decode_spec({**encode_spec(SPEC), "kept": kept}, "", (), 64)


def test_a_table_whose_filled_bytes_are_not_kept_is_refused() -> None:
    spec = replace(SPEC, fills=(ArenaFill(ArenaSpan(0, 64), 255),), kept=64)
    assert decode_spec(encode_spec(spec), "", (), 64) == spec
    with pytest.raises(FormatError, match="cuts no buffer"):
        decode_spec({**encode_spec(spec), "kept": 0}, "", (), 64)
