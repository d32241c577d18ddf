"""Objects around sessions that onnxruntime has: arenas, pools of threads, streams, listings."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as theirs
from small_models import feed, mlp

import ort_lite as ort
from ort_lite import global_threads
from ort_lite.capi import onnxruntime_pybind11_state as ours
from ort_lite.providers.devices import vendor_and_model

if TYPE_CHECKING:
    from pathlib import Path

CPU = ["CPUExecutionProvider"]
BOTH = pytest.mark.parametrize("module", [ort, onnxruntime], ids=["ort_lite", "onnxruntime"])
BINDINGS = pytest.mark.parametrize("binding", [ours, theirs], ids=["ort_lite", "onnxruntime"])
SIZES = (
    *("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk"),
    *("initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes"),
)


@pytest.mark.parametrize(
    "given",
    [(8, 1, 4, 12), (0, -1, -1, -1), ({},), ({"max_mem": 5, "arena_extend_strategy": 1},)],
)
def test_an_arena_has_their_numbers(given: Any) -> None:
    mine, expected = ort.OrtArenaCfg(*given), onnxruntime.OrtArenaCfg(*given)
    for name in SIZES:
        assert getattr(mine, name) == getattr(expected, name), name


@BOTH
def test_an_arena_that_cannot_be_is_refused(module: Any) -> None:
    with pytest.raises(RuntimeError, match="Invalid OrtArenaCfg option: size"):
        module.OrtArenaCfg({"size": 1})
    for wrong in ({"max_mem": -1}, {"max_mem": "8"}):
        with pytest.raises(RuntimeError):
            module.OrtArenaCfg(wrong)
    with pytest.raises(TypeError):
        module.OrtArenaCfg(1, 2)


def test_arenas_grow_by_their_names() -> None:
    for name in ("kNextPowerOfTwo", "kSameAsRequested"):
        assert int(getattr(ours, name)) == int(getattr(theirs, name))
        assert str(getattr(ours.ArenaExtendStrategy, name)) == f"ArenaExtendStrategy.{name}"


@BOTH
def test_an_allocator_is_checked_and_taken(module: Any) -> None:
    def info(name: str) -> Any:
        kind = module.OrtAllocatorType.ORT_ARENA_ALLOCATOR
        return module.OrtMemoryInfo(name, kind, 0, module.OrtMemType.DEFAULT)

    arena = module.OrtArenaCfg({})
    module.create_and_register_allocator(info("Cpu"), arena)
    module.create_and_register_allocator(info("Cpu"), None)
    module.create_and_register_allocator_v2("CPUExecutionProvider", info("Cpu"), {}, arena)
    with pytest.raises(RuntimeError, match="Only CPU devices are supported"):
        module.create_and_register_allocator(info("Cuda"), arena)
    with pytest.raises(RuntimeError, match="CUDAExecutionProvider is not implemented in"):
        module.create_and_register_allocator_v2("CUDAExecutionProvider", info("Cuda"), {}, arena)
    with pytest.raises(TypeError):
        module.create_and_register_allocator(3, arena)


PROGRAM = """
import sys
import numpy as np
module = __import__(sys.argv[1])
model, x = open(sys.argv[2], "rb").read(), np.load(sys.argv[3])
providers = ["CPUExecutionProvider"]
def session(per_session):
    options = module.SessionOptions()
    options.use_per_session_threads = per_session
    return module.InferenceSession(model, options, providers=providers)
def refused(call, *given):
    try:
        call(*given)
    except Exception as exc:
        return str(exc)
    raise SystemExit(f"{call} {given} was not refused")
print("must be" in refused(session, False))
module.set_global_thread_pool_sizes(2, 2)
print(session(False).run(None, {"x": x})[0].shape)
print("use_per_session_threads must be false" in refused(session, True))
print("already been created, cannot replace" in refused(module.set_global_thread_pool_sizes, 1, 1))
"""


@pytest.mark.parametrize("name", ["ort_lite", "onnxruntime"])
def test_threads_of_the_process_are_heeded(name: str, tmp_path: Path) -> None:
    """In a process of its own: they stay set."""
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    np.save(tmp_path / "x.npy", feed(mlp())["x"])
    told = [sys.executable, "-c", PROGRAM, name, str(tmp_path / "m.onnx"), str(tmp_path / "x.npy")]
    done = subprocess.run(told, capture_output=True, text=True, check=True)
    answers = [line for line in done.stdout.splitlines() if line in ("True", "False", "(2, 3)")]
    assert answers == ["True", "(2, 3)", "True", "True"]


def test_threads_of_the_process_are_those_of_its_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_threads, "_shared", [])
    with pytest.raises(ort.InvalidArgument, match="expected 0 or more"):
        ort.set_global_thread_pool_sizes(-1)
    ort.set_global_thread_pool_sizes(3, 2)
    options = ort.SessionOptions()
    options.use_per_session_threads = False
    options.intra_op_num_threads = 7
    shared = global_threads.with_global_threads(options)
    assert (shared.intra_op_num_threads, shared.inter_op_num_threads) == (3, 2)
    assert options.intra_op_num_threads == 7


@BOTH
def test_there_are_no_streams(module: Any) -> None:
    device = next(d for d in module.get_ep_devices() if d.ep_name == CPU[0])
    for kind in (module.OrtDeviceMemoryType.DEFAULT, module.OrtDeviceMemoryType.HOST_ACCESSIBLE):
        assert device.memory_info(kind) is None
    with pytest.raises(RuntimeError, match="does not use DEFAULT memory of a non-CPU device"):
        device.create_sync_stream()
    with pytest.raises(TypeError, match="No constructor defined"):
        module.OrtSyncStream()
    value = module.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    with pytest.raises(RuntimeError, match="Invalid arguments provided to CopyTensors"):
        module.copy_tensors([value], [], None)


def test_tensors_are_copied() -> None:
    """onnxruntime copies between devices alone: "Data transfer implementation ... not found"."""
    make = ort.OrtValue.ortvalue_from_numpy
    source, place = make(np.arange(3, dtype=np.float32)), make(np.zeros(3, np.float32))
    ort.copy_tensors([source], [place])
    assert place.numpy().tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"update with tensor\(float\)\[3\], expected"):
        ort.copy_tensors([source], [make(np.zeros(4, np.float32))])
    with pytest.raises(TypeError, match="OrtSyncStream"):
        ort.copy_tensors([], [], 3)  # type: ignore[arg-type] # the point
    wrong: list[Any]
    for wrong in ([None], [np.zeros(3, np.float32)]):
        with pytest.raises(TypeError, match="an OrtValue is expected, not "):
            ort.copy_tensors(wrong, [place])
        with pytest.raises(TypeError, match="an OrtValue is expected, not "):
            ort.copy_tensors([source], wrong)


@BOTH
def test_what_a_session_of_the_cpu_does_not_have(module: Any) -> None:
    session = module.InferenceSession(mlp().SerializeToString(), providers=CPU)
    assert len(session.get_input_epdevices()) == 1
    assert session.get_tuning_results() == []
    assert session.release_captured_graph() is None
    session.set_tuning_results([])
    results = [{"ep": "CUDAExecutionProvider", "results": {}, "validators": {}}]
    with pytest.raises(Exception, match="Cannot find execution provider CUDAExecutionProvider"):
        session.set_tuning_results(results, error_on_invalid=True)
    value = session.create_ortvalue_from_shape_and_type([2, 3], np.float32, "cpu")
    assert value.shape() == [2, 3]
    module.preload_dlls()


def test_a_library_of_operators_is_refused_with_the_way_out(tmp_path: Path) -> None:
    library = tmp_path / "libops.so"
    options = ort.SessionOptions()
    with pytest.raises(ort.Fail, match=r"Failed to load library .*libops\.so with error"):
        options.register_custom_ops_library(library)
    library.write_bytes(b"")
    with pytest.raises(ort.Fail, match=r"docs/custom_kernels\.md"):
        options.register_custom_ops_library(str(library))


@BINDINGS
def test_kernels_are_listed(binding: Any) -> None:
    listed = binding.get_registered_ep_kernel_defs(CPU[0])
    conv = [entry for entry in listed if (entry.op_name, entry.domain) == ("Conv", "")]
    assert conv
    assert all(entry.provider == CPU[0] for entry in conv)
    assert max(entry.version_range[1] for entry in conv) >= 22
    assert isinstance(conv[0].type_constraints, dict)
    assert len(binding.get_all_opkernel_def()) >= len(listed)
    with pytest.raises(RuntimeError, match="No devices found for EP 'NoExecutionProvider'"):
        binding.get_registered_ep_kernel_defs("NoExecutionProvider")


@BINDINGS
def test_schemas_are_listed(binding: Any) -> None:
    schemas = binding.get_all_operator_schema()
    versions = {s.since_version for s in schemas if (s.domain, s.name) == ("", "Conv")}
    assert {1, 11, 22} <= versions
    (add,) = (s for s in schemas if (s.domain, s.name, s.since_version) == ("", "Add", 14))
    assert [argument.name for argument in add.inputs] == ["A", "B"]


def test_an_ep_of_whole_graphs_lists_no_kernels() -> None:
    assert ours.get_registered_ep_kernel_defs("OpenVINOExecutionProvider") == []


def test_the_processor_is_one_device() -> None:
    """Whichever execution providers run on it, and described as onnxruntime does."""
    processors = [d for d in ort.get_hardware_devices() if d.type == ort.OrtHardwareDeviceType.CPU]
    (mine,) = processors
    expected = next(d for d in theirs.get_hardware_devices() if int(d.type) == 0)
    assert (mine.vendor, mine.vendor_id) == (expected.vendor, expected.vendor_id)
    for device in ort.get_ep_devices():
        if device.device.type == ort.OrtHardwareDeviceType.CPU:
            details = ours.get_hardware_device_ep_incompatibility_details(device.ep_name, mine)
            assert details == {"reasons_bitmask": 0, "notes": None, "error_code": 0}


@BINDINGS
def test_arguments_of_device_questions_are_checked(binding: Any) -> None:
    with pytest.raises(TypeError, match="get_model_compatibility_for_ep_devices"):
        binding.get_model_compatibility_for_ep_devices(binding.get_ep_devices()[-1:], None)


def test_no_execution_provider_is_a_runtime_error() -> None:
    device = ort.get_hardware_devices()[0]
    with pytest.raises(RuntimeError, match="No valid factory found for execution provider ''"):
        ours.get_hardware_device_ep_incompatibility_details("", device)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nvendor_id : x\n", ("AMD", "EPYC")),
        ("CPU implementer\t: 0x41\n", ("ARM", "")),
    ],
)
def test_processors_are_told_by_their_codes(
    text: str, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.processor", lambda: "")
    file = tmp_path / "cpuinfo"
    file.write_text(text, encoding="utf-8")
    assert vendor_and_model(file) == expected
    assert vendor_and_model(tmp_path / "absent") == ("", "")
