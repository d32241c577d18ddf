"""A second start opens only the execution providers that the first one needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from cached_starts import store
from small_models import branching, feed, mlp

import ort_lite as ort
from ort_lite.ep import pick_variables, stamp_files
from ort_lite.model_cache.eviction import remove_leftovers
from ort_lite.model_cache.kept_choice import MOST, ChoiceFile
from ort_lite.model_cache.secret import CacheSecret
from ort_lite.providers.provider_choice import ProviderChoice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CPU, OPENVINO, OPENCL = (f"{name}ExecutionProvider" for name in ("CPU", "OpenVINO", "OpenCL"))
CHILD = """
import ctypes, json, sys
import numpy as np
import ort_lite as ort

def loaded_sdks():
    if sys.platform == "win32":
        ask = ctypes.windll.kernel32.GetModuleHandleW
        ask.restype = ctypes.c_void_p
        return [name for name in ("openvino", "OpenCL", "intelocl64") if ask(name + ".dll")]
    with open("/proc/self/maps") as file:
        maps = file.read()
    return [name for name in ("openvino", "libOpenCL", "intelocl", "pocl") if name in maps]

options = ort.SessionOptions()
options.add_session_config_entry("session.ep_context_cache", "1")
options.add_session_config_entry("session.ep_context_cache_dir", sys.argv[2])
with open(sys.argv[1], "rb") as file:  # a young file has no digest that the cache remembers
    session = ort.InferenceSession(file.read(), options)
answer = session.run(None, {"x": np.ones((2, 3), np.float32)})
print(json.dumps({
    "sdks": loaded_sdks(),
    "providers": session.get_providers(), "state": session.load_report().cache.state,
    "notes": session.explain().notes, "answer": answer[0].tolist(),
}))
"""


def options(cache: Path, **entries: str) -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.add_session_config_entry("session.ep_context_cache", "1")
    made.add_session_config_entry("session.ep_context_cache_dir", str(cache))
    for key, value in entries.items():
        made.add_session_config_entry(f"session.{key}", value)
    return made


def start(cache: Path, providers: Any = (OPENVINO,), **entries: str) -> tuple[str, bool]:
    """State of the cache, and whether an execution provider was not opened, of a model of If."""
    proto = branching()
    source = proto.SerializeToString()
    with ort.InferenceSession(source, options(cache, **entries), providers=providers) as session:
        answer = session.run(None, feed(proto))
        expected = onnxruntime.InferenceSession(source).run(None, feed(proto))
        np.testing.assert_allclose(answer[0], expected[0], rtol=1e-5)
        assert session.get_providers() == [
            *(p[0] if isinstance(p, tuple) else p for p in providers),
            CPU,
        ]
        skipped = "is not opened" in str(session.explain())
        return session.load_report().cache.state, skipped


def in_child(model: Path, cache: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", CHILD, str(model), str(cache)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_model_that_stays_on_the_cpu_opens_no_sdk_again(cache: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(branching().SerializeToString())
    first, second = in_child(model, cache), in_child(model, cache)
    assert first["sdks"], "the first start asks every execution provider"
    assert second["sdks"] == []
    assert (first["state"], second["state"]) == ("stored", "hit")
    assert first["providers"] == second["providers"]
    assert any(f"{OPENVINO} is not opened" in note for note in second["notes"])
    (expected,) = onnxruntime.InferenceSession(model).run(None, {"x": np.ones((2, 3), np.float32)})
    np.testing.assert_allclose(second["answer"], expected, rtol=1e-5)


def test_the_reasons_of_the_first_start_are_kept(cache: Path) -> None:
    start(cache)
    proto = branching().SerializeToString()
    with ort.InferenceSession(proto, options(cache), providers=[OPENVINO]) as session:
        (line,) = [n for n in session.explain().notes if n.startswith(f"not on {OPENVINO}: If")]
    assert "control-flow nodes run in the session" in line


def test_an_execution_provider_without_nodes_is_left_out_of_a_hit(cache: Path) -> None:
    proto = mlp()
    states = []
    for _ in range(3):
        with ort.InferenceSession(
            proto.SerializeToString(), options(cache), providers=[OPENVINO, OPENCL]
        ) as session:
            opened = [ep.name for ep in session._present().eps]
            states.append((session.load_report().cache.state, opened))
            assert session.get_providers() == [OPENVINO, OPENCL, CPU]
            assert session.get_provider_options().keys() == {OPENVINO, OPENCL, CPU}
            answer = session.run(None, feed(proto))
    assert states[0] == ("stored", [OPENVINO, OPENCL, CPU])
    assert states[1:] == [("hit", [OPENVINO, CPU])] * 2
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed(proto))
    np.testing.assert_allclose(answer[0], expected[0], rtol=1e-4, atol=1e-6)


def test_other_options_providers_and_entries_decide_anew(cache: Path) -> None:
    start(cache)
    assert start(cache) == ("hit", True)
    assert start(cache, [(OPENVINO, {"num_of_threads": "1"})]) == ("stored", False)
    assert start(cache, [OPENVINO, OPENCL]) == ("stored", False)
    assert start(cache, placement="all")[1] is False
    assert start(cache) == ("hit", True)


def test_a_variable_of_the_sdk_decides_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(cache)
    monkeypatch.setenv("OPENVINO_LIB_PATHS", "/elsewhere")
    assert start(cache) == ("hit", False)  # the entry has the identity of the devices


def test_a_changed_file_or_variable_shows_in_an_installation(tmp_path: Path) -> None:
    library = tmp_path / "libdriver.so"
    library.write_bytes(b"one")
    before = [stamp_files([str(place)]) for place in (tmp_path, library)]
    os.utime(library, ns=(1, 1))
    after = [stamp_files([str(place)]) for place in (tmp_path, library)]
    assert before[0] == before[1] != after[0] == after[1]
    library.unlink()
    assert stamp_files([str(tmp_path), str(library)]) == ""
    assert pick_variables({"CL_A": "1", "B": "2"}, ("CL_",)) == "CL_A=1"


@pytest.fixture
def chip() -> Iterator[str]:
    """An execution provider that cannot tell what is installed for it."""
    ort.register_execution_provider_library("chip", "npu_ep:FACTORY")
    yield "ChipExecutionProvider"
    ort.unregister_execution_provider_library("chip")


def test_one_that_cannot_tell_what_is_installed_is_opened_each_time(cache: Path, chip: str) -> None:
    for _ in range(2):
        assert start(cache, [chip, OPENVINO])[1] is False


def only_file(cache: Path) -> Path:
    (path,) = store(cache).choices.iterdir()
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda _: b"",
        lambda _: b"[" * 20_000,
        lambda data: data.replace(b'"format": 1', b'"format": 2'),
        lambda data: data.replace(CPU.encode(), OPENVINO.encode()),
    ],
    ids=["empty", "deep", "newer", "changed"],
)
def test_a_damaged_file_decides_nothing(cache: Path, change: Any) -> None:
    start(cache)
    path = only_file(cache)
    path.write_bytes(change(path.read_bytes()))
    assert start(cache) == ("hit", False)
    assert start(cache) == ("hit", True)


def test_a_file_without_the_caches_key_decides_nothing(tmp_path: Path) -> None:
    choice = ProviderChoice(names=(OPENVINO, CPU), opened={CPU: {}}, notes=("why",))
    path, mine = tmp_path / "c.json", CacheSecret(b"m" * 32)
    ChoiceFile(path).keep("k", choice, "")
    assert ChoiceFile(path).find("k") == choice
    assert ChoiceFile(path, mine).find("k") is None
    ChoiceFile(path, CacheSecret(b"o" * 32)).keep("k", choice, "")
    assert ChoiceFile(path, mine).find("k") is None
    ChoiceFile(path, mine).keep("k", choice, "")
    assert ChoiceFile(path, mine).find("k") == choice


def test_a_file_has_the_newest_choices(tmp_path: Path) -> None:
    choice = ProviderChoice(names=(CPU,), opened={CPU: {}})
    kept = ChoiceFile(tmp_path / "c.json")
    for number in range(MOST + 3):
        kept.keep(str(number), choice, "")
    assert [kept.find(str(n)) is not None for n in range(MOST + 3)] == [False] * 3 + [True] * MOST


def test_upkeep_removes_choices_of_models_that_are_gone(cache: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(branching().SerializeToString())
    with ort.InferenceSession(model, options(cache), providers=[OPENVINO]):
        path = only_file(cache)
    assert path not in remove_leftovers(store(cache), now=0.0)
    model.unlink()
    assert path in remove_leftovers(store(cache), now=0.0)


def test_nothing_is_kept_where_a_provider_is_missing(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ort.register_execution_provider_library("dead", "failing_eps:DEAD")
    try:
        for _ in range(2):
            proto = branching().SerializeToString()
            providers = ["DeadExecutionProvider", OPENVINO]
            with pytest.warns(UserWarning, match="no device 'XPU'"):
                session = ort.InferenceSession(proto, options(cache), providers=providers)
            with session:
                assert session.get_providers() == [OPENVINO, CPU]
    finally:
        ort.unregister_execution_provider_library("dead")
    assert capsys.readouterr().err.count("EP Error [") == 2
    assert not list(store(cache).choices.iterdir())
