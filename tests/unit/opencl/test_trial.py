"""A device is offered only where a small program runs on it, tried in a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx.parser
import pytest
from other_cpu.imitation import built_library, imitating
from system_limits import needs_posix

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.cl.library import package_folder
from eps.opencl.runtime import pocl_target
from eps.opencl.runtime.device import POCL, find_devices
from eps.opencl.runtime.pocl_target import fitting_cpu
from eps.opencl.trials import failures, trial
from eps.opencl.trials import record as trial_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.runtime.device import ListedDevice

ROOT = Path(__file__).parents[3]
OPENCL = "OpenCLExecutionProvider"
RELU = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
MODEL = onnx.parser.parse_model(RELU).SerializeToString()
X = np.array([-1, 0, 1, 2], np.float32)

FOUND = find_devices()
with_pocl = pytest.mark.skipif(
    not any(found.platform.name == POCL for found in FOUND), reason="PoCL is not here"
)
LIBRARIES = Path(package_folder() or "nowhere") / ".libs"
with_pocl_alone = pytest.mark.skipif(
    not (LIBRARIES / "pocl.icd").is_file(), reason="pyopencl's wheel holds no PoCL"
)
BROKEN = {"OCL_ICD_VENDORS": str(LIBRARIES), "POCL_EXTRA_BUILD_FLAGS": "-nonsense"}
"""PoCL alone, which refuses every program."""

SESSION = """
import json, sys
import numpy as np, onnx.parser
import ort_lite as ort

executable, options, text = sys.argv[1:]
sys.executable = executable or sys.executable
model = onnx.parser.parse_model(text).SerializeToString()
told = {"devices": [d.ep_name for d in ort.get_ep_devices() if d.ep_name.startswith("OpenCL")]}
try:
    ep = ("OpenCLExecutionProvider", json.loads(options))
    with ort.InferenceSession(model, providers=[ep]) as s:
        (y,) = s.run(None, {"x": np.array([-1, 0, 1, 2], np.float32)})
        (partition,) = s.explain().partitions
        told |= {"y": y.tolist(), "ep": partition.ep, "identity": dict(partition.identity)}
        told["refusals"] = dict(partition.nodes[0].refusals)
except ort.EPFail as exc:
    told["error"] = exc.message
print(json.dumps(told))
"""


def told(
    caches: Path, environ: Mapping[str, str], options: str = "{}", executable: str = ""
) -> dict[str, Any]:
    """What a process with a session on OpenCL says; it ends well."""
    done = subprocess.run(
        [sys.executable, "-c", SESSION, executable, options, RELU],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(caches), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def records(caches: Path) -> list[Path]:
    return sorted((caches / "ort_lite" / failures.FOLDER).glob("*"))


@with_pocl_alone
def test_a_driver_that_builds_nothing_is_offered_to_nobody(tmp_path: Path) -> None:
    """No device is listed, no node is taken, and the process ends as ever."""
    found = told(tmp_path, BROKEN)
    assert found["devices"] == []
    assert (found["ep"], found["y"]) == ("CPUExecutionProvider", [0, 0, 1, 2])
    reason = found["refusals"][OPENCL]
    assert "Invalid build option: -nonsense" in reason
    assert 'pip install "ort-lite[opencl-intel]"' in reason
    (record,) = records(tmp_path)
    assert record.name.endswith(".failed.json")


@with_pocl_alone
def test_a_failing_device_that_is_named_is_an_error_with_the_drivers_words(tmp_path: Path) -> None:
    found = told(tmp_path, BROKEN, '{"platform": "portable"}')
    assert "fails a trial: clBuildProgram failed" in found["error"]
    assert "-nonsense" in found["error"]


@with_pocl_alone
def test_a_trial_is_made_once_and_again_where_its_record_is_damaged(tmp_path: Path) -> None:
    nothing_to_start = "/nowhere/python"
    first = told(tmp_path, BROKEN)
    assert told(tmp_path, BROKEN, executable=nothing_to_start) == first
    (record,) = records(tmp_path)
    whole = record.read_bytes()
    for damaged in (b"", whole[:40], b"[]", whole.replace(b"-nonsense", b"-damaged")):
        record.write_bytes(damaged)
        assert told(tmp_path, BROKEN) == first
        assert record.read_bytes() == whole or b"-damaged" in damaged


@with_pocl_alone
def test_a_driver_that_was_mended_is_tried_again(tmp_path: Path) -> None:
    told(tmp_path, BROKEN)
    mended = {key: text for key, text in BROKEN.items() if key != "POCL_EXTRA_BUILD_FLAGS"}
    found = told(tmp_path, mended)
    assert (found["ep"], found["y"]) == (OPENCL, [0, 0, 1, 2])


RELOAD = """
import os, sys
import numpy as np
import ort_lite as ort

def refused(event, arguments):
    if event.startswith(("subprocess.", "os.exec", "os.fork", "os.posix_spawn")):
        sys.exit("a process was started")

sys.addaudithook(refused)
with ort.InferenceSession(sys.argv[1], providers=["OpenCLExecutionProvider"]) as session:
    print(session.run(None, {"x": np.array([-1, 0, 1, 2], np.float32)})[0].tolist())
kept = os.path.exists(os.environ["XDG_CACHE_HOME"] + "/ort_lite")
print("eps.opencl.trials.child" in sys.modules, kept)
"""


def test_a_reload_makes_no_trial_and_waits_for_none(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    source.write_bytes(MODEL)
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    with ort.InferenceSession(source, options, providers=[OPENCL]) as session:
        session.run(None, {"x": X})
    done = subprocess.run(
        [sys.executable, "-c", RELOAD, str(source.with_name("m_ctx.onnx"))],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0.0, 0.0, 1.0, 2.0]", "False False"]


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's, empty; nothing is remembered in this process either."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(failures, "problems_here", {})
    return tmp_path


def fail(found: ListedDevice, problem: str = "made up") -> None:
    facts = trial_record.facts_of(found, os.environ)
    trial_record.write_problem(facts, failures.records_folder(os.environ), problem)


@pytest.mark.skipif(len(FOUND) < 2, reason="there is one OpenCL device")
def test_the_next_device_is_used_where_the_best_one_has_failed(
    caches: Path,
) -> None:
    with ort.InferenceSession(MODEL, providers=[OPENCL]) as s:
        best = s.explain().partitions[0].identity
    for one in FOUND:
        if one.device.version in str(best):
            fail(one)
    failures.problems_here.clear()
    with ort.InferenceSession(MODEL, providers=[OPENCL]) as s:
        (partition,) = s.explain().partitions
        assert s.run(None, {"x": X})[0].tolist() == [0, 0, 1, 2]
    assert partition.ep == OPENCL
    assert partition.identity != best
    probe = FACTORY.probe()
    assert "fails a trial: made up" in probe.reason
    assert len(probe.devices) == len(FOUND) - 1


HELLO = f"import os, sys, time\nprint({trial.BEGUN!r}, flush=True)\n"
CHILDREN = {
    "dies": ("os.abort()", "a small program died of SIGABRT"),
    "ends": ("sys.exit('oh no')", "code 1: oh no"),
    "hangs": ("time.sleep(600)", "did not finish within"),
    "dies at exit": (
        "print('[\"\", true]', flush=True)\nos.abort()",
        "a small program died of SIGABRT",
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals have other numbers there")
@pytest.mark.parametrize("how", CHILDREN)
def test_how_a_child_comes_down_is_the_reason(
    how: str, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, reason = CHILDREN[how]
    (caches / "child_of_this_test.py").write_text(HELLO + code)
    monkeypatch.syspath_prepend(str(caches))
    monkeypatch.setattr(trial, "CHILD", "child_of_this_test")
    if how == "hangs":
        monkeypatch.setattr(trial, "LIMIT", 1.0)
    assert reason in trial.problem_of(FOUND[0])
    assert len(records(caches)) == (0 if how == "hangs" else 1)  # a busy machine is no verdict


SHORTAGES = {
    "killed by the system": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "out of memory": (
        "import os, sys\nsys.stderr.write('LLVM ERROR: out of memory')\n"
        "sys.stderr.flush()\nos.abort()\n"
    ),
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals have other numbers there")
@pytest.mark.parametrize("how", SHORTAGES)
def test_a_trial_that_the_system_ended_is_kept_by_nobody(
    how: str, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (caches / "child_of_this_test.py").write_text(HELLO + SHORTAGES[how])
    monkeypatch.syspath_prepend(str(caches))
    with monkeypatch.context() as patch:
        patch.setattr(trial, "CHILD", "child_of_this_test")
        assert "fails a trial" in trial.problem_of(FOUND[0])
    assert records(caches) == []
    if how == "out of memory":
        assert trial.problem_of(FOUND[0]) == ""  # tried again, by the real child


@needs_posix
def test_a_failure_under_a_limit_of_memory_is_not_kept_for_others(
    caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (caches / "child_of_this_test.py").write_text(HELLO + "import os\nos.abort()\n")
    monkeypatch.syspath_prepend(str(caches))
    with monkeypatch.context() as patch:
        patch.setattr(trial, "CHILD", "child_of_this_test")
        patch.setattr(trial, "_limits", lambda: "RLIMIT_AS=1")
        assert "SIGABRT" in trial.problem_of(FOUND[0])
    assert records(caches) == []
    assert trial.recall_problem(FOUND[0]) is None


@pytest.mark.skipif(not Path("/bin/true").exists(), reason="there is no program that does nothing")
def test_an_interpreter_that_is_another_program_is_no_verdict(
    caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    assert trial.problem_of(FOUND[0]) == ""
    assert records(caches) == []


AVX512 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.mark.parametrize(
    ("width", "flags", "name"),
    [
        (16, AVX512, "skylake-avx512"),
        (16, AVX512 | {"avx512_vnni"}, "cascadelake"),
        (8, set[str](), "haswell"),
        (16, set[str](), ""),
        (4, set[str](), "x86-64"),
    ],
)
def test_the_cpu_that_pocl_compiles_for_has_what_its_vectors_need(
    width: int, flags: set[str], name: str
) -> None:
    common = {"avx2", "fma", "f16c", "bmi1", "bmi2", "abm"}
    assert fitting_cpu(width, common | flags) == name


def test_memory_that_is_not_there_is_not_read() -> None:
    assert pocl_target._read(8, 8) is None


@pytest.mark.parametrize(
    ("guess", "width", "can"),
    [
        ("icelake-client", 16, True),
        ("znver3", 16, False),
        ("sapphirerapids", 8, False),
        ("alderlake", 8, True),
        ("goldmont", 8, False),
        ("goldmont", 4, True),
        ("haswell", 4, False),
        ("generic", 8, False),
    ],
)
def test_a_guess_must_have_the_vectors_that_built_in_functions_use(
    guess: str, width: int, *, can: bool
) -> None:
    assert pocl_target.can_compile(guess, width) is can


WORDS = ["zen4", "zen5", "zen5,no-avx512", "no-avx512", "meteor-lake"]


@with_pocl
@pytest.mark.parametrize("words", WORDS)
def test_pocl_runs_on_cpus_that_its_llvm_does_not_know(words: str, tmp_path: Path) -> None:
    """AMD's Zen 4 and Zen 5, virtual CPUs whose model has AVX-512 and which have not, laptops."""
    if not any(found.platform.version == pocl_target.RELEASE for found in FOUND):
        pytest.skip("another release of PoCL: it needs no name of a CPU")
    if words != "meteor-lake" and "avx512f" not in pocl_target.cpu_flags():
        pytest.skip("this CPU has no AVX-512")
    environ = imitating(built_library(tmp_path), words)
    found = told(tmp_path, environ, '{"platform": "portable"}')
    assert found.get("y") == [0, 0, 1, 2], found
    assert found["ep"] == OPENCL
    narrow = words.endswith(("no-avx512", "meteor-lake"))
    names = ("|haswell",) if narrow else ("|skylake-avx512", "|cascadelake")
    assert found["identity"]["architecture"].endswith(names)
