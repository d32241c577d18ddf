"""A payload that brings the vendor's code down takes a child process with it, and no more."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pytest
from plugin.installed_site import in_a_child
from small_models import feed, mlp
from system_limits import WINDOWS, needs_posix

import ort_lite as ort
from ctx_formats.notes import read_notes
from ort_lite.context.signing import sign_file
from ort_lite.providers import catalog
from ort_lite.testing.context_file import ContextFile, remove_digests
from ort_lite.trust.private_keys import generate_key, read_signer

if TYPE_CHECKING:
    from plugin.installed_site import Site

    from ctx_formats.ep_context import EpContextNode

NAME = "CrashingExecutionProvider"
MODULE = Path(__file__).with_name("crashing_ep.py")
CLI = "from ort_lite.cli import main; main()"
LONG = 600
"""Seconds that a child may take: more than on any busy machine, so that none is called hung."""


@dataclass(frozen=True)
class Made:
    """A context model of somebody else's, and a place for verdicts."""

    file: ContextFile
    cache: Path
    expected: np.ndarray
    trust: Path | None = None

    def load(self, mode: str, seconds: int = LONG, **fate: str) -> np.ndarray:
        options = ort.SessionOptions()
        entries = {
            "session.ep_context_probe": mode,
            "session.ep_context_probe_seconds": str(seconds),
            "session.ep_context_cache_dir": str(self.cache),
            **self._trusting(),
        }
        for key, value in entries.items():
            options.add_session_config_entry(key, value)
        with ort.InferenceSession(self.file.path, options, providers=[(NAME, fate)]) as session:
            return session.run(None, feed(mlp()))[0]

    def _trusting(self) -> dict[str, str]:
        return {"session.ep_context_trust": str(self.trust)} if self.trust is not None else {}

    def refusal(self, mode: str, seconds: int = LONG, **fate: str) -> ort.InvalidGraph:
        with pytest.raises(ort.InvalidGraph) as found:
            self.load(mode, seconds, **fate)
        assert found.value.reason == "vendor_crashed"
        assert "ort-lite compile" in found.value.hint
        return found.value

    def checked(self, mode: str, **fate: str) -> ort.CompiledModelCompatibility | str:
        """What a check without a session says: the reason, or the verdict."""
        options = ort.SessionOptions()
        options.add_session_config_entry("session.ep_context_probe", mode)
        options.add_session_config_entry("session.ep_context_probe_seconds", str(LONG))
        options.add_session_config_entry("session.ep_context_cache_dir", str(self.cache))
        for key, value in self._trusting().items():
            options.add_session_config_entry(key, value)
        (verdict,) = ort.check_compatibility(self.file.path, options, [(NAME, fate)])
        assert bool(verdict.hint) == bool(verdict.reason)
        return str(verdict.reason) if verdict.reason else verdict.verdict

    def verdicts(self) -> list[str]:
        files = (self.cache / "probes").glob("*.json")
        return [json.loads(path.read_text())["problem"] for path in files]


@pytest.fixture
def crashing(installed: Site) -> Site:
    shutil.copy(MODULE, installed.folder)
    installed.add_distribution("crashing", {catalog.GROUP: {NAME: "crashing_ep:FACTORY"}})
    return installed


@pytest.fixture
def own(crashing: Site, tmp_path: Path) -> Made:
    """A context made on this machine."""
    folder = tmp_path / "made"
    folder.mkdir()
    source = folder / "m.onnx"
    source.write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    with ort.InferenceSession(source, options, providers=[NAME]) as session:
        expected = session.run(None, feed(mlp()))[0]
    file = ContextFile(folder / "m_ctx.onnx", folder / f"m_{NAME}.bin")
    return Made(file, tmp_path / "cache", expected)


@pytest.fixture
def signed(own: Made, tmp_path: Path) -> Made:
    """It, signed by a key that is trusted."""
    keys = generate_key(tmp_path / "own", None, force=False)
    signer = read_signer(keys.private, None)
    sign_file(own.file.path, own.file.path, signer, ort.SessionOptions())
    return replace(own, trust=keys.public)


@pytest.fixture
def foreign(own: Made) -> Made:
    """One of a producer without digests."""
    own.file.put_container(remove_digests(own.file.container()))
    own.file.edit(lambda node: replace(node, notes=""))
    return own


ABORTED = "ended with code" if WINDOWS else "died of SIGABRT"


@pytest.mark.parametrize(
    ("fate", "told"),
    [
        ({"on_import": "abort"}, f"{ABORTED}.*: without a message"),
        ({"on_import": "exit"}, r"ended with code 3: vendor: fatal \?\[31m"),
        ({"on_run": "abort"}, ABORTED),
    ],
    ids=["import aborts", "import exits", "run aborts"],
)
def test_a_crash_is_refused_and_remembered(foreign: Made, fate: dict[str, str], told: str) -> None:
    assert re.search(told, foreign.refusal("auto", **fate).message)
    assert "remembered in" in foreign.refusal("auto", **fate).message
    (problem,) = foreign.verdicts()
    assert re.search(told, problem)


def test_a_hang_is_a_crash(foreign: Made) -> None:
    error = foreign.refusal("auto", seconds=1, on_import="hang")
    assert "did not finish within 1 seconds" in error.message


@pytest.mark.skipif(WINDOWS, reason="Windows does not say whether others can write a good record")
def test_a_good_payload_is_tried_once(foreign: Made) -> None:
    np.testing.assert_array_equal(foreign.load("auto"), foreign.expected)
    (record,) = (foreign.cache / "probes").iterdir()
    assert foreign.verdicts() == [""]
    before = record.stat().st_mtime_ns
    np.testing.assert_array_equal(foreign.load("auto"), foreign.expected)
    assert record.stat().st_mtime_ns == before


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_verdicts_make_the_cache_its_user_s_alone(foreign: Made) -> None:
    before = os.umask(0)
    try:
        foreign.load("auto")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (foreign.cache, foreign.cache / "probes")} == {
        0o700
    }


def test_a_remembered_verdict_belongs_to_the_options(foreign: Made) -> None:
    foreign.refusal("auto", on_import="abort")
    np.testing.assert_array_equal(foreign.load("auto"), foreign.expected)
    assert sorted(map(bool, foreign.verdicts())) == [False, True]


def test_always_tries_again_and_corrects_what_is_remembered(foreign: Made) -> None:
    foreign.load("always")
    (record,) = (foreign.cache / "probes").iterdir()
    record.write_text('{"ort_lite_probe": 1, "problem": "died of SIGBUS"}')
    assert "died of SIGBUS (remembered" in foreign.refusal("auto").message
    np.testing.assert_array_equal(foreign.load("always"), foreign.expected)
    assert foreign.verdicts() == [""]


def test_a_damaged_record_is_no_verdict(foreign: Made) -> None:
    foreign.load("auto")
    (record,) = (foreign.cache / "probes").iterdir()
    record.write_text("[")
    np.testing.assert_array_equal(foreign.load("auto"), foreign.expected)
    assert foreign.verdicts() == [""]


def test_what_a_trusted_key_signed_for_here_is_not_tried_unless_always(signed: Made) -> None:
    """The child would abort on import; this process only does if it is let."""
    signed.refusal("always", on_run="abort")
    with pytest.raises(ort.InvalidGraph, match="remembered"):
        signed.load("auto", on_run="abort")
    np.testing.assert_array_equal(signed.load("auto"), signed.expected)
    assert signed.verdicts() != [], "of `always`"
    assert "" not in signed.verdicts(), "nothing was tried by `auto`"


def test_a_right_seal_and_identity_are_no_reason_to_let_a_payload_through(own: Made) -> None:
    """Anybody can compute them: a hostile payload with both took the process with it."""
    own.refusal("auto", on_import="abort")


def test_signed_for_a_device_that_is_not_named_is_tried(signed: Made) -> None:
    def moved(node: EpContextNode) -> EpContextNode:
        notes = read_notes(node)
        assert notes is not None
        return replace(notes, identity=replace(notes.identity, device="")).seal_into(node)

    signed.file.edit(moved)
    signer = read_signer(signed.file.path.parents[1] / "own.key", None)
    sign_file(signed.file.path, signed.file.path, signer, ort.SessionOptions())
    signed.refusal("auto", on_import="abort")


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_good_verdict_counts_only_where_others_cannot_write_one(foreign: Made) -> None:
    with TemporaryDirectory() as place:  # not below pytest's folder, which nobody else can enter
        Path(place).chmod(0o777)
        open_to_all = replace(foreign, cache=Path(place))
        open_to_all.refusal("auto", on_import="abort")
        (record,) = (open_to_all.cache / "probes").iterdir()
        record.write_text('{"ort_lite_probe": 1, "problem": ""}')
        open_to_all.refusal("auto", on_import="abort")


def test_never_is_the_default_and_leaves_nothing_behind(own: Made) -> None:
    np.testing.assert_array_equal(own.load("never"), own.expected)
    assert not own.cache.exists()


def test_what_the_loader_refuses_is_no_crash(foreign: Made) -> None:
    foreign.file.put_container(remove_digests(foreign.file.container(), lambda _: b"engine"))
    with pytest.raises(ort.InvalidGraph) as found:
        foreign.load("auto")
    assert found.value.reason == "vendor_rejected"
    assert foreign.verdicts() == [""]


@pytest.mark.parametrize(
    ("mode", "seconds", "text"),
    [("sometimes", 60, "expected never, auto, always"), ("auto", 0, "whole seconds, at least 1")],
)
def test_a_wrong_value_is_refused(own: Made, mode: str, seconds: int, text: str) -> None:
    with pytest.raises(ort.InvalidArgument, match=text):
        own.load(mode, seconds)


def test_a_place_that_cannot_be_written_is_told(foreign: Made) -> None:
    foreign.cache.write_text("a file")
    with pytest.raises(ort.Fail, match=r"cannot be kept in .* session\.ep_context_cache_dir"):
        foreign.load("auto")


OPTIMAL = ort.CompiledModelCompatibility.EP_SUPPORTED_OPTIMAL


def test_a_check_says_what_is_remembered(foreign: Made) -> None:
    foreign.refusal("auto", on_import="abort")
    assert foreign.checked("auto", on_import="abort") == "vendor_crashed"
    assert foreign.checked("auto") is OPTIMAL, "a verdict belongs to the options"


def test_a_check_tries_a_payload_where_a_session_would(foreign: Made) -> None:
    assert foreign.checked("auto", on_run="abort") == "vendor_crashed"
    assert "remembered in" in foreign.refusal("auto", on_run="abort").message
    assert foreign.checked("never", on_run="abort") is OPTIMAL


def test_a_check_lets_through_what_a_trusted_key_signed_unless_always(signed: Made) -> None:
    assert signed.checked("auto", on_import="abort") is OPTIMAL
    assert signed.checked("always", on_import="abort") == "vendor_crashed"
    assert signed.checked("auto", on_import="abort") == "vendor_crashed", "remembered"


def test_a_remembered_verdict_is_the_same_with_threads(foreign: Made) -> None:
    """The number of threads may become an option of the EP, under which verdicts are kept."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    entries = (("probe", "auto"), ("probe_seconds", str(LONG)), ("cache_dir", str(foreign.cache)))
    for key, value in entries:
        options.add_session_config_entry(f"session.ep_context_{key}", value)
    options.add_provider(NAME, {"on_import": "abort"})
    with pytest.raises(ort.InvalidGraph):
        ort.InferenceSession(foreign.file.path, options)
    (verdict,) = ort.check_compatibility(foreign.file.path, options)
    assert verdict.reason == "vendor_crashed"
    assert "remembered in" in verdict.message


@needs_posix  # os.kill ends the process on Windows
def test_ctrl_c_while_compiling_leaves_nothing_behind(crashing: Site, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    command = ["compile", "m.onnx", "-e", NAME, "-O", "on_compile=interrupt"]
    done = in_a_child(crashing, "-c", CLI, *command, cwd=tmp_path)
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    assert not list(tmp_path.glob("*_ctx*"))
    assert not list(tmp_path.glob("*.tmp"))


def test_the_command_line_ends_with_7(foreign: Made, crashing: Site, tmp_path: Path) -> None:
    entries = [
        "session.ep_context_probe=auto",
        f"session.ep_context_probe_seconds={LONG}",
        f"session.ep_context_cache_dir={foreign.cache}",
    ]
    chosen = [part for entry in entries for part in ("-c", entry)]
    provider = ["-e", NAME, "-O", "on_import=abort"]
    for name in ("run", "check"):
        command = [name, str(foreign.file.path), *provider, *chosen]
        done = in_a_child(crashing, "-c", CLI, *command, cwd=tmp_path)
        assert done.returncode == 7, done.stderr
        assert "vendor_crashed" in (done.stderr if name == "run" else done.stdout)
