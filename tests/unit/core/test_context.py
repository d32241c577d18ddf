"""Writing context models and reloading them."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from context_models import OPENVINO, compile_context
from onnx import helper
from small_models import branching, feed, mlp, model, sandwich
from system_limits import needs_posix

import ort_lite as ort
import ort_lite.context.payload_sources
from ctx_formats.container_reader import read_container
from ort_lite import CompiledModelCompatibility

if TYPE_CHECKING:
    from pathlib import Path


def context_options(**entries: str) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    for key, value in entries.items():
        options.add_session_config_entry(f"ep.context_{key}", value)
    return options


def nodes_of(path: Path) -> list[dict[str, Any]]:
    return [
        {a.name: helper.get_attribute_value(a) for a in node.attribute}
        for node in onnx.load(path).graph.node
        if node.op_type == "EPContext"
    ]


@pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])
@pytest.mark.parametrize("make", [mlp, sandwich, branching], ids=lambda make: make.__name__)
def test_what_is_reloaded_equals_what_was_compiled_bit_for_bit(
    tmp_path: Path, make: Any, *, embed: bool
) -> None:
    proto = make()
    made = compile_context(tmp_path, proto, feed(proto), embed=embed)
    with made.load() as session:
        for mine, expected in zip(session.run(None, made.feed), made.expected, strict=True):
            np.testing.assert_array_equal(mine, expected)
    onnx.checker.check_model(onnx.load(made.path), full_check=True)


def test_the_node_says_what_it_is(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    (node,) = nodes_of(made.path)
    assert node["source"] == OPENVINO.encode()
    assert node["main_context"] == 1
    assert node["embed_mode"] == 0
    assert node["max_size"] == 0
    assert node["ep_cache_context"] == f"m_{OPENVINO}.bin".encode()
    assert node["onnx_model_filename"] == b"m.onnx"
    assert node["partition_name"].startswith(f"{OPENVINO}_".encode())
    assert node["ep_sdk_version"].count(b".") == 2
    assert node["hardware_architecture"]
    assert b'"ort_lite":1' in node["notes"]
    metadata = {p.key: p.value for p in onnx.load(made.path).metadata_props}
    assert "ov_compat_string" in metadata[f"ep_compatibility_info.{OPENVINO}"]


def test_several_partitions_share_one_file(tmp_path: Path) -> None:
    made = compile_context(tmp_path, sandwich(), feed(sandwich()), embed=False)
    nodes = nodes_of(made.path)
    assert len({node["partition_name"] for node in nodes}) == 2
    assert {node["ep_cache_context"] for node in nodes} == {f"m_{OPENVINO}.bin".encode()}
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "m.onnx",
        "m_OpenVINOExecutionProvider.bin",
        "m_ctx.onnx",
    ]


def test_embedded_the_first_node_holds_the_context_of_all(tmp_path: Path) -> None:
    made = compile_context(tmp_path, sandwich(), feed(sandwich()), embed=True)
    first, second = nodes_of(made.path)
    assert (first["main_context"], second["main_context"]) == (1, 0)
    assert "ep_cache_context" not in second
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m_ctx.onnx"]


@pytest.mark.parametrize("embed", [False, True])
def test_a_context_of_many_partitions_is_read_once(
    *, embed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compile_context(tmp_path, sandwich(), feed(sandwich()), embed=embed)
    reads = []

    def counting(data: memoryview) -> Any:
        reads.append(len(data))
        return read_container(data)

    monkeypatch.setattr(ort_lite.context.payload_sources, "read_container", counting)
    with made.load() as session:
        assert len(reads) == 1
        for found, expected in zip(session.run(None, made.feed), made.expected, strict=True):
            np.testing.assert_array_equal(found, expected)


def test_the_context_model_needs_nothing_of_the_source(tmp_path: Path) -> None:
    proto = sandwich()
    values = feed(proto)
    source = tmp_path / "in"
    source.mkdir()
    onnx.save_model(
        proto, source / "m.onnx", save_as_external_data=True, size_threshold=0, location="w"
    )
    target = tmp_path / "out"
    target.mkdir()
    options = context_options(file_path=str(target / "c.onnx"))
    with ort.InferenceSession(source / "m.onnx", options, providers=[OPENVINO]) as session:
        expected = session.run(None, values)[0]
    for path in source.iterdir():
        path.unlink()
    with ort.InferenceSession(target / "c.onnx", providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, values)[0], expected)
    assert (target / f"c_{OPENVINO}.bin").is_file()


def test_a_model_from_memory_needs_a_path_to_write_to_and_to_read_from(tmp_path: Path) -> None:
    data = mlp().SerializeToString()
    with pytest.raises(ort.Fail, match=r"Please specify a valid ep\.context_file_path"):
        ort.InferenceSession(data, context_options(), providers=[OPENVINO])
    path = tmp_path / "c.onnx"
    with ort.InferenceSession(
        data, context_options(file_path=str(path)), providers=[OPENVINO]
    ) as session:
        expected = session.run(None, feed(mlp()))[0]
    with pytest.raises(ort.InvalidGraph, match="the model came from memory") as refused:
        ort.InferenceSession(path.read_bytes(), providers=[OPENVINO])
    assert refused.value.reason == "missing_payload"
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_file_path", str(path))
    with ort.InferenceSession(path.read_bytes(), options, providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, feed(mlp()))[0], expected)


def test_a_dot_in_a_folder_does_not_break_the_derived_name(tmp_path: Path) -> None:
    folder = tmp_path / "v1.2"
    folder.mkdir()
    (folder / "model").write_bytes(mlp().SerializeToString())
    ort.InferenceSession(folder / "model", context_options(), providers=[OPENVINO]).close()
    assert (folder / "model_ctx.onnx").is_file()


def test_an_existing_output_is_kept_and_named(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    before = made.path.read_bytes()
    with pytest.raises(ort.Fail, match=r"since the file '.*m_ctx.onnx' exists already"):
        compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    assert made.path.read_bytes() == before


def test_payloads_that_are_there_are_never_written_into(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    assert made.payload is not None
    before = made.payload.read_bytes()
    made.path.unlink()
    again = compile_context(tmp_path, sandwich(), feed(sandwich()), embed=False)
    assert made.payload.read_bytes() == before
    (name,) = {node["ep_cache_context"].decode() for node in nodes_of(again.path)}
    assert name != made.payload.name
    with again.load() as session:
        np.testing.assert_array_equal(session.run(None, again.feed)[0], again.expected[0])


@pytest.mark.parametrize(
    ("entries", "error", "text"),
    [
        ({"file_path": "folder/"}, ort.InvalidArgument, "should not point to a folder"),
        ({"file_path": "noextension"}, ort.InvalidArgument, "should not point to a folder"),
        ({"file_path": "nowhere/c.onnx"}, ort.InvalidArgument, "does not exist: nowhere"),
        ({"embed_mode": "2"}, ort.InvalidArgument, "ep.context_embed_mode is '2', expected 0"),
    ],
    ids=["folder", "extension", "missing", "embed"],
)
def test_a_target_that_cannot_be_is_refused_before_compiling(
    tmp_path: Path, entries: dict[str, str], error: type[Exception], text: str
) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    with pytest.raises(error, match=text):
        ort.InferenceSession(tmp_path / "m.onnx", context_options(**entries), providers=[OPENVINO])


def test_nothing_compiled_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    ort.InferenceSession(
        tmp_path / "m.onnx", context_options(), providers=["CPUExecutionProvider"]
    ).close()
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


@needs_posix
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands for the full disk: writes past it fail with EFBIG."""
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    script = f"""
import resource, signal, sys
import ort_lite as ort
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
options = ort.SessionOptions()
options.add_session_config_entry("ep.context_enable", "1")
resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000))
try:
    ort.InferenceSession({str(tmp_path / "m.onnx")!r}, options, providers=["{OPENVINO}"])
except ort.Fail as exc:
    sys.exit("cannot be written" in str(exc) and "File too large" in str(exc) and 42)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert done.returncode == 42, done.stderr.decode()
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_two_that_write_to_one_place_at_once_leave_one_whole_result(tmp_path: Path) -> None:
    values = feed(mlp())
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    outcomes: list[str] = []

    def work() -> None:
        try:
            ort.InferenceSession(
                tmp_path / "m.onnx", context_options(), providers=[OPENVINO]
            ).close()
            outcomes.append("written")
        except ort.Fail as exc:
            outcomes.append("refused" if "exists already" in str(exc) else str(exc))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 3 + ["written"]
    with ort.InferenceSession(tmp_path / "m_ctx.onnx", providers=[OPENVINO]) as session:
        session.run(None, values)
    left = [p.name for p in tmp_path.iterdir() if p.suffix == ".bin" or p.suffix == ".tmp"]
    assert len(left) == 1


def test_without_its_ep_a_context_is_not_implemented(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    with pytest.raises(
        ort.NotImplemented,
        match=r"EPContext node generated by 'OpenVINOExecutionProvider' is not compatible with any "
        r"execution provider added to the session. .* \[CPUExecutionProvider\]",
    ):
        ort.InferenceSession(made.path, providers=["CPUExecutionProvider"])


def test_a_compiled_model_loads_where_compiling_is_forbidden(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    with made.load(session__disable_model_compile="1") as session:
        assert session.explain().partitions[0].origin == "context"


def test_reloading_imports_no_onnx(tmp_path: Path) -> None:
    made = compile_context(tmp_path, mlp(), feed(mlp()), embed=False)
    script = f"""
import sys
import numpy as np
import ort_lite as ort
session = ort.InferenceSession({str(made.path)!r}, providers=["{OPENVINO}"])
session.run(None, {{"x": np.zeros((2, 4), np.float32)}})
sys.exit("onnx" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_compiling_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        compile_context(folder, sandwich(), feed(sandwich()), embed=True)
    a, b = [nodes_of(folder / "m_ctx.onnx") for folder in folders]
    assert [n["partition_name"] for n in a] == [n["partition_name"] for n in b]


def test_a_context_is_checked_without_a_session(tmp_path: Path) -> None:
    made = compile_context(tmp_path, sandwich(), feed(sandwich()), embed=False)
    verdicts = ort.check_compatibility(made.path)
    assert len(verdicts) == 2
    for verdict in verdicts:
        assert verdict.verdict == CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
        assert verdict.integrity == "verified"
        assert verdict.recorded == verdict.present


def test_a_plain_model_has_no_verdicts(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    assert ort.check_compatibility(tmp_path / "m.onnx") == ()


def test_two_equal_partitions_have_two_names(tmp_path: Path) -> None:
    """Both branches of an If hold the same operators and shapes, with other weights."""
    proto = branching()
    for branch in proto.graph.node[3].attribute:
        text = branch.g.SerializeToString().replace(b"else_", b"then_")
        branch.g.ParseFromString(text)
    made = compile_context(tmp_path, proto, feed(proto), embed=False)
    with made.load() as session:
        np.testing.assert_array_equal(session.run(None, made.feed)[0], made.expected[0])


def test_a_context_without_inputs_runs(tmp_path: Path) -> None:
    proto = model(
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        [],
        [("y", [2, 2])],
        {"a": np.ones((2, 2), np.float32), "b": np.eye(2, dtype=np.float32)},
    )
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with ort.InferenceSession(tmp_path / "m.onnx", providers=[OPENVINO]) as session:
        np.testing.assert_array_equal(session.run(None, {})[0], np.ones((2, 2)))
