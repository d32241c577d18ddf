"""A compile that takes long tells how far it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from opencl_devices import all_devices, device_names
from small_models import mlp, model

import ort_lite as ort
from eps.opencl.runtime import builder, program
from eps.opencl.runtime.executable import Executable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto

OPENCL = "OpenCLExecutionProvider"
DEVICES = device_names()
POCL = [found.name for found in all_devices() if "Portable" in found.platform.name]


def told(proto: ModelProto, device: str, **options: str) -> Sequence[tuple[str, int, int]]:
    """What a compile tells."""
    found: list[tuple[str, int, int]] = []
    config = ort.SessionOptions()
    config.set_progress_func(lambda *what: found.append(what))
    providers = [(OPENCL, {"device": device, **options})]
    ort.InferenceSession(proto.SerializeToString(), config, providers=providers).close()
    return found


def three_kernels() -> ModelProto:
    """Two softmaxes around a product."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"]),
    ]
    return model(nodes, [("x", [2, 4])], [("y", [2, 3])], {"w": np.ones((4, 3), np.float32)})


@pytest.mark.parametrize("device", POCL)
def test_a_driver_that_compiles_at_the_first_launch_tells_of_each_kernel(device: str) -> None:
    steps = [step for step in told(three_kernels(), device) if "kernels of " in step[0]]
    assert [step[1:] for step in steps] == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("device", DEVICES)
def test_each_set_of_shapes_is_told(device: str) -> None:
    steps = told(mlp("rows"), device, reshape_input="x[1,4];x[3,4]")
    steps = [step for step in steps if "sets of" in step[0]]
    assert [step[1:] for step in steps] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("device", POCL)
def test_progress_that_raises_gives_the_device_its_memory_back(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Executable] = []

    class Noted(Executable):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    def stopped(doing: str, *_: int) -> None:
        if doing.startswith("kernels of "):
            raise KeyboardInterrupt

    monkeypatch.setattr(builder, "Executable", Noted)
    config = ort.SessionOptions()
    config.set_progress_func(stopped)
    providers = [(OPENCL, {"device": device})]
    with pytest.raises(KeyboardInterrupt):
        ort.InferenceSession(mlp().SerializeToString(), config, providers=providers)
    assert [one.programs for one in made] == [()]


def test_a_build_waits_for_the_compiler_to_be_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the number of a build, which Intel's binaries hold, would depend on who is quicker."""
    order: list[str] = []

    class WarmUp:
        """The thread that wakes the compiler."""

        def join(self) -> None:
            order.append("awake")

    def start(*_: object) -> WarmUp:
        order.append("started")
        return WarmUp()

    monkeypatch.setattr(program, "_WARM_UPS", {})
    monkeypatch.setattr(program, "start_helper", start)
    monkeypatch.setattr(program, "_build_program", lambda *_: order.append("built"))
    context: Any = SimpleNamespace(device=SimpleNamespace(platform=SimpleNamespace(name="any")))
    for _ in range(2):  # a driver's compiler is woken once
        program.warm_up_compiler(context)
    program.build(context, "kernel", "")
    assert order == ["started", "awake", "built"]
