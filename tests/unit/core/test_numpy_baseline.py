"""A numpy that is older than ort_lite needs gets an answer that names both releases."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import ort_lite as ort
from ort_lite.cli.app import run_command
from ort_lite.numpy_baseline import LEAST_NUMPY, numpy_problem

ROOT = Path(__file__).parents[3]
RELU = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
).SerializeToString()
PROBLEM = r"numpy 1\.26\.4 is installed, and ort_lite needs 2\.1 or newer: pip install"


@pytest.fixture
def old_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    version_of = metadata.version
    monkeypatch.setattr(np, "__version__", "1.26.4")
    monkeypatch.setattr(
        metadata, "version", lambda name: "1.26.4" if name == "numpy" else version_of(name)
    )


def test_the_least_numpy_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"numpy>={LEAST_NUMPY}" in project["dependencies"]


@pytest.mark.parametrize("version", ["1.26.4", "2.0.0rc1", "2.0.2", "2"])
def test_older_releases_are_named(version: str) -> None:
    assert f"numpy {version} is installed" in numpy_problem(version)


@pytest.mark.parametrize("version", [LEAST_NUMPY, "2.1.0rc1", "2.10.0", "3.0.0.dev0+git", "10.0.1"])
def test_newer_releases_are_no_problem(version: str) -> None:
    assert numpy_problem(version) == ""


@pytest.mark.usefixtures("old_numpy")
@pytest.mark.parametrize(
    "providers", [None, ["CPUExecutionProvider"], ["OpenVINOExecutionProvider"]]
)
def test_a_session_is_refused(providers: list[str] | None) -> None:
    with pytest.raises(ort.Fail, match=PROBLEM):
        ort.InferenceSession(RELU, providers=providers)


def test_least_numpy_has_what_a_reload_looks_for() -> None:
    """numpy.unstack is of 2.1.0, and the numpy of these tests is not older."""
    assert numpy_problem(np.__version__) == ""
    assert hasattr(np, "unstack")


def test_a_reload_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options, path = ort.SessionOptions(), tmp_path / "context.onnx"
    options.add_provider("OpenVINOExecutionProvider", {})
    ort.ModelCompiler(options, RELU).compile_to_file(str(path))
    monkeypatch.setattr(np, "__version__", "1.26.4")
    monkeypatch.delattr(np, "unstack")
    with pytest.raises(ort.Fail, match=PROBLEM):
        ort.InferenceSession(path, providers=["OpenVINOExecutionProvider"])


@pytest.mark.usefixtures("old_numpy")
def test_a_compile_is_refused() -> None:
    with pytest.raises(ort.Fail, match=PROBLEM):
        ort.ModelCompiler(ort.SessionOptions(), RELU).compile_to_bytes()


@pytest.mark.usefixtures("old_numpy")
def test_doctor_names_the_release_and_the_fix(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["doctor"]) == 3
    shown = " ".join(capfd.readouterr().out.split())
    assert "broken numpy 1.26.4" in shown
    assert 'pip install "numpy>=2.1"' in shown
