"""Real models through OpenCL, plain and reloaded, against onnxruntime's CPU EP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest

import ort_lite as ort

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPENCL = "OpenCLExecutionProvider"
POCL = "portable"
WHOLE = (
    "squeezenet_rw",
    "resnet50_rw",
    "nudenet_yolov8n",
    "ppocrv4_det",
    "ppocrv4_rec",
    "minilm_l6_w8",
    "magika",
)
"""Models that stay on the device from input to output, four of them with free dimensions."""

Values = dict[str, np.ndarray[Any, Any]]


def options_for(path: Path, values: Values, context: Path) -> ort.SessionOptions:
    """Every free dimension fixed by its name, and a context model written."""
    options = ort.SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(context))
    with ort.InferenceSession(path, providers=["CPUExecutionProvider"]) as session:
        for info in session.get_inputs():
            for dim, size in zip(info.shape, values[info.name].shape, strict=True):
                if isinstance(dim, str):
                    options.add_free_dimension_override_by_name(dim, size)
    return options


def assert_near(found: list[Any], right: list[Any]) -> None:
    """Within 1e-4 of the largest value."""
    for mine, theirs in zip(found, right, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        bound = 1e-4 * float(np.abs(theirs).max(initial=0)) + 2e-6
        assert float(np.abs(mine.astype(np.float64) - theirs).max(initial=0)) <= bound


def run_plain_and_reloaded(
    path: Path, values: Values, tmp_path: Path, platform: str = ""
) -> tuple[list[Any], list[Any], ort.InferenceSession]:
    context = tmp_path / "c.onnx"
    provider = (OPENCL, {"platform": platform} if platform else {})
    options = options_for(path, values, context)
    session = ort.InferenceSession(path, options, providers=[provider])
    plain = session.run(None, values)
    for mine, again in zip(session.run(None, values), plain, strict=True):
        np.testing.assert_array_equal(mine, again)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_model_compile", "1")
    with ort.InferenceSession(context, options, providers=[provider]) as reloaded:
        return plain, reloaded.run(None, values), session


@pytest.mark.parametrize("name", WHOLE)
def test_a_model_runs_whole_on_the_device_and_the_same_when_reloaded(
    name: str,
    tmp_path: Path,
    model_path: Callable[[str], Path],
    example_inputs: Callable[[str], Values],
) -> None:
    path, values = model_path(name), example_inputs(name)
    plain, reloaded, session = run_plain_and_reloaded(path, values, tmp_path)
    right = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_near(plain, right.run(None, values))
    for mine, compiled in zip(reloaded, plain, strict=True):
        np.testing.assert_array_equal(mine, compiled)
    assert list(session.explain().node_counts()) == [OPENCL]
    assert len(session.explain().partitions) == 1


@pytest.mark.usefixtures("working_pocl")
def test_another_platform_gives_the_same_model(
    tmp_path: Path,
    model_path: Callable[[str], Path],
    example_inputs: Callable[[str], Values],
) -> None:
    """PoCL, whose binaries are whole only after every kernel has run."""
    path, values = model_path("magika"), example_inputs("magika")
    plain, reloaded, _ = run_plain_and_reloaded(path, values, tmp_path, POCL)
    right = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_near(plain, right.run(None, values))
    for mine, compiled in zip(reloaded, plain, strict=True):
        np.testing.assert_array_equal(mine, compiled)


def test_free_dimensions_take_any_size(
    model_path: Callable[[str], Path], example_inputs: Callable[[str], Values]
) -> None:
    """One program for each length; the least recently used is given up."""
    path, values = model_path("magika"), example_inputs("magika")
    right = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    provider = (OPENCL, {"max_variants": "1"})
    with ort.InferenceSession(path, providers=[provider]) as session:
        for batch in (1, 2, 1):
            fed = {k: np.repeat(v, batch, axis=0) for k, v in values.items()}
            assert_near(session.run(None, fed), right.run(None, fed))
