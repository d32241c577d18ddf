"""A reload brings OpenVINO's runtime and nothing of the package around it, which still works."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx.parser
import pytest
from bare_python import SLOW, bare
from context_models import compile_context
from small_models import feed, mlp, sandwich
from system_limits import WINDOWS

import ort_lite as ort
from eps.openvino import FACTORY
from eps.openvino.sdk.c_api import VERSIONS
from eps.openvino.sdk.libraries import c_library

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]

RELOAD = """
import ort_lite as ort
session = ort.InferenceSession({path!r}, providers=["OpenVINOExecutionProvider"])
answer = session.run(None, {{"x": np.ones((2, 4), np.float32)}})
"""
PACKAGE = """
import openvino as ov
from openvino import opset13 as ops
core = ov.Core()
x = ops.parameter([2, 4], ov.Type.f32)
compiled = core.compile_model(ov.Model([ops.relu(x)], [x]), "CPU")
theirs = compiled(np.full((2, 4), -1, np.float32))[0]
assert isinstance(compiled, ov.CompiledModel) and ov.__version__ and not theirs.any()
"""
TELL = """
import sys
modules = sorted(sys.modules)
import json
print(json.dumps({"modules": modules, "answer": answer[0].tolist()}))
"""


FIRST = """
import sys
before = []
from ort_lite.context.reload import BackgroundImporter
beginning = BackgroundImporter.begin
def noting(beside):
    before[:] = before or sys.modules
    beginning(beside)
BackgroundImporter.begin = noting
import ort_lite as ort
session = ort.InferenceSession({path!r}, providers=["OpenVINOExecutionProvider"])
import numpy as np
session.run(None, {{"x": np.ones((2, 4), np.float32)}})
answer = [np.array(before)]
"""
AT_ONCE = """
import threading
answers = []
def start(ready):
    ready.wait()
    import ort_lite as ort
    with ort.InferenceSession({path!r}, providers=["OpenVINOExecutionProvider"]) as session:
        import numpy as np
        answers.append(session.run(None, {{"x": np.ones((2, 4), np.float32)}})[0].tolist())
ready = threading.Event()
threads = [threading.Thread(target=start, args=[ready]) for _ in range(4)]
for thread in threads:
    thread.start()
ready.set()
for thread in threads:
    thread.join()
import numpy as np
answer = [np.array(answers)]
"""

COMPILE = """
import ort_lite as ort
session = ort.InferenceSession({path!r}, providers=["OpenVINOExecutionProvider"])
values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
feed = {{"x": values, "c": values[:, :, 0], "s": values[:, :, 1]}}
answer = session.run(None, feed)
"""
REWRITTEN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3,4] x, float[2,3] c, float[2,3] s) => (float[4,3] y) <float[1,3] row = {1, 2, 3}>
{
    mean = ReduceMean<axes = [-1], keepdims = 0>(x)
    shifted = Add(mean, row)
    first = Mul(shifted, c)
    second = Mul(shifted, s)
    turned = Sub(first, second)
    y = Concat<axis = 0>(turned, shifted)
}
"""
"""A reduction and a rotation that are written in other operators of OpenVINO."""

UNWANTED = {
    *("onnx", "urllib.request", "openvino_telemetry", "http.client"),
    "dataclasses",  # docs/adr/0014-lean-dataclasses.md
    *("logging", "json", "copy"),
    *("ort_lite.ep.kernels", "ort_lite.planning.naming", "ort_lite.context.hints"),
    *("eps.cpu.blas_threads", "ort_lite.version", "ort_lite.ep.input_shapes"),
}

OURS = {"ort_lite", "ctx_formats", "eps"}
MOST_MODULES, MOST_BEFORE = 92, 75
"""Of ours in a reload, and before OpenVINO has the payload; each takes a quarter of a ms."""
THROUGH_C_API = c_library() is not None and version("openvino").startswith(VERSIONS)
"""Whether a reload needs no Python extension; docs/adr/0020-openvino-through-its-c-api.md."""


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = compile_context(tmp_path_factory.mktemp("m"), mlp(), feed(mlp()), embed=False)
    return str(made.path)


def child(*parts: str, begin: str = "import numpy as np\n") -> dict[str, list[object]]:
    return told([sys.executable, "-c", begin + "".join(parts) + TELL])


def told(command: list[str]) -> dict[str, list[object]]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.skipif(WINDOWS, reason="Windows finds OpenVINO's DLLs through its package")
def test_a_reload_imports_neither_onnx_nor_the_package(context: str) -> None:
    modules = {str(name) for name in child(RELOAD.format(path=context))["modules"]}
    ours = {name for name in modules if name.split(".")[0] == "openvino"}
    assert len([name for name in modules if name.split(".")[0] in OURS]) <= MOST_MODULES
    extension = set() if THROUGH_C_API else {"openvino._pyopenvino"}
    assert {".".join(name.split(".")[:2]) for name in ours} == extension
    assert modules & UNWANTED == set()
    assert {name for name in modules if name.startswith("eps.cpu.kernels")} == set()


@pytest.mark.skipif(WINDOWS, reason="Windows finds OpenVINO's DLLs through its package")
def test_a_compile_imports_openvino_s_extension_and_not_the_package(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(REWRITTEN).SerializeToString())
    found = child(COMPILE.format(path=str(path)))
    theirs = {str(name) for name in found["modules"] if str(name).split(".")[0] == "openvino"}
    assert {".".join(name.split(".")[:2]) for name in theirs} == {"openvino._pyopenvino"}
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    shifted = x.mean(2) + np.array([1, 2, 3], np.float32)
    expected = np.concatenate([shifted * x[:, :, 0] - shifted * x[:, :, 1], shifted])
    np.testing.assert_allclose(np.array(found["answer"]), expected, rtol=1e-6)


def test_what_only_the_rest_needs_is_not_imported_before_the_payload(context: str) -> None:
    """A program that opens its session first has numpy imported while OpenVINO works."""
    if not THROUGH_C_API:
        pytest.skip("the extension imports numpy itself")
    before = told(bare(FIRST.format(path=context) + TELL))["answer"]
    assert SLOW.isdisjoint(before)
    top = [str(name).split(".")[0] for name in before]
    assert set(top).isdisjoint(("numpy", "logging", "onnx"))
    assert 0 < sum(name in OURS for name in top) <= MOST_BEFORE


def test_threads_may_open_the_first_sessions_of_a_process_at_once(context: str) -> None:
    """Each has threads of its own, and all import the same modules at the same time."""
    alone = child(RELOAD.format(path=context))["answer"]
    assert child(AT_ONCE.format(path=context), begin="")["answer"] == [alone] * 4


def test_a_reload_with_nodes_on_the_cpu_imports_no_onnx(tmp_path: Path) -> None:
    mixed = sandwich()
    made = compile_context(tmp_path, mixed, feed(mixed), embed=True)
    modules = child(RELOAD.format(path=str(made.path)))["modules"]
    assert "eps.cpu.compile_graph" in modules  # a node is there
    assert "onnx" not in modules


def test_the_package_works_before_and_after_ours(context: str) -> None:
    alone = child(RELOAD.format(path=context))["answer"]
    after = child(RELOAD.format(path=context), PACKAGE)
    before = child(PACKAGE, RELOAD.format(path=context))
    again = child(RELOAD.format(path=context), PACKAGE, RELOAD.format(path=context))
    assert alone == after["answer"] == before["answer"] == again["answer"]
    assert "openvino.opset13" in after["modules"]


def test_a_package_that_cannot_be_loaded_is_an_error_that_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "openvino"
    broken.mkdir()
    (broken / "__init__.py").write_text("")
    suffix = __import__("importlib.machinery").machinery.EXTENSION_SUFFIXES[0]
    (broken / f"_pyopenvino{suffix}").write_bytes(b"no library")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import ort_lite as ort
from eps.openvino import FACTORY
assert "cannot be loaded" in FACTORY.probe().reason
try:
    FACTORY.create({{}})
except ort.EPFail as exc:
    assert "cannot be loaded" in exc.message
    answer = [__import__("numpy").zeros(1)]
"""
    assert child(code)["answer"] == [0.0]


def test_libraries_are_loaded_while_python_goes_on() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from eps.openvino import FACTORY
import threading
assert not FACTORY.begin({{"device_type": "CPU"}})
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
assert FACTORY.begin({{"device_type": "CPU"}}), "all is loaded"
assert threading.active_count() == 1
maps = open("/proc/self/maps").read()
from eps.openvino.sdk import c_api
cores = c_api._open_core.cache_info().misses
FACTORY.create({{"device_type": "CPU"}})
assert c_api._open_core.cache_info().misses == cores, "the session has the Core that was begun"
assert "openvino" not in sys.modules and "openvino._pyopenvino" not in sys.modules
answer = [__import__("numpy").array(["libopenvino_intel_cpu_plugin.so" in maps])]
"""
    if sys.platform != "linux":
        pytest.skip("the other systems' loaders are left alone")
    assert child(code)["answer"] == [True]


@pytest.mark.parametrize("device", ["", "../../lib", "AUTO:NPU,CPU", "HETERO:"])
def test_beginning_with_a_device_that_is_none_raises_nothing(device: str) -> None:
    """`create` says what is wrong with it."""
    assert FACTORY.begin({"device_type": device}) is False


@pytest.mark.parametrize("named", [True, False])
def test_what_is_begun_has_the_session_s_number_of_threads(
    context: str, monkeypatch: pytest.MonkeyPatch, *, named: bool
) -> None:
    """Else the Core that is made early would not be the session's."""
    begun: list[str] = []

    def begin(_factory: object, options: Mapping[str, str]) -> bool:
        begun.append(options.get("num_of_threads", ""))
        return False

    monkeypatch.setattr(type(FACTORY), "begin", begin)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    providers = ["OpenVINOExecutionProvider"] if named else None
    if not named:
        options.add_provider("OpenVINOExecutionProvider")
    ort.InferenceSession(context, options, providers=providers).close()
    assert begun == ["2"]
