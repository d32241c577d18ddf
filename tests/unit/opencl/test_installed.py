"""Whether OpenCL can be opened here, told from files alone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from eps.opencl.runtime.icd import CHOSEN_BY_USER, LIBRARY
from eps.opencl.runtime.installed import NO_DRIVER, missing_part

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drivers are files on Linux alone")


def missing(folder: Path, environ: dict[str, str] | None = None) -> str:
    places = [folder / name for name in ("package", "prefix", "vendors")]
    package, prefix, system = places
    return missing_part(environ or {}, package=package, prefix=prefix, system=system)


def test_without_pyopencl_the_package_is_named(tmp_path: Path) -> None:
    text = missing_part({}, package=None, prefix=tmp_path, system=tmp_path)
    assert 'pip install "ort-lite[opencl]"' in text


def test_without_any_driver_there_is_none(tmp_path: Path) -> None:
    assert missing(tmp_path) == NO_DRIVER


@pytest.mark.parametrize(
    "driver", ["package/.libs/pocl.icd", "vendors/some.icd", f"prefix/lib/{LIBRARY}"]
)
def test_one_driver_is_enough(tmp_path: Path, driver: str) -> None:
    path = tmp_path / driver
    path.parent.mkdir(parents=True)
    path.write_text("library.so")
    assert missing(tmp_path) == ""


@pytest.mark.parametrize("variable", CHOSEN_BY_USER)
def test_who_chooses_drivers_is_believed(tmp_path: Path, variable: str) -> None:
    assert missing(tmp_path, {variable: "/somewhere"}) == ""


def test_listing_what_is_available_loads_no_sdk() -> None:
    code = (
        "import sys\nimport ort_lite as ort\nprint(ort.get_available_providers())\n"
        "loaded = {'openvino', 'pyopencl', 'numpy', 'onnx'} & set(sys.modules)\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert not loaded and 'libOpenCL' not in maps and 'libopenvino' not in maps, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "CPUExecutionProvider" in done.stdout
