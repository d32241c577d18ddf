"""Models with free dimensions whose sizes are told ahead: nothing is built when they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from small_models import mlp

import ort_lite as ort
from eps.opencl.runtime import program
from ort_lite.cli.app import run_command
from ort_lite.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPENCL = "OpenCLExecutionProvider"
BOTH = {"reshape_input": "x[1,4];x[3,4]"}


def rows(n: int) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)}


def by_compiler(source: Path, target: Path, options: dict[str, str], rows: int | None) -> None:
    """As an application compiles."""
    session_options = ort.SessionOptions()
    session_options.add_provider(OPENCL, options)
    if rows is not None:
        session_options.add_free_dimension_override_by_name("rows", rows)
    ort.ModelCompiler(session_options, source).compile_to_file(target)


def by_command(source: Path, target: Path, options: dict[str, str], rows: int | None) -> None:
    """As a person compiles."""
    told = [f"-O{key}={value}" for key, value in options.items()]
    sizes = [] if rows is None else ["--dim", f"rows={rows}"]
    command = ["compile", str(source), "-o", str(target), "-e", "opencl", *told, *sizes]
    assert run_command(command) == ExitCode.OK


@pytest.mark.parametrize("compiled", [by_compiler, by_command])
@pytest.mark.parametrize(
    ("options", "fixed", "sizes"), [(BOTH, None, (1, 3)), ({}, 3, (3,))], ids=["sets", "override"]
)
def test_a_reload_builds_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    compiled: Callable[..., None],
    options: dict[str, str],
    fixed: int | None,
    sizes: tuple[int, ...],
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "c.onnx"
    source.write_bytes(mlp("rows").SerializeToString())
    compiled(source, target, options, fixed)

    def built(*arguments: Any) -> Any:
        raise AssertionError(f"built after all: {arguments}")

    with ort.InferenceSession(source, providers=["CPUExecutionProvider"]) as session:
        right = {n: session.run(None, rows(n))[0] for n in sizes}
    monkeypatch.setattr(program, "build", built)
    monkeypatch.setattr("eps.opencl.payload.import_payload.build", built)
    with ort.InferenceSession(target, providers=[OPENCL]) as session:
        for n in sizes:
            np.testing.assert_allclose(session.run(None, rows(n))[0], right[n], 1e-5, 1e-6)
