"""What a compile in the background writes, and that it writes nothing half."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper
from plugin.behind import CPU, GATED, KEY, PATIENCE, check, options, start
from plugin.installed_site import in_a_child
from small_models import feed, mlp
from system_limits import needs_posix

import ort_lite as ort

if TYPE_CHECKING:
    from plugin.gated_ep import Gate
    from plugin.installed_site import Site

TESTS = Path(__file__).parents[1]


def test_closing_waits_for_nothing_and_leaves_nothing(gate: Gate, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    session = start(path, options(ep__context_enable="1"))
    assert gate.entered.wait(PATIENCE)
    session.close()
    with pytest.raises(ort.Fail, match="closed"):
        session.run(None, feed(mlp()))
    assert not gate.released.is_set()
    gate.opened.set()
    assert session.background_compile(None).state == "canceled"
    assert gate.released.is_set()
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "site"]


CHILD = """
import os, sys
sys.path.insert(0, {tests!r})
import numpy as np
import ort_lite as ort
from plugin import gated_ep
gate = gated_ep.FACTORY.gate = gated_ep.{gate}()
options = ort.SessionOptions()
for key in {keys!r}:
    options.add_session_config_entry(key, "1")
options.add_session_config_entry("session.ep_context_cache_dir", "cache")
session = ort.InferenceSession("m.onnx", options, providers=["GatedExecutionProvider"])
assert gate.entered.wait({patience})
print(session.run(None, {{"x": np.ones((2, 4), np.float32)}})[0].shape)
"""


@pytest.mark.parametrize("key", ["ep.context_enable", "session.ep_context_cache"])
def test_leaving_the_interpreter_leaves_no_half_written_file(
    gated: Site, tmp_path: Path, key: str
) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    code = CHILD.format(tests=str(TESTS), gate="GateUntilExit", keys=(KEY, key), patience=PATIENCE)
    done = in_a_child(gated, "-c", code, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(2, 3)\n", "")
    left = [p.name for p in tmp_path.rglob("*") if p.is_file() and "site" not in p.parts]
    assert [name for name in left if name != "m.onnx" and not is_lock_or_stamp(name)] == []


def is_lock_or_stamp(name: str) -> bool:
    return name.endswith((".lock", ".json"))


@needs_posix
def test_a_fork_s_child_answers_and_waits_for_nothing(gated: Site, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    code = CHILD.format(tests=str(TESTS), gate="Gate", keys=(KEY,), patience=PATIENCE) + (
        "if os.fork():\n"
        "    code = os.waitstatus_to_exitcode(os.wait()[1])\n"
        "    gate.opened.set()\n"
        "    assert session.background_compile(None).state == 'done'\n"
        "    sys.exit(code)\n"
        "found = session.background_compile(None)\n"
        "assert (found.state, found.reason) == ('canceled', 'the process was forked'), found\n"
        "session.run(None, {'x': np.ones((2, 4), np.float32)})\n"
        "session.close()\n"
        "os._exit(7)\n"
    )
    done = in_a_child(gated, "-W", "ignore::DeprecationWarning", "-c", code, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_context_is_written_when_the_compile_is_done(gate: Gate, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(mlp().SerializeToString())
    with start(path, options(ep__context_enable="1")) as session:
        assert not (tmp_path / "m_ctx.onnx").exists()
        gate.opened.set()
        assert session.background_compile(None).state == "done"
    with start(tmp_path / "m_ctx.onnx") as session:
        assert session.background_compile().state == "off"
        assert session.get_providers() == [GATED, CPU]
        check(session)
    with pytest.raises(ort.Fail, match="exists"):
        start(path, options(ep__context_enable="1"))
    assert gate.count == 1


def test_the_cache_is_filled_by_the_first_start_and_makes_the_second_a_plain_hit(
    gate: Gate, tmp_path: Path
) -> None:
    entries = {"session__ep_context_cache": "1", "session__ep_context_cache_dir": str(tmp_path)}
    with start(None, options(**entries)) as session:
        assert session.load_report().cache.state == "missed"
        gate.opened.set()
        assert session.background_compile(None).state == "done"
        assert session.load_report().cache.state == "stored"
        check(session)
    with start(None, options(**entries)) as session:
        assert session.load_report().cache.state == "hit"
        found = session.background_compile()
        assert (found.state, found.reason) == ("off", "the compiled form was loaded")
        assert session.get_providers() == [GATED, CPU]
        check(session)
    assert gate.count == 1


def test_of_two_sessions_one_compiles_and_the_other_reloads(gate: Gate, tmp_path: Path) -> None:
    proto = mlp()
    proto.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [3]))
    source = proto.SerializeToString()
    entries = {"session__ep_context_cache": "1", "session__ep_context_cache_dir": str(tmp_path)}
    with start(source, options(**entries)) as one, start(source, options(**entries)) as other:
        gate.opened.set()
        for session in (one, other):
            assert session.background_compile(None).state == "done"
            fed = {**feed(mlp()), "b": np.full(3, 9, np.float32)}
            assert session.run(None, fed)[0].shape == (2, 3)
            check(session)
        states = sorted(s.load_report().cache.state for s in (one, other))
        imported = {
            s.load_report().cache.state: s.load_report().payload_bytes for s in (one, other)
        }
    assert (states, gate.count) == (["hit", "stored"], 1)
    assert imported["hit"] > imported["stored"] == 0
