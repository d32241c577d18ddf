"""`ort-lite compile --shapes` compiles a model with free dimensions for listed shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np
import onnxruntime
import pytest

import ort_lite as ort
from eps.opencl import FACTORY
from eps.opencl.runtime import program
from ort_lite.cli.compile_shapes import parse_shape_sets, with_shapes
from ort_lite.cli.exit_codes import ExitCode
from ort_lite.cli.session_choice import SessionChoice

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Invoke

OPENCL, OPENVINO, CPU = (
    "OpenCLExecutionProvider",
    "OpenVINOExecutionProvider",
    "CPUExecutionProvider",
)
needs_opencl = pytest.mark.skipif(
    bool(FACTORY.probe().reason), reason=f"no OpenCL device: {FACTORY.probe().reason}"
)


@needs_opencl
def test_a_context_model_has_a_program_for_each_shape(
    invoke: Invoke, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = onnxruntime.InferenceSession(str(model), providers=[CPU])
    target = model.with_name("c.onnx")
    config = ("-c", "session.placement=all")
    result = invoke("compile", model, "-o", target, "--shapes", "x=2x3,5x3", *config)
    assert result.code == ExitCode.OK, result.err

    def build(*_: Any) -> Any:
        raise AssertionError("built after all")

    monkeypatch.setattr(program, "build", build)
    with ort.InferenceSession(target, providers=[OPENCL]) as session:
        for rows in (2, 5):
            x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
            mine, theirs = (one.run(None, {"x": x})[0] for one in (session, right))
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
        (part,) = session.explain().partitions
    assert part.notes[0].count("(reloaded)") == 2
    assert part.notes[1] == "2 of 2 runs found their program"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--shapes", "y=2x3"], "--shapes y: the model has x"),
        (["--shapes", "x=2x3x4"], "--shapes x: 3 dimensions, the model has 2"),
        (["--shapes", "x=2xn"], "expected images=1x3x320x320,1x3x640x640"),
        (["--shapes", "x=0x3"], "expected images="),
        (["--shapes", "x"], "expected images=1x3x320x320,1x3x640x640"),
        (["--shapes", "x=1x3,2x4"], "--shapes x: the model declares ?x3"),
        (["--shapes", "x=1x3", "--shapes", "x=2x3"], "--shapes lists x twice"),
        (["--shapes", "x=1x3", "-e", "cpu"], "--shapes needs -e opencl"),
        (["--shapes", "x=1x3", "-e", "opencl", "-O", "reshape_input=x[1,3]"], "cannot be combined"),
    ],
)
def test_wrong_shapes_are_refused_with_what_is_right(
    invoke: Invoke, model: Path, arguments: list[str], said: str
) -> None:
    result = invoke("compile", model, *arguments)
    assert (result.code, said in result.err) == (ExitCode.USAGE, True), result.err
    assert not model.with_name("dense_ctx.onnx").exists()


def test_sets_take_the_shapes_of_all_inputs_in_order() -> None:
    assert parse_shape_sets(["a=1x2,3x4", "b=5"]) == [
        {"a": (1, 2), "b": (5,)},
        {"a": (3, 4), "b": (5,)},
    ]
    with pytest.raises(click.UsageError, match="2 shapes for b and 3 for another input"):
        parse_shape_sets(["a=1,2,3", "b=1,2"])


def test_opencl_alone_gets_the_shapes(model: Path) -> None:
    choice = SessionChoice(providers=((OPENVINO, {}), (OPENCL, {"device": "cpu"})))
    found = with_shapes(choice, model, ["x=1x3,2x3"])
    assert found.providers == (
        (OPENVINO, {}),
        (OPENCL, {"device": "cpu", "reshape_input": "x[1,3];x[2,3]"}),
    )
    assert with_shapes(choice, model, ()) is choice
