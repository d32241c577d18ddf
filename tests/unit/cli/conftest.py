"""A command run in this process, a small model, and its context model."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ort_lite.cli.app import run_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Invoke = Callable[..., "Result"]


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """All of stdout as one JSON object."""
        parsed = json.loads(self.out)
        assert parsed["schema_version"] == 1
        return parsed


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """`invoke("check", path)` runs `ort-lite check PATH`."""

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


def write_dense(path: Path) -> Path:
    """y = relu(x @ w + b) with seeded weights; x is [batch, 3]."""
    random = np.random.default_rng(7)
    weights = {
        "w": random.standard_normal((3, 2)).astype(np.float32),
        "b": random.standard_normal(2).astype(np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"], name="product"),
            helper.make_node("Add", ["xw", "b"], ["sum"], name="sum"),
            helper.make_node("Relu", ["sum"], ["y"], name="relu"),
        ],
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of three nodes: input x [batch, 3], output y [batch, 2]."""
    return write_dense(tmp_path / "dense.onnx")


@pytest.fixture(scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    write_dense(folder / "dense.onnx")
    assert run_command(["compile", str(folder / "dense.onnx"), "-e", "openvino"]) == 0
    return folder


@pytest.fixture
def context(compiled_once: Path, tmp_path: Path) -> Path:
    """The model's context, compiled for OpenVINO's CPU, its payload beside it."""
    for path in compiled_once.glob("dense_ctx*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "dense_ctx.onnx"


@pytest.fixture
def payload(context: Path) -> Path:
    """The payload file of `context`."""
    return context.with_name("dense_ctx_OpenVINOExecutionProvider.bin")
