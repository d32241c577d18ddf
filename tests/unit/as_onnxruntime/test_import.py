"""`import onnxruntime` gives ort_lite, by the command and by the call."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import onnx
import onnxruntime
import pytest
from small_models import model
from stand_in_programs import environment, python, stand_in

import ort_lite
from ort_lite.as_onnxruntime.installation import FOLDER
from ort_lite.version import ONNXRUNTIME_VERSION

if TYPE_CHECKING:
    from pathlib import Path

CALL = "import ort_lite; ort_lite.as_onnxruntime()\n"


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "add.onnx"
    node = onnx.helper.make_node("Add", ["x", "x"], ["y"])
    onnx.save(model([node], [("x", [2])], [("y", [2])]), path)
    return path


def test_the_stand_in_has_the_version_of_the_installed_onnxruntime() -> None:
    assert onnxruntime.__version__ == ONNXRUNTIME_VERSION


def test_ort_lite_keeps_its_own_version() -> None:
    assert ort_lite.__version__ != ONNXRUNTIME_VERSION
    assert ort_lite.get_version_string() == ort_lite.__version__


def test_a_session_of_the_program_is_ort_lite_s(model_file: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys, numpy, onnxruntime as ort, ort_lite\n"
        "session = ort.InferenceSession(sys.argv[1])\n"
        "assert isinstance(session, ort_lite.InferenceSession)\n"
        "print(session.run(None, {'x': numpy.float32([1, 2])})[0].tolist())\n"
        "print(session.get_providers(), ort.__version__, ort.get_version_string())\n"
        "print(ort.get_build_info())\n"
    )
    values, names, build = stand_in(tmp_path / "program.py", model_file).stdout.splitlines()
    assert values == "[2.0, 4.0]"
    assert names == f"['CPUExecutionProvider'] {ONNXRUNTIME_VERSION} {ONNXRUNTIME_VERSION}"
    assert build.startswith("ORT Build Info: ")


def test_after_the_call_the_module_is_the_stand_in() -> None:
    done = python("-c", f"{CALL}import onnxruntime; print(onnxruntime.__file__)")
    assert done.stdout.startswith(FOLDER)


def test_nothing_is_imported_before_the_program_asks_for_it() -> None:
    """Neither onnxruntime nor what sessions need, by the call and by the import."""
    code = (
        f"{CALL}import sys; assert 'onnxruntime' not in sys.modules\n"
        "import onnxruntime; print({'numpy', 'onnx', 'ort_lite.session'} & {*sys.modules})"
    )
    assert python("-c", code).stdout == "set()\n"


@pytest.mark.parametrize(
    "name",
    [
        "capi",
        "capi._ld_preload",
        "capi._pybind_state",
        "capi.build_and_package_info",
        "capi.onnxruntime_inference_collection",
        "capi.onnxruntime_pybind11_state",
        "capi.onnxruntime_validation",
        "backend",
        "backend.backend",
        "backend.backend_rep",
    ],
)
def test_a_module_of_onnxruntime_can_be_imported(name: str) -> None:
    code = f"{CALL}import onnxruntime.{name} as found\nprint(found.__name__, found.__file__)"
    module, file = python("-c", code).stdout.split()
    assert module == f"onnxruntime.{name}"
    assert "site-packages/onnxruntime" not in file


def test_modules_of_the_binding_are_there_without_an_import_of_their_own() -> None:
    code = "import onnxruntime as o\nprint(o.capi.onnxruntime_pybind11_state.InvalidArgument)"
    assert "InvalidArgument" in stand_in("-c", code).stdout
    assert ort_lite.capi.onnxruntime_pybind11_state.InvalidArgument is ort_lite.InvalidArgument  # type: ignore[attr-defined] # imported by name


def test_a_module_that_calls_us_while_it_is_imported_is_replaced(tmp_path: Path) -> None:
    """A folder of one's own on PYTHONPATH, whose onnxruntime/__init__.py has the call."""
    folder = tmp_path / "onnxruntime"
    folder.mkdir()
    (folder / "__init__.py").write_text(CALL)
    code = "import onnxruntime.quantization, onnxruntime; print(onnxruntime.__file__)"
    path = os.pathsep.join((str(tmp_path), environment()["PYTHONPATH"]))
    assert python("-c", code, variables={"PYTHONPATH": path}).stdout.startswith(FOLDER)


def test_a_call_after_the_real_onnxruntime_says_so() -> None:
    done = python("-c", f"import onnxruntime\n{CALL}", check=False)
    assert done.returncode == 1
    assert "ImportError: onnxruntime 1." in done.stderr
    assert "before anything imports onnxruntime" in done.stderr


def test_the_distribution_onnxruntime_is_there_for_who_asks() -> None:
    code = "import importlib.metadata as m, importlib.util as u\nprint(m.version('onnxruntime'))"
    assert stand_in("-c", code).stdout.strip() == ONNXRUNTIME_VERSION
    assert python("-c", f"{CALL}{code}").stdout.strip() == ONNXRUNTIME_VERSION


def test_the_call_is_a_module_and_a_function() -> None:
    import ort_lite.as_onnxruntime as module  # noqa: PLC0415 - what is tested

    assert ort_lite.as_onnxruntime is module
    assert sys.modules["ort_lite.as_onnxruntime"] is module
    assert callable(module)
