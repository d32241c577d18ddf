"""Payloads imported in a thread, beside the rest of a session that is made ready."""

from __future__ import annotations

import logging
import shutil
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
from ort_lite.context.early_import import EarlyImport
from ort_lite.context.importing import Imported
from ort_lite.providers import catalog

if TYPE_CHECKING:
    from plugin.installed_site import Site

NAME = "ApartExecutionProvider"
MODULE = Path(__file__).with_name("apart_ep.py")
THREAD = "ort_lite import"


@pytest.fixture
def context(installed: Site, tmp_path: Path) -> Path:
    """A context model: a product of the EP's, then a node for the CPU."""
    shutil.copy(MODULE, installed.folder)
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


def imported() -> list[tuple[str, Any]]:
    """Thread and partition of each import; forgotten when it is read."""
    provider: Any = sys.modules["apart_ep"].ApartExecutionProvider
    found = list(provider.imported)
    provider.imported.clear()
    return found


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def expected(fed: dict[str, np.ndarray]) -> np.ndarray:
    weights = onnx.numpy_helper.to_array(mixed().graph.initializer[0])
    return np.tanh(fed["x"] @ weights)


def test_the_payload_is_imported_in_a_thread_and_computes_right(context: Path) -> None:
    fed = feed(mixed())
    with load(context) as session:
        np.testing.assert_allclose(session.run(None, fed)[0], expected(fed), rtol=1e-6)
        assert session.load_report().payload_bytes > 0
        assert {"payload digest", "verdict", "vendor import"} <= session.load_report().phases.keys()
    assert [name for name, _ in imported()] == [THREAD]
    assert THREAD not in threads()


def test_a_refusal_in_the_thread_is_the_session_s_error(context: Path) -> None:
    with pytest.raises(ort.InvalidGraph, match="the vendor does not like it") as found:
        load(context, "refused")
    assert found.value.reason == "vendor_rejected"
    assert THREAD not in threads()


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


def test_a_bug_of_the_ep_is_not_swallowed_in_the_thread(context: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="a bug of the EP's"):
        load(context, "broken")
    assert THREAD not in threads()


def test_what_was_imported_is_released_when_the_rest_fails(context: Path) -> None:
    proto = onnx.load(context)
    (fallen,) = (node for node in proto.graph.node if node.op_type == "Tanh")
    fallen.op_type = "NoSuchOperator"
    context.write_bytes(proto.SerializeToString())
    with pytest.raises(ort.NotImplemented, match="NoSuchOperator"):
        load(context)
    ((_, partition),) = imported()
    assert partition.program is None


def test_what_nobody_takes_is_released(context: Path) -> None:
    load(context).close()
    ((_, partition),) = imported()
    partition.program = object()
    early = EarlyImport(_Done(partition), graph=None)  # type: ignore[arg-type] # needs none
    early.close()
    assert partition.program is None


class _Done:
    """An importer that has nothing left to do."""

    def __init__(self, partition: Any) -> None:
        self._partition = partition

    def import_all(self, graph: None) -> tuple[Imported, ...]:
        ep: Any = None
        node: Any = None
        return (Imported(index=0, node=node, owner=0, ep=ep, compiled=self._partition),)


def test_lines_logged_in_the_thread_are_the_session_s(
    context: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = ort.SessionOptions()
    options.logid = "mine"
    with caplog.at_level(logging.WARNING):
        load(context, "suboptimal", options).close()
    assert any(
        record.threadName == THREAD and record.getMessage().startswith("[mine] ")
        for record in caplog.records
    )


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
    here = threading.current_thread().name
    assert (asked, [name for name, _ in imported()]) == ([here], [here])


def test_nothing_is_begun_in_threads_for_an_sdk_that_the_process_has(
    context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(context).close()
    imported()
    factory = type(sys.modules["apart_ep"].FACTORY)
    monkeypatch.setattr(factory, "begin", lambda _factory, _options: True, raising=False)
    load(context).close()
    assert [name for name, _ in imported()] == [threading.current_thread().name]


def test_an_ep_that_does_not_say_so_imports_in_the_calling_thread(
    context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys.modules["apart_ep"].ApartExecutionProvider, "imports_without_lock", False
    )
    load(context).close()
    assert [name for name, _ in imported()] == [threading.current_thread().name]
