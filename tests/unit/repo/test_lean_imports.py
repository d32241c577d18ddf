"""What an import must not bring along, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEAVY = {"numpy", "onnx", "ml_dtypes", "openvino", "pyopencl", "onnxruntime"}
EPS = sorted(path.parent.name for path in ROOT.glob("eps/*/__init__.py"))


def loaded_after(code: str) -> set[str]:
    """Top-level modules in sys.modules after `code`."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_the_probe_of_this_file_sees_what_is_loaded() -> None:
    assert "numpy" in loaded_after("import numpy")


def test_importing_ort_lite_imports_nothing_heavy() -> None:
    assert loaded_after("import ort_lite") & HEAVY == set()


def test_importing_the_session_needs_no_onnx_and_no_sdk() -> None:
    loaded = loaded_after("from ort_lite import InferenceSession")
    assert loaded & (HEAVY - {"numpy", "ml_dtypes"}) == set()


def test_importing_ctx_formats_imports_nothing_heavy() -> None:
    code = "import ctx_formats.model_reader, ctx_formats.ep_context, ctx_formats.container"
    assert loaded_after(code) & HEAVY == set()


@pytest.mark.parametrize("ep", EPS)
def test_importing_an_ep_imports_no_sdk(ep: str) -> None:
    assert loaded_after(f"import eps.{ep}") & HEAVY == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["compile", "--help"]])
def test_asking_the_command_line_for_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = f"from ort_lite.cli import main\ntry:\n main({arguments})\nexcept SystemExit:\n pass"
    assert loaded_after(code) & HEAVY == set()
