"""A large program is built in parts by processes, which leave nothing behind and may all fail."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from blake3 import blake3
from onnx import helper
from onnx.reference import ReferenceEvaluator
from opencl_devices import all_devices
from small_models import model
from system_limits import WINDOWS

import ort_lite as ort
from ctx_formats.errors import FormatError
from eps.opencl import provider
from eps.opencl.compile.codegen import divide_functions
from eps.opencl.payload.format import ALIGNMENT, HEAD, read_payload
from eps.opencl.program_spec import ENTRY
from eps.opencl.runtime import build_processes, builder, describe_target, program
from eps.opencl.runtime.build_processes import SIZE, BuildProcesses
from eps.opencl.trials.record import facts_of
from ort_lite.ep import start_module
from ort_lite.model import loader

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from onnx import ModelProto

OPENCL = "OpenCLExecutionProvider"
INTEL = [d for d in all_devices() if d.kind == "CPU" and d.platform.vendor.startswith("Intel")]
pytestmark = [
    pytest.mark.skipif(not INTEL, reason="needs Intel's OpenCL runtime"),
    pytest.mark.skipif(WINDOWS, reason="on Windows each program is built in one process"),
]
LONG = " ".join(f"x[{i}] = sin(x[{i + 1}]) * pow(x[{i}], x[{i + 2}]);" for i in range(40))
"""Work for the driver's compiler."""
BROKEN = """
import sys
sys.exit("as a driver that cannot compile")
"""


def several_kernels() -> ModelProto:
    """Products and rows of different sizes, each a function of its own."""
    sizes = (24, 40, 17, 9)
    random = np.random.default_rng(5)
    nodes, weights, name = [], {}, "x"
    for i, (rows, columns) in enumerate(pairwise(sizes)):
        weights[f"w{i}"] = random.standard_normal((rows, columns)).astype(np.float32)
        nodes.append(helper.make_node("MatMul", [name, f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("Softmax", [f"p{i}"], [f"s{i}"]))
        name = f"s{i}"
    return model(nodes, [("x", [6, sizes[0]])], [(name, [6, sizes[-1]])], weights)


MODEL = several_kernels()
FEED = {"x": np.random.default_rng(6).standard_normal((6, 24)).astype(np.float32)}


@pytest.fixture(scope="module", autouse=True)
def small_parts() -> Iterator[None]:
    """Two processes for every program, on any number of cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "MANY_NODES", 1)
        patch.setattr(builder, "DIFFERENT_NODES", 1)
        patch.setattr(divide_functions, "LETTERS_OF_A_PART", 1)
        patch.setattr(describe_target, "_usable_cores", lambda: 2)
        yield


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that a test starts, none of which may be left at its end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        started.append(start_module(*arguments))
        return started[-1]

    monkeypatch.setattr(build_processes, "start_module", start)
    yield started
    assert all(process.returncode is not None for process in started)


@pytest.fixture(scope="module")
def whole(small_parts: None) -> Any:
    """The answer of one program that is built in this process."""
    return make(build_processes="1")


@pytest.fixture(scope="module")
def contexts(small_parts: None, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two contexts of the same compile."""
    folder = tmp_path_factory.mktemp("contexts")
    paths = [folder / "a_ctx.onnx", folder / "b_ctx.onnx"]
    for path in paths:
        make(path)
    return paths


def make(path: Path | None = None, **options: str) -> Any:
    """The answer of a newly compiled session, which writes a context to `path`."""
    config = ort.SessionOptions()
    config.add_session_config_entry("session.placement", "all")
    if path is not None:
        config.add_session_config_entry("ep.context_enable", "1")
        config.add_session_config_entry("ep.context_file_path", str(path))
    providers = [(OPENCL, {"device": INTEL[0].name, **options})]
    with ort.InferenceSession(MODEL.SerializeToString(), config, providers=providers) as session:
        return session.run(None, FEED)[0]


def reload(path: Path, **options: str) -> Any:
    providers = [(OPENCL, {"device": INTEL[0].name, **options})]
    with ort.InferenceSession(path, providers=providers) as session:
        return session.run(None, FEED)[0]


def bytes_of(path: Path) -> memoryview:
    """The payload in a context's file."""
    file = path.with_name(f"{path.stem}_{OPENCL}.bin").read_bytes()
    begin = file.index(b"OLOPENCL")
    size = int.from_bytes(file[begin + 16 : begin + 24], "little")
    return memoryview(file)[begin : begin + size]


def test_parts_that_processes_build_compute_what_one_program_does(
    whole: Any, processes: list[subprocess.Popen[bytes]]
) -> None:
    found = make()
    assert len(processes) == 2
    (right,) = ReferenceEvaluator(MODEL).run(None, FEED)
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    assert found.tobytes() == whole.tobytes()


@pytest.mark.parametrize("options", [{}, {"rebuild": "true"}])
def test_parts_are_reloaded(contexts: list[Path], whole: Any, options: dict[str, str]) -> None:
    assert reload(contexts[0], **options).tobytes() == whole.tobytes()


def test_the_source_is_built_as_one_program_for_another_driver(
    contexts: list[Path], whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "require_fit", lambda *_, rebuild: not rebuild)
    assert reload(contexts[0], rebuild="true").tobytes() == whole.tobytes()


def test_a_payload_has_a_binary_of_each_part(contexts: list[Path]) -> None:
    (variant,) = read_payload(bytes_of(contexts[0]), 128).variants
    assert len(variant.binaries) == len(variant.spec.parts) == 2
    numbers = [number for part in variant.spec.parts for number in part.functions]
    assert sorted(numbers) == list(range(len(variant.spec.functions)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda parts: parts[0]["functions"].pop(), "a function in no part"),
        (lambda parts: parts[0]["functions"].append(parts[1]["functions"][0]), "or in two"),
        (lambda parts: parts[0]["functions"].append(1 << 20), "a whole number from 0"),
        (lambda parts: parts.append(7), "an object"),
        (lambda parts: parts.extend(parts[:1] * 256), "1 to 256"),
        (lambda parts: parts[0].pop("binary"), "a section"),
        (lambda parts: parts[1]["binary"].update(blake3="0" * 64), "another digest"),
    ],
)
def test_forged_parts_are_refused(
    contexts: list[Path], change: Callable[[Any], object], problem: str
) -> None:
    data = bytes_of(contexts[0])
    magic, version, size, _, _ = HEAD.unpack_from(data)
    header = json.loads(bytes(data[HEAD.size : HEAD.size + size]))
    change(header["variants"][0]["parts"])
    raw = json.dumps(header, separators=(",", ":")).encode()
    body = bytes(data[-(-(HEAD.size + size) // ALIGNMENT) * ALIGNMENT :])
    base = -(-(HEAD.size + len(raw)) // ALIGNMENT) * ALIGNMENT
    head = HEAD.pack(magic, version, len(raw), base + len(body), blake3(raw).digest())
    with pytest.raises(FormatError, match=problem):
        read_payload(memoryview((head + raw).ljust(base, b"\0") + body), 128)


def test_the_same_compile_gives_the_same_payload(contexts: list[Path]) -> None:
    first, second = map(bytes_of, contexts)
    assert first == second


def test_payloads_with_parts_have_a_version_that_earlier_releases_refuse(
    contexts: list[Path], tmp_path: Path
) -> None:
    make(tmp_path / "m_ctx.onnx", build_processes="1")
    versions = [bytes_of(path)[8] for path in (contexts[0], tmp_path / "m_ctx.onnx")]
    assert versions == [7, 6]


def test_parts_are_built_here_if_processes_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    processes: list[subprocess.Popen[bytes]],
    caplog: pytest.LogCaptureFixture,
    whole: Any,
) -> None:
    (tmp_path / "broken_build.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(build_processes, "CHILD", "broken_build")
    with caplog.at_level("INFO", "ort_lite"):
        found = make()
    assert found.tobytes() == whole.tobytes()
    assert [process.returncode for process in processes] == [1, 1]
    assert caplog.text.count("ended with code 1; it is built here") == 2


def test_parts_are_built_here_if_no_process_starts(
    monkeypatch: pytest.MonkeyPatch, whole: Any
) -> None:
    def refuse(*_: str) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(build_processes, "start_module", refuse)
    assert make().tobytes() == whole.tobytes()


def test_a_binary_that_the_driver_refuses_is_built_again(
    monkeypatch: pytest.MonkeyPatch, whole: Any
) -> None:
    def build(_: BuildProcesses, sources: list[str], __: str) -> list[bytes]:
        return [b"no binary"] * len(sources)

    monkeypatch.setattr(BuildProcesses, "build", build)
    assert make().tobytes() == whole.tobytes()


def test_an_interrupt_ends_the_processes(
    monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BuildProcesses, "build", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make()
    assert len(processes) == 2
    monkeypatch.undo()
    assert make(build_processes="1").shape == (6, 9)  # the next compile waits for nobody


@pytest.mark.parametrize("sent", [False, True], ids=["before the source", "in its build"])
def test_a_process_ends_with_its_parent(*, sent: bool) -> None:
    """A parent that is killed closes the pipe, and nobody reads what the process would write."""
    kernels = [f"__kernel void k{i}(__global float16* x) {{ {LONG} }}" for i in range(60)]
    texts = [b"", "\n".join(kernels).encode()]
    facts = json.dumps(facts_of(INTEL[0], os.environ))
    child = start_module(build_processes.CHILD, INTEL[0].name, facts)
    assert child.stdin is not None
    if sent:
        child.stdin.write(b"".join(SIZE.pack(len(text)) + text for text in texts))
    child.stdin.close()
    assert child.stdout is not None
    assert child.stdout.read() == b""
    child.stdout.close()
    assert child.wait(120) == 1


def test_each_function_is_in_the_entry_of_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = []
    real = program.build_parts

    def build(context: Any, spec: Any, processes: Any) -> Any:
        specs.append(spec)
        return real(context, spec, processes)

    monkeypatch.setattr(builder, "build_parts", build)
    make()
    (spec,) = specs
    whole = cases_of(spec.source)
    parts = [cases_of(part.source) for part in spec.parts]
    assert [sorted(part) for part in parts] == [sorted(p.functions) for p in spec.parts]
    assert {number: call for part in parts for number, call in part.items()} == whole


def test_a_program_of_a_few_functions_has_one_process(
    monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]], whole: Any
) -> None:
    """Which builds it, so that this process loads no compiler."""
    built: list[str] = []
    real = program.build
    monkeypatch.setattr(program, "build", lambda *args: built.append(args[1]) or real(*args))
    monkeypatch.setattr(builder, "DIFFERENT_NODES", 15)
    monkeypatch.setattr(divide_functions, "LETTERS_OF_A_PART", 1 << 30)
    found = make()
    assert found.tobytes() == whole.tobytes()
    assert len(processes) == 1
    assert not built


def test_processes_that_are_missing_are_started_for_parts(
    monkeypatch: pytest.MonkeyPatch, processes: list[subprocess.Popen[bytes]], whole: Any
) -> None:
    monkeypatch.setattr(builder, "DIFFERENT_NODES", 15)
    assert make().tobytes() == whole.tobytes()
    assert len(processes) == 2


def test_nodes_of_one_operator_and_shape_are_counted_once() -> None:
    layers = [helper.make_node("Relu", [f"x{n}"], [f"x{n + 1}"]) for n in range(40)]
    layers.append(helper.make_node("Transpose", ["x40"], ["y"], perm=[1, 0]))
    made = model(layers, [("x0", [3, 4])], [("y", [4, 3])], {})
    graph = loader.resolve(loader.load(made.SerializeToString(), ort.SessionOptions()).model, {})
    assert builder._count_different_nodes(graph) == 2


def cases_of(source: str) -> dict[int, str]:
    """For each number of an entry its call."""
    entry = source[source.index(ENTRY) :]
    return {int(n): call for n, call in re.findall(r"case (\d+): (.*?); break", entry)}


TEXTS = {"a": "x" * 90_000, "b": "x" * 50_000, "c": "x" * 40_000, "d": "x" * 30_000}


@pytest.mark.parametrize(
    ("together", "most", "parts"),
    [
        ([], 1, []),
        ([], 2, ["ad", "bc"]),
        ([], 3, ["a", "b", "cd"]),
        (["ab"], 2, ["ab", "cd"]),
        (["ab", "bc"], 4, ["abc", "d"]),
        (["ab", "cd", "bd"], 4, []),
    ],
)
def test_functions_of_one_kernel_are_in_one_part(
    monkeypatch: pytest.MonkeyPatch, together: list[str], most: int, parts: list[str]
) -> None:
    monkeypatch.setattr(divide_functions, "LETTERS_OF_A_PART", 30_000)
    found = divide_functions.divide_functions(TEXTS, list(map(frozenset, together)), most)
    assert ["".join(sorted(part)) for part in found] == parts


def test_a_small_program_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divide_functions, "LETTERS_OF_A_PART", 30_000)
    texts = {"a": "x" * 20_000, "b": "x" * 20_000}
    assert divide_functions.divide_functions(texts, [], 4) == []
