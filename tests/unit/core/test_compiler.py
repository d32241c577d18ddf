"""The compile API, as onnxruntime has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from context_models import OPENVINO
from onnx import helper
from small_models import feed, mlp, model, sandwich

import ort_lite as ort

EMBED = True

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto


def options(**entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_provider(OPENVINO)
    for key, value in entries.items():
        made.add_session_config_entry(key.replace("__", "."), value)
    return made


def expected(proto: ModelProto) -> np.ndarray[Any, Any]:
    with ort.InferenceSession(proto.SerializeToString(), providers=[OPENVINO]) as session:
        return session.run(None, feed(proto))[0]


def check(source: Path | bytes, proto: ModelProto, used: ort.SessionOptions | None = None) -> None:
    providers = [OPENVINO] if used is None else None
    with ort.InferenceSession(source, used, providers) as session:
        np.testing.assert_array_equal(session.run(None, feed(proto))[0], expected(proto))
        origins = {p.origin for p in session.explain().partitions if p.ep == OPENVINO}
        assert origins == {"context"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(sandwich().SerializeToString())
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])
def test_a_file_is_written_under_the_default_name_or_the_given_one(
    source: Path, *, embed: bool
) -> None:
    compiler = ort.ModelCompiler(options(), source, embed)
    compiler.compile_to_file()
    check(source.with_name("m_ctx.onnx"), sandwich())
    compiler.compile_to_file(source.with_name("other.onnx"))
    check(source.with_name("other.onnx"), sandwich())
    payloads = [f"m_{OPENVINO}.bin", f"other_{OPENVINO}.bin"]
    assert names(source.parent) == sorted(
        ["m.onnx", "m_ctx.onnx", "other.onnx", *([] if embed else payloads)]
    )


def test_bytes_with_everything_inside() -> None:
    proto = mlp()
    data = ort.ModelCompiler(options(), proto.SerializeToString(), EMBED).compile_to_bytes()
    check(data, proto)


def test_bytes_with_payloads_beside_the_given_path(tmp_path: Path) -> None:
    used = options(ep__context_file_path=str(tmp_path / "later.onnx"))
    proto = mlp()
    data = ort.ModelCompiler(used, proto.SerializeToString()).compile_to_bytes()
    assert names(tmp_path) == [f"later_{OPENVINO}.bin"]
    check(data, proto, used)


def test_bytes_without_a_place_for_payloads_are_refused() -> None:
    with pytest.raises(ort.InvalidArgument, match="the compiled data has no destination"):
        ort.ModelCompiler(options(), mlp().SerializeToString()).compile_to_bytes()


def test_a_stream_gets_the_same_bytes_in_small_chunks() -> None:
    compiler = ort.ModelCompiler(options(), mlp().SerializeToString(), EMBED)
    chunks: list[bytes] = []
    compiler.compile_to_stream(chunks.append)
    assert max(map(len, chunks)) <= 65536
    check(b"".join(chunks), mlp())


def test_what_the_users_stream_raises_is_told() -> None:
    def fail(_: bytes) -> None:
        raise ValueError("no room")

    compiler = ort.ModelCompiler(options(), mlp().SerializeToString(), EMBED)
    with pytest.raises(ort.Fail, match="OrtOutStreamWriteFunc callback: no room"):
        compiler.compile_to_stream(fail)


def test_an_existing_file_is_replaced_unless_a_flag_forbids_it(source: Path) -> None:
    target = source.with_name("c.onnx")
    ort.ModelCompiler(options(), source).compile_to_file(target)
    with ort.InferenceSession(target, providers=[OPENVINO]) as old:
        before = old.run(None, feed(sandwich()))[0]
        ort.ModelCompiler(options(), source).compile_to_file(target)
        np.testing.assert_array_equal(old.run(None, feed(sandwich()))[0], before)
    check(target, sandwich())
    flags = ort.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
    with pytest.raises(ort.Fail, match="exists already"):
        ort.ModelCompiler(options(), source, flags=flags).compile_to_file(target)


def test_nothing_compiled_gives_the_plain_model_or_an_error() -> None:
    used = ort.SessionOptions()
    used.add_provider("CPUExecutionProvider")
    data = mlp().SerializeToString()
    plain = ort.ModelCompiler(used, data).compile_to_bytes()
    assert onnx.load_model_from_string(plain).graph.node[0].op_type == "MatMul"
    flags = ort.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED
    with pytest.raises(ort.Fail, match="Unable to compile any nodes"):
        ort.ModelCompiler(used, data, flags=flags).compile_to_bytes()


def test_a_compiled_model_is_not_compiled_again(tmp_path: Path) -> None:
    data = ort.ModelCompiler(options(), mlp().SerializeToString(), EMBED).compile_to_bytes()
    with pytest.raises(ort.InvalidGraph, match="ensure the input model is not already compiled"):
        ort.ModelCompiler(options(), data).compile_to_file(tmp_path / "c.onnx")
    assert names(tmp_path) == []


def test_the_callers_options_are_not_changed(source: Path) -> None:
    """Not one of their fields, whatever the compiler and sessions make of them."""
    used = options()
    used.intra_op_num_threads = 1
    used.add_free_dimension_override_by_name("n", 2)
    used.add_session_config_entry("ep.context_file_path", str(source.with_name("mine.onnx")))
    before = used.snapshot()
    level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    compiler = ort.ModelCompiler(used, source, graph_optimization_level=level)
    compiler.set_progress_func(lambda *_: None)
    compiler.compile_to_file(source.with_name("c.onnx"))
    ort.ModelCompiler(used, source, EMBED).compile_to_bytes()
    left, right = ((repr(o), o.config, o.providers) for o in (used, before))
    assert left == right
    ort.InferenceSession(source.with_name("c.onnx"), used).close()
    used.add_session_config_entry("ep.context_enable", "1")
    before = used.snapshot()
    ort.InferenceSession(source, used).close()
    ort.check_compatibility(source.with_name("mine.onnx"), used)
    left, right = ((repr(o), o.config, o.providers) for o in (used, before))
    assert left == right


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ("", ValueError, "Input model path is empty"),
        (b"", ValueError, "Input model bytes array is empty"),
        (bytearray(b"1"), TypeError, "Unable to load from type '<class 'bytearray'>'"),
        (7, TypeError, "Unable to load from type '<class 'int'>'"),
    ],
)
def test_what_is_no_input_is_refused(source: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ort.ModelCompiler(options(), source)


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(ort.NoSuchFile, match="File doesn't exist"):
        ort.ModelCompiler(options(), tmp_path / "no.onnx").compile_to_file()


def large_topk() -> ModelProto:
    """A node that stays, with an initializer of 4,000 bytes."""
    random = np.random.default_rng(3)
    weights = {
        "big": random.standard_normal((2, 500)).astype(np.float32),
        "k": np.array([2], np.int64),
        "w": np.ones((2, 2), np.float32),
    }
    nodes = [
        helper.make_node("TopK", ["big", "k"], ["top", "at"]),
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "top"], ["y"]),
    ]
    return model(nodes, [("x", [2, 2])], [("y", [2, 2])], weights)


def test_initializers_go_to_a_file_of_their_own(tmp_path: Path) -> None:
    proto = large_topk()
    target = tmp_path / "c.onnx"
    ort.ModelCompiler(
        options(), proto.SerializeToString(), external_initializers_file_path="w.data"
    ).compile_to_file(target)
    assert (tmp_path / "w.data").stat().st_size == 4000
    kept = {t.name: t for t in onnx.load(target, load_external_data=False).graph.initializer}
    assert kept["big"].data_location == onnx.TensorProto.EXTERNAL
    assert kept["k"].data_location == onnx.TensorProto.DEFAULT
    check(target, proto)


def test_initializers_go_to_a_file_by_session_option_too(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(large_topk().SerializeToString())
    used = ort.SessionOptions()
    used.add_session_config_entry("ep.context_enable", "1")
    used.add_session_config_entry("ep.context_model_external_initializers_file_name", "w.data")
    ort.InferenceSession(path, used, providers=[OPENVINO]).close()
    kept = onnx.load(tmp_path / "m_ctx.onnx", load_external_data=False).graph.initializer
    assert all(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in kept)
    check(tmp_path / "m_ctx.onnx", large_topk())


@pytest.mark.parametrize("name", ["/abs.data", "../w.data"])
def test_initializers_stay_beside_the_model(name: str) -> None:
    with pytest.raises(ort.InvalidArgument, match="must be a path relative to the model"):
        ort.ModelCompiler(
            options(), mlp().SerializeToString(), external_initializers_file_path=name
        )


def test_the_user_places_initializers(tmp_path: Path) -> None:
    proto = large_topk()
    seen: list[tuple[str, list[int], object]] = []

    def place(name: str, value: ort.OrtValue, info: Any) -> Any:
        seen.append((name, value.shape(), info))
        if value.tensor_size_in_bytes() < 1000:
            return None
        (tmp_path / "mine.bin").write_bytes(bytes(64) + value.numpy().tobytes())
        return ort.OrtExternalInitializerInfo("mine.bin", 64, value.tensor_size_in_bytes())

    target = tmp_path / "c.onnx"
    ort.ModelCompiler(
        options(), proto.SerializeToString(), get_initializer_location_func=place
    ).compile_to_file(target)
    assert seen == [("big", [2, 500], None), ("k", [1], None)]
    check(target, proto)


@pytest.mark.parametrize(
    ("answer", "text"),
    [(ValueError("boom"), "failed for 'big': boom"), ("w.data", "returned str for 'big'")],
)
def test_a_wrong_answer_of_the_users_function_is_told(
    tmp_path: Path, answer: object, text: str
) -> None:
    def place(*_: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    compiler = ort.ModelCompiler(
        options(), large_topk().SerializeToString(), get_initializer_location_func=place
    )
    with pytest.raises(ort.Fail, match=text):
        compiler.compile_to_file(tmp_path / "c.onnx")
    assert names(tmp_path) == []


def test_both_ways_to_place_initializers_are_refused() -> None:
    with pytest.raises(ValueError, match="with both external_initializers_file_path and"):
        ort.ModelCompiler(
            options(),
            b"1",
            external_initializers_file_path="w",
            get_initializer_location_func=lambda *_: None,
        )


def test_an_embedded_model_over_the_limit_gets_its_payloads_beside_it(
    source: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The limit is protobuf's 2 GiB; here it is smaller, so that the test need not be large."""
    monkeypatch.setattr("ctx_formats.model_writer.PROTOBUF_LIMIT", 50_000)
    ort.ModelCompiler(options(), source, EMBED).compile_to_file()
    assert f"m_{OPENVINO}.bin" in names(source.parent)
    assert "payloads go to a file in its folder" in caplog.text
    check(source.with_name("m_ctx.onnx"), sandwich())
    with pytest.raises(ort.Fail, match=r"With ep\.context_embed_mode=0 payloads"):
        ort.ModelCompiler(options(), mlp().SerializeToString(), EMBED).compile_to_bytes()


def test_a_session_tells_its_progress_too() -> None:
    told: list[tuple[int, int]] = []
    used = options()
    used.add_session_config_entry("session.placement", "all")
    used.set_progress_func(lambda _, done, total: told.append((done, total)))
    data = sandwich().SerializeToString()
    ort.InferenceSession(data, used).close()
    ort.ModelCompiler(used, data, EMBED).compile_to_bytes()
    assert told == [(0, 3), (1, 3), (2, 3)] * 2


def test_progress_is_told_before_each_partition() -> None:
    told: list[tuple[str, int, int]] = []
    compiler = ort.ModelCompiler(options(), sandwich().SerializeToString(), EMBED)
    compiler.set_progress_func(lambda name, done, total: told.append((name, done, total)))
    compiler.compile_to_bytes()
    assert [(done, total) for _, done, total in told] == [(0, 3), (1, 3), (2, 3)]
    assert told[0][0].startswith(OPENVINO)


def test_compiling_stops_when_asked_to(tmp_path: Path) -> None:
    used = options()
    compiler = ort.ModelCompiler(used, sandwich().SerializeToString())
    compiler.set_progress_func(lambda *_: used.set_load_cancellation_flag(True))
    with pytest.raises(ort.ModelLoadCanceled, match="canceled due to user request"):
        compiler.compile_to_file(tmp_path / "c.onnx")
    assert names(tmp_path) == []


def test_a_cancellation_during_the_last_compile_counts(tmp_path: Path) -> None:
    for compile_ in ("compile_to_file", "compile_to_bytes"):
        used = options()
        used.add_session_config_entry("ep.context_file_path", os.fspath(tmp_path / "c.onnx"))
        compiler = ort.ModelCompiler(used, mlp().SerializeToString())
        compiler.set_progress_func(lambda *_, used=used: used.set_load_cancellation_flag(True))
        arguments = (tmp_path / "c.onnx",) if compile_ == "compile_to_file" else ()
        with pytest.raises(ort.ModelLoadCanceled, match="canceled due to user request"):
            getattr(compiler, compile_)(*arguments)
        assert names(tmp_path) == []


def test_compiling_can_be_forbidden_as_for_a_session() -> None:
    used = options(session__disable_model_compile="1")
    compiler = ort.ModelCompiler(used, mlp().SerializeToString(), EMBED)
    with pytest.raises(ort.ModelRequiresCompilation, match="User disabled EP compilation"):
        compiler.compile_to_bytes()


def test_models_are_glued_together_with_prefixes(tmp_path: Path) -> None:
    """Two compiled models in a row, joined by hand: one container each, one session."""
    protos = [
        mlp(),
        model([helper.make_node("Exp", ["x"], ["y"])], [("x", [2, 3])], [("y", [2, 3])]),
    ]
    nodes = []
    for i, proto in enumerate(protos):
        used = options(ep__context_node_name_prefix=f"part{i}_")
        path = tmp_path / f"p{i}.onnx"
        ort.ModelCompiler(used, proto.SerializeToString()).compile_to_file(path)
        (node,) = onnx.load(path).graph.node
        assert node.name.startswith(f"part{i}_")
        (name,) = [a.s for a in node.attribute if a.name == "partition_name"]
        assert name.startswith(f"part{i}_".encode())
        nodes.append(node)
    first, second = nodes
    first.output[0] = "middle"
    second.input[0] = "middle"
    glued = model(nodes, [("x", [2, 4])], [("y", [2, 3])], contrib=True)
    glued.graph.value_info.append(
        helper.make_tensor_value_info("middle", onnx.TensorProto.FLOAT, [2, 3])
    )
    (tmp_path / "glued.onnx").write_bytes(glued.SerializeToString())
    with ort.InferenceSession(tmp_path / "glued.onnx", providers=[OPENVINO]) as session:
        found = session.run(None, feed(glued))[0]
    np.testing.assert_allclose(found, np.exp(expected(mlp())), rtol=1e-6)


def test_paths_may_be_pathlike(tmp_path: Path) -> None:
    class Wrapped(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path / "c.onnx")

    ort.ModelCompiler(options(), mlp().SerializeToString()).compile_to_file(Wrapped())
    check(tmp_path / "c.onnx", mlp())
