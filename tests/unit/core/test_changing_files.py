"""Payload and model files that other processes change: right numbers or INVALID_GRAPH."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pytest
from cached_starts import options as cached_options
from context_models import OPENVINO, compile_context
from small_models import feed, mlp, tied
from system_limits import WINDOWS, needs_change_time, needs_removal_while_open, needs_symlinks

import ort_lite as ort
from ctx_formats import copied_file
from ctx_formats.errors import FormatError
from ctx_formats.mapped_file import MappedFile
from ctx_formats.stamped_file import StampedFile
from ort_lite.context.shared_reading import COPY_LIMITS
from ort_lite.context.signature_report import signatures_of
from ort_lite.testing.reload_promises import before_import, flip_in_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from context_models import ContextModel

OPENCL = "OpenCLExecutionProvider"
MAP = "session.ep_context_map"
EMBED = pytest.mark.parametrize("embed", [False, True], ids=["external", "embedded"])
MODES = pytest.mark.parametrize("mode", ["auto", "0"])


def settle(*paths: Path) -> None:
    """As if the files had been written a while ago."""
    then = time.time() - 9
    for path in paths:
        os.utime(path, (then, then))


def context(folder: Path, *, embed: bool) -> tuple[ContextModel, Path]:
    """A context model, and which of its files has the payload."""
    folder.mkdir(exist_ok=True)
    made = compile_context(folder, mlp(), feed(mlp()), embed=embed)
    holder = made.payload or made.path
    settle(holder)
    return made, holder


def assert_right(made: ContextModel, session: ort.InferenceSession) -> None:
    np.testing.assert_array_equal(session.run(None, made.feed)[0], made.expected[0])


def truncate(path: Path) -> None:
    os.truncate(path, 0)


def replace(path: Path) -> None:
    beside = path.with_suffix(".new")
    beside.write_bytes(bytes(100))
    beside.replace(path)


def point_elsewhere(path: Path) -> None:
    beside = path.with_suffix(".other")
    beside.write_bytes(bytes(100))
    path.unlink()
    path.symlink_to(beside)


def write_and_restore(path: Path) -> None:
    before = path.stat()
    flip_in_place(path)
    flip_in_place(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = [
    flip_in_place,
    truncate,
    replace,
    pytest.param(point_elsewhere, marks=needs_symlinks),
    write_and_restore,
]
CHANGE = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


@EMBED
@MODES
@CHANGE
def test_a_change_between_digest_and_import_does_not_reach_the_session(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    change: Callable[[Path], None],
    *,
    embed: bool,
) -> None:
    made, holder = context(tmp_path, embed=embed)
    before_import(monkeypatch, lambda: change(holder))
    with made.load(session__ep_context_map=mode) as session:
        assert_right(made, session)


@EMBED
@MODES
@CHANGE
def test_a_change_under_a_running_session_does_not_reach_it(
    tmp_path: Path, mode: str, change: Callable[[Path], None], *, embed: bool
) -> None:
    made, holder = context(tmp_path, embed=embed)
    with made.load(session__ep_context_map=mode) as session:
        assert_right(made, session)
        change(holder)
        assert_right(made, session)


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every payload file counts as too large to be copied when it is opened."""
    probe = tmp_path / "probe"
    probe.write_bytes(b"x")
    with copied_file.open_file(probe, copy_limit=0) as file:
        assert isinstance(file, MappedFile)
        file.copy_before_writes()
        if file._lease is None:
            pytest.skip("this system or file system has no leases: fcntl(2), F_SETLEASE")
    monkeypatch.setitem(COPY_LIMITS, "auto", 1)


@pytest.mark.usefixtures("leases")
@pytest.mark.parametrize("moment", ["before the import", "under a running session"])
@CHANGE
def test_a_large_payload_is_copied_before_somebody_writes_to_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    change: Callable[[Path], None],
) -> None:
    made, holder = context(tmp_path, embed=False)
    is_early = moment == "before the import"
    if is_early:
        before_import(monkeypatch, lambda: change(holder))
    with made.load() as session:
        assert_right(made, session)
        if not is_early:
            change(holder)
        assert_right(made, session)


@pytest.mark.usefixtures("leases")
@pytest.mark.parametrize("change", [flip_in_place, truncate])
def test_a_lease_that_the_system_ends_leaves_the_comparison(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Linux lets a writer go on that has waited for lease-break-time, 45 s; fcntl(2)."""
    from fcntl import F_SETLEASE, F_UNLCK, fcntl  # noqa: PLC0415 - not on Windows

    from ctx_formats.write_lease import _watcher  # noqa: PLC0415 - Linux alone

    made, holder = context(tmp_path, embed=False)
    with made.load() as session:
        assert_right(made, session)
        for lease in [*_watcher.leases]:
            fcntl(lease.descriptor, F_SETLEASE, F_UNLCK)
        change(holder)
        _watcher.answer_writers()  # the process goes on, and learns of the writer
        for _ in range(2):
            with pytest.raises(ort.InvalidGraph, match="changed under a running") as found:
                session.run(None, made.feed)
            assert found.value.reason == "integrity"


@pytest.mark.parametrize(
    "change", [os.utime, pytest.param(write_and_restore, marks=needs_change_time)]
)
def test_a_mapped_file_that_changes_while_it_is_loaded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    """Its bytes may be right again, but who knows what the vendor has read meanwhile."""
    made, holder = context(tmp_path, embed=False)
    before_import(monkeypatch, lambda: change(holder))
    with pytest.raises(ort.InvalidGraph, match="changed while it was in use") as found:
        made.load(session__ep_context_map="1")
    assert found.value.reason == "integrity"
    assert str(holder) in found.value.message
    assert "load it again" in found.value.hint


@needs_removal_while_open
def test_a_mapped_file_may_be_replaced_by_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, holder = context(tmp_path, embed=False)
    before_import(monkeypatch, lambda: replace(holder))
    with made.load(session__ep_context_map="1") as session:
        assert_right(made, session)


@pytest.mark.parametrize(
    "change", [flip_in_place, pytest.param(truncate, marks=needs_removal_while_open)]
)
def test_a_change_of_a_mapped_file_ends_the_runs_of_its_session(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Before the run reads a byte that is not there any more, too."""
    made, holder = context(tmp_path, embed=False)
    right = holder.read_bytes()
    before = holder.stat()
    with made.load(session__ep_context_map="1") as session:
        assert_right(made, session)
        holder.chmod(0o600)
        os.link(holder, tmp_path / "backup")
        assert_right(made, session)
        change(holder)
        for _ in range(2):
            with pytest.raises(ort.InvalidGraph, match="changed under a running") as found:
                session.run(None, made.feed)
            assert found.value.reason == "integrity"
            assert "load it again" in found.value.hint
        with holder.open("r+b") as file:
            file.write(right)
        os.utime(holder, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert_right(made, session)


def test_a_change_of_a_mapped_file_during_a_run_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, holder = context(tmp_path, embed=False)
    with made.load(session__ep_context_map="1") as session:
        plan = type(session._present().prepared._program)
        run = plan.run

        def slowly(self: object, inputs: object) -> object:
            flip_in_place(holder)
            return run(self, inputs)

        monkeypatch.setattr(plan, "run", slowly)
        with pytest.raises(ort.InvalidGraph, match="changed under a running session"):
            session.run(None, made.feed)


def test_a_session_closes_the_files_that_it_watches(tmp_path: Path) -> None:
    made, holder = context(tmp_path, embed=False)

    def is_open() -> bool:
        folder = Path("/proc/self/fd")
        return any(os.path.realpath(entry) == str(holder) for entry in folder.iterdir())

    for _ in range(2):
        session = made.load(session__ep_context_map="1")
        session.close()
    if sys.platform == "linux":
        gc.collect()
        assert not is_open()


def test_a_payload_that_never_rests_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, holder = context(tmp_path, embed=False)
    read_into = StampedFile.read_into

    def disturbed(file: StampedFile, target: memoryview, offset: int) -> None:
        read_into(file, target, offset)
        if Path(file.path) == holder:
            flip_in_place(holder)

    monkeypatch.setattr(StampedFile, "read_into", disturbed)
    with pytest.raises(ort.InvalidGraph, match="changed while it was read") as found:
        made.load()
    assert (found.value.reason, found.value.recorded is not None) == ("integrity", True)
    assert "load it again" in found.value.hint


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models for each execution provider, compiled into one payload file with weights."""
    folder = tmp_path_factory.mktemp("group")
    for ep in (OPENVINO, OPENCL):
        options = ort.SessionOptions()
        options.add_provider(ep)
        with ort.SharedContexts() as shared:
            shared.join(options)
            for name, sign in (("plus", 1.0), ("minus", -1.0)):
                (folder / f"{ep}_{name}.onnx").write_bytes(tied(sign).SerializeToString())
                ort.ModelCompiler(options, folder / f"{ep}_{name}.onnx").compile_to_file()
    settle(*folder.iterdir())
    return folder


@pytest.mark.parametrize("ep", [OPENVINO, OPENCL])
@CHANGE
@MODES
def test_shared_weights_that_change_do_not_reach_any_session(
    group: Path, tmp_path: Path, ep: str, change: Callable[[Path], None], mode: str
) -> None:
    """Weights go to OpenVINO as a path, and to OpenCL as memory that kernels read."""
    if WINDOWS and ep == OPENVINO:
        pytest.skip("OpenVINO has the file open, which on Windows nobody can change then")
    folder = tmp_path / "copy"
    shutil.copytree(group, folder)
    (payload,) = folder.glob(f"{ep}*.bin")
    inputs = feed(tied())
    with ort.InferenceSession(folder / f"{ep}_plus.onnx", providers=[ep]) as plain:
        (right,) = plain.run(None, inputs)
    with ort.SharedContexts() as shared:
        options = shared.join(ort.SessionOptions())
        options.add_session_config_entry(MAP, mode)
        first = ort.InferenceSession(folder / f"{ep}_plus_ctx.onnx", options, providers=[ep])
        change(payload)
        np.testing.assert_array_equal(first.run(None, inputs)[0], right)
        first.close()
        # The group goes by what a file is, not by its name: a changed one is read anew.
        minus = folder / f"{ep}_minus_ctx.onnx"
        if change is write_and_restore:
            with ort.InferenceSession(minus, options, providers=[ep]) as second:
                np.testing.assert_array_equal(second.run(None, inputs)[0], -right)
        else:
            with pytest.raises(ort.InvalidGraph) as found:
                ort.InferenceSession(minus, options, providers=[ep])
            assert found.value.reason in ("integrity", "format", "unsafe_path")


@pytest.mark.usefixtures("leases")
@pytest.mark.parametrize("ep", [OPENVINO, OPENCL])
@CHANGE
def test_large_shared_weights_are_copied_before_somebody_writes_to_them(
    group: Path, tmp_path: Path, ep: str, change: Callable[[Path], None]
) -> None:
    """OpenVINO maps the file itself, and its map is copied as ours is."""
    folder = tmp_path / "copy"
    shutil.copytree(group, folder)
    (payload,) = folder.glob(f"{ep}*.bin")
    inputs = feed(tied())
    with ort.InferenceSession(folder / f"{ep}_plus.onnx", providers=[ep]) as plain:
        (right,) = plain.run(None, inputs)
    with ort.SharedContexts() as shared:
        options = shared.join(ort.SessionOptions())
        sessions = [
            (ort.InferenceSession(folder / f"{ep}_{name}_ctx.onnx", options, providers=[ep]), sign)
            for name, sign in (("plus", 1), ("minus", -1))
        ]
        change(payload)
        for session, sign in sessions:
            np.testing.assert_array_equal(session.run(None, inputs)[0], sign * right)
            session.close()


def test_opencl_reads_shared_weights_without_their_path(
    group: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes a descriptor, and for a copied file a second copy."""

    def refuse(_: object) -> NoReturn:
        raise AssertionError("the path was asked for")

    monkeypatch.setattr(copied_file.CopiedFile, "reopen_path", property(refuse))
    monkeypatch.setattr(copied_file.CopiedFile, "lend_path", refuse)
    inputs = feed(tied())
    with ort.InferenceSession(group / f"{OPENCL}_plus_ctx.onnx", providers=[OPENCL]) as session:
        session.run(None, inputs)
    with pytest.raises(AssertionError, match="asked for"):
        ort.InferenceSession(group / f"{OPENVINO}_plus_ctx.onnx", providers=[OPENVINO])


def test_a_group_copies_its_payload_file_once(group: Path) -> None:
    with ort.SharedContexts() as shared:
        options = shared.join(ort.SessionOptions())
        for name in ("plus", "minus"):
            path = group / f"{OPENVINO}_{name}_ctx.onnx"
            ort.InferenceSession(path, options, providers=[OPENVINO]).close()
        assert shared.payload_files.reads == 1


def test_a_change_of_the_plain_model_does_not_reach_a_session_from_the_cache(
    tmp_path: Path,
) -> None:
    source, cache = tmp_path / "m.onnx", tmp_path / "cache"
    source.write_bytes(mlp().SerializeToString())
    inputs = feed(mlp())
    with ort.InferenceSession(source, cached_options(cache), providers=[OPENVINO]) as first:
        (right,) = first.run(None, inputs)
    for change in (flip_in_place, truncate):
        source.write_bytes(mlp().SerializeToString())
        with ort.InferenceSession(source, cached_options(cache), providers=[OPENVINO]) as session:
            assert session.load_report().cache.state == "hit"
            change(source)
            np.testing.assert_array_equal(session.run(None, inputs)[0], right)


def test_files_of_the_cache_are_mapped_unless_the_session_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, cache = tmp_path / "m.onnx", tmp_path / "cache"
    source.write_bytes(mlp().SerializeToString())
    inputs = feed(mlp())
    ort.InferenceSession(source, cached_options(cache), providers=[OPENVINO]).close()
    copied: list[Path] = []

    class Noted(copied_file.CopiedFile):
        def __init__(self, path: Path, **how: bool) -> None:
            copied.append(Path(path))
            super().__init__(path, **how)

    monkeypatch.setattr(copied_file, "CopiedFile", Noted)
    for mode, is_copied in (("", False), ("auto", True), ("1", False), ("0", True)):
        copied.clear()
        entries = {"session__ep_context_map": mode} if mode else {}
        options = cached_options(cache, **entries)
        with ort.InferenceSession(source, options, providers=[OPENVINO]) as session:
            session.run(None, inputs)
            assert session.load_report().cache.state == "hit"
        endings = {path.suffix for path in copied if path.is_relative_to(cache)}
        assert endings == ({".bin"} if is_copied else set())


@pytest.mark.parametrize("value", ["2", "", "AUTO", "true"])
def test_a_value_that_the_option_does_not_have_is_an_error(tmp_path: Path, value: str) -> None:
    made, _ = context(tmp_path, embed=False)
    wanted = f"session.ep_context_map is '{value}', expected auto, 0 or 1"
    with pytest.raises(ort.InvalidArgument, match=wanted):
        made.load(session__ep_context_map=value)


def test_large_files_are_mapped_and_small_ones_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, holder = context(tmp_path, embed=False)
    kinds: list[Any] = []
    for limit in (holder.stat().st_size, holder.stat().st_size - 1):
        monkeypatch.setattr("ort_lite.context.shared_reading.COPY_LIMITS", {"auto": limit})
        mapped = copied_file.open_file(holder, copy_limit=limit)
        kinds.append(type(mapped).__name__)
        with made.load() as session:
            assert_right(made, session)
    assert kinds == ["CopiedFile", "MappedFile"]


def test_facts_are_not_told_of_a_file_that_changes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads a model without a session, too, neither maps it nor believes half of it."""
    made, _ = context(tmp_path, embed=True)
    read_into = StampedFile.read_into

    def disturbed(file: StampedFile, target: memoryview, offset: int) -> None:
        read_into(file, target, offset)
        os.truncate(made.path, 100)

    monkeypatch.setattr(StampedFile, "read_into", disturbed)
    with pytest.raises(RuntimeError, match="changed while it was read"):
        ort.get_compatibility_info_from_model(made.path, OPENVINO)
    with pytest.raises(FormatError, match="changed while it was read"):
        signatures_of(made.path)
