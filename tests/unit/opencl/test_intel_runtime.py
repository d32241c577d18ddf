"""Intel's OpenCL runtime is found beside other drivers, and beside OpenVINO in one process."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

import ort_lite as ort
from eps.opencl.runtime import icd
from eps.opencl.runtime.icd import CHOSEN_BY_USER, LIBRARY, show_intel_runtime
from eps.openvino.sdk.libraries import load_newest_tbb
from ort_lite.status import EPFail

ROOT = Path(__file__).parents[3]
PREFIX = Path(sys.prefix)
installed = pytest.mark.skipif(
    not (PREFIX / "lib" / LIBRARY).is_file(), reason=f"{LIBRARY} is not installed"
)

STEPS = """
import sys
import numpy as np
import onnx.parser

text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
model = onnx.parser.parse_model(text).SerializeToString()
x = np.array([-1, 0, 1, 2], np.float32)

def session(ep, device):
    import ort_lite as ort
    with ort.InferenceSession(model, providers=[ep]) as session:
        assert session.run(None, {"x": x})[0].tolist() == [0, 0, 1, 2]
        (partition,) = session.explain().partitions
        assert partition.ep == ep
        assert device in str(partition.identity)

def vendors_session():
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model, b""), "CPU")
    assert compiled(x)[0].tolist() == [0, 0, 1, 2]

def vendors_import():
    import openvino

def query():
    import pyopencl
    assert pyopencl.get_platforms()

steps = {
    "import openvino": vendors_import,
    "run openvino": vendors_session,
    "query platforms": query,
    "OpenVINO": lambda: session("OpenVINOExecutionProvider", ""),
    "OpenCL": lambda: session("OpenCLExecutionProvider", "LINUX|"),  # of Intel's driver alone
}
for step in sys.argv[1:]:
    steps[step]()
print("done")
"""


@installed
@pytest.mark.parametrize(
    "steps",
    [
        ("OpenVINO", "OpenCL", "OpenVINO"),
        ("OpenCL", "OpenVINO", "OpenCL"),
        ("import openvino", "OpenCL", "run openvino", "OpenVINO"),
        ("run openvino", "OpenCL", "run openvino", "OpenCL"),
        ("OpenCL", "run openvino", "OpenCL"),
        ("query platforms", "OpenCL", "OpenVINO", "query platforms"),
        ("query platforms", "run openvino", "OpenCL", "run openvino"),
        ("run openvino", "query platforms", "OpenCL", "OpenVINO"),
    ],
    ids=", ".join,
)
def test_intels_runtime_is_found_whatever_came_before(steps: tuple[str, ...]) -> None:
    """Another package's OpenVINO with its older oneTBB, or a query of the loader's platforms."""
    command = [sys.executable, "-W", "ignore", "-c", STEPS, *steps]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done"]
    assert "Intel's OpenCL runtime is not used" not in done.stderr


OWN_TBB = """
import openvino, sys
from eps.opencl.cl.devices import platforms
vendors = [platform.vendor for platform in platforms()]
maps = [line.split()[-1] for line in open("/proc/self/maps") if "libtbb.so" in line]
print(any("Intel" in v for v in vendors), len(set(maps)))
"""


@installed
def test_openvino_keeps_its_own_tbb_where_it_came_first() -> None:
    command = [sys.executable, "-W", "ignore", "-c", OWN_TBB]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "2"]


@installed
def test_the_private_folder_holds_the_systems_drivers_too(tmp_path: Path) -> None:
    (tmp_path / "vendor.icd").write_text("libvendor.so\n")
    environ: dict[str, str] = {}
    folder = tmp_path / "private"
    folder.mkdir()
    assert "shown to the loader" in show_intel_runtime(environ, folder, system=tmp_path)
    assert environ["OCL_ICD_VENDORS"] == str(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["ort_lite_intel.icd", "vendor.icd"]
    assert (folder / "ort_lite_intel.icd").read_text().strip() == str(PREFIX / "lib" / LIBRARY)


BEGIN = """
import sys, threading
from eps.opencl import FACTORY
FACTORY.begin({})
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join()
assert "pyopencl" not in sys.modules
print("libintelocl.so" in open("/proc/self/maps").read())
"""


@installed
@pytest.mark.parametrize("chosen", [False, True])
def test_the_runtime_is_loaded_while_python_goes_on(*, chosen: bool) -> None:
    """Unless the user has chosen the drivers."""
    environ = {key: text for key, text in os.environ.items() if key not in CHOSEN_BY_USER}
    if chosen:
        environ["OCL_ICD_VENDORS"] = "/somewhere"
    done = subprocess.run(
        [sys.executable, "-c", BEGIN],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(not chosen)


@pytest.mark.skipif(sys.platform != "linux", reason="no folder is made elsewhere")
def test_the_folder_is_private_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = dict(os.environ)
    with icd.drivers_shown("/pyopencl"):
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert os.environ["PYOPENCL_HOME"] == "/pyopencl"
    assert list(tmp_path.iterdir()) == []
    assert dict(os.environ) == before


def test_an_error_meanwhile_leaves_folder_and_environment_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(icd, "show_intel_runtime", full)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = dict(os.environ)
    with pytest.raises(OSError, match="No space left"), icd.drivers_shown("/pyopencl"):
        pass
    assert list(tmp_path.iterdir()) == []
    assert dict(os.environ) == before


def test_a_system_without_a_place_for_it_is_an_error_of_the_ep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(icd, "TEMPORARY", ())
    monkeypatch.setattr(sys, "platform", "linux")
    for key in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(key, str(tmp_path / "gone"))
    with pytest.raises(ort.EPFail, match="set TMPDIR"), icd.drivers_shown("/pyopencl"):
        pass


@pytest.mark.parametrize("key", ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES"])
def test_what_the_user_chose_is_left_alone(tmp_path: Path, key: str) -> None:
    environ = {key: "/somewhere"}
    assert f"{key}=/somewhere decides" in show_intel_runtime(environ, tmp_path)
    assert environ == {key: "/somewhere"}


def test_without_the_runtime_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    assert 'pip install "ort-lite[opencl-intel]"' in show_intel_runtime(
        environ, tmp_path, prefix=tmp_path
    )
    assert environ == {}
    assert not load_newest_tbb(tmp_path)


def test_a_runtime_that_does_not_load_is_said_and_left_out(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / LIBRARY).write_bytes(b"no library")
    environ: dict[str, str] = {}
    told = show_intel_runtime(environ, tmp_path, prefix=tmp_path)
    assert "does not load" in told
    assert "pip install intel-cmplr-lib-rt" in told
    assert environ == {}
    assert not load_newest_tbb(tmp_path)


@pytest.mark.parametrize("which", ["base", "user"])
def test_the_runtime_is_found_where_pip_put_it(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a virtual environment with the system's packages, or after `pip install --user`."""
    library = tmp_path / which / "lib" / LIBRARY
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "base"))
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(site, "USER_BASE", str(tmp_path / "user"))
    assert icd.intel_runtime({}) == str(library)
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    assert icd.intel_runtime({}) == (str(library) if which == "base" else None)


def test_a_runtime_that_does_not_load_for_want_of_memory_is_not_left_out_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader looks for drivers once in a process: it must not look without this one."""
    library = tmp_path / "lib" / LIBRARY
    library.parent.mkdir()
    library.touch()
    short = OSError(f"{library}: failed to map segment from shared object")

    def load(*_: object) -> None:
        raise short

    monkeypatch.setattr(icd, "_load", load)
    environ: dict[str, str] = {}
    with pytest.raises(EPFail, match=r"does not load now.*ulimit -v"):
        show_intel_runtime(environ, tmp_path, prefix=tmp_path)
    assert environ == {}
