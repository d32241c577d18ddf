"""Session groups: contexts written together and loaded together."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from context_models import OPENVINO
from onnx import helper, numpy_helper
from small_models import feed, mlp, sandwich, tied

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from onnx import ModelProto

BIN = f"m0_{OPENVINO}.bin"
FIVE = sorted([BIN, "m0.onnx", "m0_ctx.onnx", "m1.onnx", "m1_ctx.onnx"])
SHARE = "ep.share_ep_contexts"
STOP = "ep.stop_share_ep_contexts"


@pytest.fixture(autouse=True)
def _nothing_is_left_of_the_process_group() -> Iterator[None]:
    yield
    options = ort.SessionOptions()
    options.add_session_config_entry(SHARE, "1")
    options.add_session_config_entry(STOP, "1")
    ort.InferenceSession(mlp().SerializeToString(), options, providers=[OPENVINO]).close()


def models(folder: Path, *protos: ModelProto) -> list[Path]:
    folder.mkdir(exist_ok=True)
    for i, proto in enumerate(protos):
        (folder / f"m{i}.onnx").write_bytes(proto.SerializeToString())
    return [folder / f"m{i}.onnx" for i in range(len(protos))]


def made(path: Path, group: ort.SharedContexts | None = None, **entries: str) -> list[Any]:
    """Compile one model of a group through a session; what it computes."""
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    if group is not None:
        group.join(options)
    with ort.InferenceSession(path, options, providers=[OPENVINO]) as session:
        return session.run(None, feed(onnx.load(path)))


def loaded(path: Path, group: ort.SharedContexts | None = None, **entries: str) -> Any:
    options = ort.SessionOptions()
    for key, value in entries.items():
        options.add_session_config_entry(key.replace("__", "."), value)
    if group is not None:
        group.join(options)
    return ort.InferenceSession(path, options, providers=[OPENVINO])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def context(path: Path) -> Path:
    return path.with_name(f"{path.stem}_ctx.onnx")


def check(path: Path, expected: list[Any], **options: Any) -> None:
    with loaded(context(path), **options) as session:
        found = session.run(None, feed(onnx.load(path)))
        np.testing.assert_array_equal(found[0], expected[0])
        assert {p.origin for p in session.explain().partitions if p.ep == OPENVINO} == {"context"}


def test_n_models_give_n_plus_one_files_named_after_the_first(tmp_path: Path) -> None:
    """Requirement S20, by ONNX Runtime's options."""
    paths = models(tmp_path, tied(), tied(-1.0), sandwich())
    results = [made(path, ep__share_ep_contexts="1") for path in paths[:2]]
    assert names(tmp_path) == sorted(
        [*(p.name for p in paths), *(n for n in names(tmp_path) if n.endswith(".tmp"))]
    ), "files appear at the end"
    results.append(made(paths[2], ep__share_ep_contexts="1", ep__stop_share_ep_contexts="1"))
    assert names(tmp_path) == sorted(
        [*(p.name for p in paths), *(context(p).name for p in paths), BIN]
    )
    for path in paths:
        for node in onnx.load(context(path)).graph.node:
            found = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "EPContext":
                assert (found["ep_cache_context"], found["embed_mode"]) == (BIN.encode(), 0)
    for path, expected in zip(paths, results, strict=True):
        check(path, expected)


def test_a_group_publishes_when_its_block_ends(tmp_path: Path) -> None:
    paths = models(tmp_path, tied(), tied(-1.0))
    with ort.SharedContexts() as group:
        results = [made(path, group) for path in paths]
        assert group.waiting_models == tuple(context(path) for path in paths)
        assert [n for n in names(tmp_path) if not n.startswith(".")] == ["m0.onnx", "m1.onnx"]
    assert names(tmp_path) == FIVE
    for path, expected in zip(paths, results, strict=True):
        check(path, expected)


def test_the_compile_api_takes_part(tmp_path: Path) -> None:
    paths = models(tmp_path, tied(), tied(-1.0))
    options = ort.SessionOptions()
    options.add_provider(OPENVINO)
    with ort.SharedContexts() as group:
        group.join(options)
        for path in paths:
            ort.ModelCompiler(options, path).compile_to_file()
    assert names(tmp_path) == FIVE
    with ort.InferenceSession(paths[1], providers=[OPENVINO]) as session:
        check(paths[1], session.run(None, feed(tied())))


def test_an_abandoned_group_leaves_no_file(tmp_path: Path) -> None:
    paths = models(tmp_path, tied(), tied(-1.0))

    def work() -> None:
        with ort.SharedContexts() as group:
            made(paths[0], group)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        work()
    assert names(tmp_path) == ["m0.onnx", "m1.onnx"]


def test_a_session_that_fails_leaves_its_group_as_it_was(tmp_path: Path) -> None:
    paths = models(tmp_path, tied(), tied(-1.0))
    bad = tmp_path / "bad.onnx"
    proto = mlp()
    proto.graph.node[0].op_type = "NoSuchOperator"
    bad.write_bytes(proto.SerializeToString())
    with ort.SharedContexts() as group:
        first = made(paths[0], group)
        with pytest.raises(ort.OrtLiteError):
            made(bad, group)
        second = made(paths[1], group)
    bad.unlink()
    assert names(tmp_path) == FIVE
    check(paths[0], first)
    check(paths[1], second)


@pytest.mark.parametrize("last", ["0", "1"])
def test_a_failed_session_does_not_poison_the_next_group(tmp_path: Path, last: str) -> None:
    """ONNX Runtime's workspace is one for the process; a group that died leaves its name there."""
    first = models(tmp_path / "a", tied())
    bad = tmp_path / "bad.onnx"
    proto = mlp()
    proto.graph.node[0].op_type = "NoSuchOperator"
    bad.write_bytes(proto.SerializeToString())
    made(first[0], ep__share_ep_contexts="1")
    with pytest.raises(ort.OrtLiteError):
        made(bad, ep__share_ep_contexts="1", ep__stop_share_ep_contexts=last)
    assert names(tmp_path / "a") == ["m0.onnx"]
    paths = models(tmp_path / "b", tied(), tied(-1.0))
    made(paths[0], ep__share_ep_contexts="1")
    made(paths[1], ep__share_ep_contexts="1", ep__stop_share_ep_contexts="1")
    assert names(tmp_path / "b") == FIVE
    assert names(tmp_path / "a") == ["m0.onnx"]


def _output_is_there(folder: Path) -> Path:
    (path,) = models(folder, tied())
    context(path).write_bytes(b"somebody's")
    return path


def _garbage(folder: Path) -> Path:
    folder.mkdir()
    (folder / "m.onnx").write_bytes(b"no model at all")
    return folder / "m.onnx"


def _missing(folder: Path) -> Path:
    folder.mkdir()
    return folder / "m.onnx"


def _folder(folder: Path) -> Path:
    (folder / "m.onnx").mkdir(parents=True)
    return folder / "m.onnx"


def _through_session(path: Path, last: str) -> None:
    made(path, ep__share_ep_contexts="1", ep__stop_share_ep_contexts=last)


def _through_compiler(path: Path, last: str) -> None:
    options = ort.SessionOptions()
    options.add_provider(OPENVINO, {})
    options.add_session_config_entry(SHARE, "1")
    options.add_session_config_entry(STOP, last)
    flag = ort.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
    ort.ModelCompiler(options, path, flags=flag).compile_to_file()


@pytest.mark.parametrize("broken", [_output_is_there, _garbage, _missing, _folder])
@pytest.mark.parametrize("last", ["0", "1"])
@pytest.mark.parametrize("through", [_through_session, _through_compiler])
def test_a_session_that_fails_before_it_compiles_gives_its_group_up(
    tmp_path: Path,
    broken: Callable[[Path], Path],
    last: str,
    through: Callable[[Path, str], None],
) -> None:
    first = models(tmp_path / "a", tied())
    made(first[0], ep__share_ep_contexts="1")
    bad = broken(tmp_path / "bad")
    with pytest.raises(ort.OrtLiteError):
        through(bad, last)
    paths = models(tmp_path / "b", tied(), tied(-1.0))
    made(paths[0], ep__share_ep_contexts="1")
    made(paths[1], ep__share_ep_contexts="1", ep__stop_share_ep_contexts="1")
    assert names(tmp_path / "b") == FIVE
    assert names(tmp_path / "a") == ["m0.onnx"]


def _wrong_threads(options: ort.SessionOptions) -> dict[str, Any]:
    options.intra_op_num_threads = -1
    return {}


def _wrong_providers(_: ort.SessionOptions) -> dict[str, Any]:
    return {"providers": [None], "enable_fallback": 0}


def _wrong_policy(options: ort.SessionOptions) -> dict[str, Any]:
    def fails(*_: Any) -> Any:
        raise KeyError("mine")

    options.set_provider_selection_policy_delegate(fails)
    return {"providers": None}


def _wrong_fallback(options: ort.SessionOptions) -> dict[str, Any]:
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return {"providers": [OPENVINO, "CPUExecutionProvider"]}


def _no_global_threads(options: ort.SessionOptions) -> dict[str, Any]:
    options.use_per_session_threads = False
    return {}


@pytest.mark.parametrize("last", ["0", "1"])
@pytest.mark.parametrize(
    "wrong", [_wrong_threads, _wrong_providers, _wrong_policy, _wrong_fallback, _no_global_threads]
)
def test_a_session_with_wrong_arguments_gives_its_group_up(
    tmp_path: Path, wrong: Callable[[ort.SessionOptions], dict[str, Any]], last: str
) -> None:
    """Wrong before any model is read: providers, threads, a delegate."""
    first = models(tmp_path / "a", tied())
    made(first[0], ep__share_ep_contexts="1")
    options = ort.SessionOptions()
    for key, value in (("ep.context_enable", "1"), (SHARE, "1"), (STOP, last)):
        options.add_session_config_entry(key, value)
    arguments = {"providers": [OPENVINO], **wrong(options)}
    with pytest.raises((ort.OrtLiteError, ValueError)):
        ort.InferenceSession(first[0], options, **arguments)
    paths = models(tmp_path / "b", tied(), tied(-1.0))
    made(paths[0], ep__share_ep_contexts="1")
    made(paths[1], ep__share_ep_contexts="1", ep__stop_share_ep_contexts="1")
    assert names(tmp_path / "b") == FIVE
    assert names(tmp_path / "a") == ["m0.onnx"]


def test_two_groups_at_once_do_not_mix(tmp_path: Path) -> None:
    found: dict[str, list[Any]] = {}
    reread: dict[str, list[Any]] = {}
    meet = threading.Barrier(2, timeout=120)

    def work(name: str, sign: float) -> None:
        paths = models(tmp_path / name, tied(sign), sandwich())
        with ort.SharedContexts() as group:
            first = made(paths[0], group)
            meet.wait()  # both groups are open, each with one model of two
            found[name] = [first, made(paths[1], group)]
        with ort.SharedContexts() as group, loaded(context(paths[0]), group) as session:
            meet.wait()
            values = session.run(None, feed(onnx.load(paths[0])))
            with loaded(context(paths[1]), group) as other:
                reread[name] = [values, other.run(None, feed(onnx.load(paths[1])))]

    threads = [threading.Thread(target=work, args=(n, s)) for n, s in (("a", 1.0), ("b", -1.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, results in found.items():
        paths = [tmp_path / name / f"m{i}.onnx" for i in range(2)]
        assert names(tmp_path / name) == FIVE
        for path, expected in zip(paths, results, strict=True):
            check(path, expected)
    assert len(found) == 2
    np.testing.assert_equal(reread, found)


def test_models_of_one_structure_have_partitions_of_their_own(tmp_path: Path) -> None:
    paths = models(tmp_path, tied(1.0), tied(-1.0), tied(2.0))
    with ort.SharedContexts() as group:
        results = [made(path, group) for path in paths]
    for path, expected in zip(paths, results, strict=True):
        check(path, expected)
    assert not np.array_equal(results[0][0], results[2][0])


def test_a_payload_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    paths = models(tmp_path, tied())
    (tmp_path / BIN).write_bytes(b"mine")
    with ort.SharedContexts() as group:
        expected = made(paths[0], group)
    assert (tmp_path / BIN).read_bytes() == b"mine"
    assert len(list(tmp_path.glob("*.bin"))) == 2
    check(paths[0], expected)


def test_a_context_model_that_is_there_is_refused_before_compiling(tmp_path: Path) -> None:
    paths = models(tmp_path, tied())
    context(paths[0]).write_bytes(b"mine")
    with ort.SharedContexts() as group, pytest.raises(ort.Fail, match="exists already"):
        made(paths[0], group)
    assert names(tmp_path) == ["m0.onnx", "m0_ctx.onnx"]


def test_a_model_that_appears_meanwhile_lets_the_group_fail_whole(tmp_path: Path) -> None:
    paths = models(tmp_path, tied(), tied(-1.0))
    group = ort.SharedContexts()
    for path in paths:
        made(path, group)
    context(paths[1]).write_bytes(b"mine")
    with pytest.raises(ort.Fail, match=r"m1_ctx.onnx' exists already"):
        group.end()
    assert names(tmp_path) == ["m0.onnx", "m1.onnx", "m1_ctx.onnx"]
    assert context(paths[1]).read_bytes() == b"mine"


def test_one_place_is_given_to_one_model(tmp_path: Path) -> None:
    paths = models(tmp_path, tied(), tied(-1.0))
    place = str(tmp_path / "c.onnx")
    with ort.SharedContexts() as group:
        made(paths[0], group, ep__context_file_path=place)
        with pytest.raises(ort.Fail, match="exists already"):
            made(paths[1], group, ep__context_file_path=place)


def test_models_may_lie_above_the_payload_file_and_nowhere_else(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    paths = models(inner, tied(), tied(-1.0))
    (tmp_path / "beside").mkdir()
    with ort.SharedContexts() as group:
        made(paths[0], group)
        above = made(paths[1], group, ep__context_file_path=str(tmp_path / "up.onnx"))
        with pytest.raises(ort.InvalidArgument, match="in the same folder or above"):
            made(paths[1], group, ep__context_file_path=str(tmp_path / "beside" / "c.onnx"))
    with loaded(tmp_path / "up.onnx") as session:
        np.testing.assert_array_equal(session.run(None, feed(tied()))[0], above[0])


def test_embedded_contexts_are_not_shared(tmp_path: Path) -> None:
    paths = models(tmp_path, tied())
    with (
        ort.SharedContexts() as group,
        pytest.raises(
            ort.EPFail,
            match=r"ep.context_embed_mode must be 0 if ep.share_ep_contexts is 1.",
        ),
    ):
        made(paths[0], group, ep__context_embed_mode="1")


def test_a_write_function_is_not_shared(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.add_provider(OPENVINO)
    with ort.SharedContexts() as group:
        compiler = ort.ModelCompiler(group.join(options), tied().SerializeToString())
        compiler.set_ep_context_data_write_func(lambda name, data: None)
        with pytest.raises(ort.InvalidArgument, match="writes a file; unset the write function"):
            compiler.compile_to_file(tmp_path / "c.onnx")
    assert names(tmp_path) == []


@pytest.fixture
def shared(tmp_path: Path) -> tuple[list[Path], list[list[Any]]]:
    paths = models(tmp_path, tied(), tied(-1.0))
    with ort.SharedContexts() as group:
        return paths, [made(path, group) for path in paths]


def test_loaded_contexts_move_from_the_group_to_sessions(
    shared: tuple[list[Path], list[list[Any]]],
) -> None:
    """Requirement S21: the file is read once, and what a session takes leaves the group."""
    paths, results = shared
    with ort.SharedContexts() as group:
        check(paths[0], results[0], group=group)
        assert len(group.waiting_contexts) == 1
        assert group.payload_files.reads == 1
        check(paths[1], results[1], group=group)
        assert group.waiting_contexts == ()
        assert group.payload_files.reads == 1
        check(paths[1], results[1], group=group)
        assert group.payload_files.reads == 2, "it was taken; the file is read again"


def test_the_options_alone_do_the_same(shared: tuple[list[Path], list[list[Any]]]) -> None:
    paths, results = shared
    check(paths[0], results[0], ep__share_ep_contexts="1")
    check(paths[1], results[1], ep__share_ep_contexts="1", ep__stop_share_ep_contexts="1")


def test_a_file_written_anew_is_read_anew(
    shared: tuple[list[Path], list[list[Any]]], tmp_path: Path
) -> None:
    """ONNX Runtime's OpenVINO EP goes on with what it mapped under that name."""
    paths, _ = shared
    with ort.SharedContexts() as group:
        with loaded(context(paths[0]), group):
            assert group.waiting_contexts
        for path in (*tmp_path.glob("*_ctx.onnx"), tmp_path / BIN):
            path.unlink()
        paths = models(tmp_path, tied(3.0), tied(4.0))
        with ort.SharedContexts() as again:
            results = [made(path, again) for path in paths]
        check(paths[1], results[1], group=group)
        assert group.payload_files.reads == 2


def test_a_session_that_cannot_load_takes_nothing(
    shared: tuple[list[Path], list[list[Any]]], tmp_path: Path
) -> None:
    paths, results = shared
    broken = tmp_path / "broken.onnx"
    proto = onnx.load(context(paths[1]))
    for attribute in proto.graph.node[0].attribute:
        if attribute.name == "ep_sdk_version":
            attribute.s = b"1.0.0"
    broken.write_bytes(proto.SerializeToString())
    with ort.SharedContexts() as group:
        check(paths[0], results[0], group=group)
        with pytest.raises(ort.InvalidGraph):
            loaded(broken, group)
        check(paths[1], results[1], group=group)
        assert group.payload_files.reads == 1


def test_shared_contexts_are_checked_without_a_session(
    shared: tuple[list[Path], list[list[Any]]],
) -> None:
    for path in shared[0]:
        for verdict in ort.check_compatibility(context(path)):
            assert verdict.verdict == ort.CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL
            assert verdict.integrity == "verified"


def test_a_process_that_forgets_its_group_leaves_no_temporary_files(tmp_path: Path) -> None:
    group = ort.SharedContexts()
    made(models(tmp_path, tied())[0], group)
    assert len(names(tmp_path)) == 3
    del group
    assert names(tmp_path) == ["m0.onnx"]


def test_weights_of_models_that_are_closed_stay(tmp_path: Path) -> None:
    """The source may go before the group ends."""
    proto = sandwich()
    for tensor in proto.graph.initializer:
        if tensor.name == "w":
            tensor.CopyFrom(numpy_helper.from_array(np.ones((4, 4), np.float32), "w"))
    (path,) = models(tmp_path, proto)
    with ort.SharedContexts() as group:
        expected = made(path, group)
        data = path.read_bytes()
        path.unlink()
    path.write_bytes(data)
    check(path, expected)
