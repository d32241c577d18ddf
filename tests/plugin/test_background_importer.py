"""What a session needs next is imported in a thread while an EP imports its payloads."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import helper
from small_models import feed, model

import ort_lite as ort
from ort_lite.providers import catalog

if TYPE_CHECKING:
    from plugin.installed_site import Site

NAME = "ApartExecutionProvider"
MODULE = Path(__file__).with_name("apart_ep.py")
THREAD = "ort_lite modules"


@pytest.fixture
def context(installed: Site, tmp_path: Path) -> Path:
    """A context model: a product of the EP's, then a node for the CPU."""
    shutil.copy(MODULE, installed.folder)
    (installed.folder / "apart_ep_next.py").write_text("")
    sys.modules.pop("apart_ep_next", None)
    installed.add_distribution("apart", {catalog.GROUP: {NAME: "apart_ep:FACTORY"}})
    plain = tmp_path / "m.onnx"
    plain.write_bytes(mixed().SerializeToString())
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    ort.InferenceSession(plain, options, providers=[NAME]).close()
    return tmp_path / "m_ctx.onnx"


def mixed() -> onnx.ModelProto:
    w = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Tanh", ["t"], ["y"])]
    return model(nodes, [("x", [2, 4])], [("y", [2, 3])], {"w": w})


def load(context: Path, fate: str = "", options: ort.SessionOptions | None = None) -> Any:
    return ort.InferenceSession(context, options, providers=[(NAME, {"fate": fate})])


def imported() -> list[tuple[set[str], Any]]:
    """Threads before, and partition of, each import; forgotten when it is read."""
    provider: Any = sys.modules["apart_ep"].ApartExecutionProvider
    found = list(provider.imported)
    provider.imported.clear()
    return found


def ended() -> None:
    """No thread waits for a session that is gone."""
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(timeout=60)
            assert not thread.is_alive()


def expected(fed: dict[str, np.ndarray]) -> np.ndarray:
    weights = onnx.numpy_helper.to_array(mixed().graph.initializer[0])
    return np.tanh(fed["x"] @ weights)


def test_modules_are_imported_beside_a_payload_that_computes_right(context: Path) -> None:
    fed = feed(mixed())
    with load(context) as session:
        np.testing.assert_allclose(session.run(None, fed)[0], expected(fed), rtol=1e-6)
        assert session.load_report().payload_bytes > 0
        assert {"payload digest", "verdict", "vendor import"} <= session.load_report().phases.keys()
    ((before, _),) = imported()
    assert THREAD in before
    ended()
    assert "apart_ep_next" in sys.modules


def test_a_refusal_is_the_session_s_error_and_leaves_no_thread(context: Path) -> None:
    with pytest.raises(ort.InvalidGraph, match="the vendor does not like it") as found:
        load(context, "refused")
    assert found.value.reason == "vendor_rejected"
    ended()


def test_a_damaged_payload_is_refused_before_the_ep_sees_it(context: Path) -> None:
    (payload,) = context.parent.glob("*.bin")
    data = bytearray(payload.read_bytes())
    data[1 << 16] ^= 1  # where the first payload begins
    payload.chmod(0o600)
    payload.write_bytes(data)
    with pytest.raises(ort.InvalidGraph) as found:
        load(context)
    assert found.value.reason == "integrity"
    assert not imported()
    ended()


def test_a_bug_of_the_ep_is_not_swallowed(context: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="a bug of the EP's"):
        load(context, "broken")
    ended()


def test_what_was_imported_is_released_when_the_rest_fails(context: Path) -> None:
    proto = onnx.load(context)
    (fallen,) = (node for node in proto.graph.node if node.op_type == "Tanh")
    fallen.op_type = "NoSuchOperator"
    context.write_bytes(proto.SerializeToString())
    with pytest.raises(ort.NotImplemented, match="NoSuchOperator"):
        load(context)
    ((_, partition),) = imported()
    assert partition.program is None


def test_lines_logged_meanwhile_are_the_session_s(
    context: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = ort.SessionOptions()
    options.logid = "mine"
    with caplog.at_level(logging.WARNING):
        load(context, "suboptimal", options).close()
    assert any(record.getMessage().startswith("[mine] ") for record in caplog.records)


def test_a_module_that_cannot_be_imported_is_the_error_of_who_needs_it(tmp_path: Path) -> None:
    (tmp_path / "lacking_module.py").write_text("import no_such_module_at_all")
    (tmp_path / "module_after.py").write_text("")
    code = """
from ort_lite.context.reload import BackgroundImporter
import threading, sys
beside = BackgroundImporter(["lacking_module", "module_after"])
assert "module_after" not in sys.modules, "nothing begins by itself"
beside.begin()
beside.begin()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
assert "module_after" in sys.modules
try:
    import lacking_module
except ModuleNotFoundError as exc:
    print(exc.name)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("no_such_module_at_all\n", "")


def test_bytes_from_a_user_s_function_are_imported_where_they_were_asked_for(context: Path) -> None:
    (payload,) = context.parent.glob("*.bin")
    asked = []

    def read(name: str, buffer: ort.OrtEpContextDataBuffer) -> None:
        asked.append(threading.current_thread().name)
        buffer.allocate(payload.stat().st_size)
        buffer.write(payload.read_bytes())

    options = ort.SessionOptions()
    options.set_ep_context_data_read_func(read)
    load(context, options=options).close()
    assert asked == [threading.current_thread().name]


def test_modules_that_are_there_need_no_thread(context: Path) -> None:
    load(context).close()
    imported()
    for thread in threading.enumerate():  # the session does not wait for its end
        if thread.name == THREAD:
            thread.join()
    load(context).close()
    ((before, _),) = imported()
    assert THREAD not in before


def test_an_ep_that_keeps_the_lock_has_no_thread_beside_it(
    context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["apart_ep"].ApartExecutionProvider, "startup_hints", None)
    load(context).close()
    ((before, _),) = imported()
    assert THREAD not in before
