"""Intel's OpenCL runtime is found beside other drivers, and beside OpenVINO in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ort_lite as ort
from eps.opencl import icd
from eps.opencl.icd import CHOSEN_BY_USER, LIBRARY, show_intel_runtime
from eps.openvino.shared_tbb import load_newest_tbb

ROOT = Path(__file__).parents[3]
PREFIX = Path(sys.prefix)
installed = pytest.mark.skipif(
    not (PREFIX / "lib" / LIBRARY).is_file(), reason=f"{LIBRARY} is not installed"
)

BOTH = """
import numpy as np
import onnx.parser
import ort_lite as ort

text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
model = onnx.parser.parse_model(text).SerializeToString()
for ep in %s:
    with ort.InferenceSession(model, providers=[ep]) as session:
        (y,) = session.run(None, {"x": np.array([-1, 0, 1, 2], np.float32)})
        assert y.tolist() == [0, 0, 1, 2]
        identity = session.explain().partitions[0].identity
print(sorted(p.name for p in __import__("pyopencl").get_platforms()))
"""


@installed
@pytest.mark.parametrize("first", ["OpenVINO", "OpenCL"])
def test_openvino_and_intels_opencl_share_a_process_in_any_order(first: str) -> None:
    eps = ["OpenVINOExecutionProvider", "OpenCLExecutionProvider"]
    order = eps if first == "OpenVINO" else eps[::-1]
    command = [sys.executable, "-c", BOTH % order]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Intel(R) OpenCL" in done.stdout
    assert "Intel's OpenCL runtime is not used" not in done.stderr


@installed
def test_an_openvino_that_was_loaded_by_hand_before_is_named() -> None:
    code = (
        "import openvino, os\n"
        "from eps.opencl.icd import show_intel_runtime\n"
        "import pathlib, tempfile\n"
        "print(show_intel_runtime(os.environ, pathlib.Path(tempfile.mkdtemp())))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    if "shown to the loader" not in done.stdout:  # an OpenVINO whose oneTBB is new enough
        assert "open an ort_lite session first" in done.stdout
        assert "is not used" in done.stderr


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
    assert "pip install 'ort-lite[opencl-intel]'" in show_intel_runtime(
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
