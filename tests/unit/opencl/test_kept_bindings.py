"""What a binding remembers of the run before, and what every run checks again."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import ort_lite as ort
from eps.opencl import FACTORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

pytestmark = pytest.mark.skipif(bool(FACTORY.missing()), reason="no OpenCL here")
OPENCL = ["OpenCLExecutionProvider"]
SHAPE = [3, 8]
X = np.random.default_rng(11).standard_normal(SHAPE).astype(np.float32)


def pairs(count: int) -> ort.InferenceSession:
    """A session with `count` outputs y0, y1..., which are `shared` minus x0, x1..."""

    def info(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE)

    nodes = [helper.make_node("Sub", ["shared", f"x{n}"], [f"y{n}"]) for n in range(count)]
    inputs = [info("shared"), *(info(f"x{n}") for n in range(count))]
    graph = helper.make_graph(nodes, "pairs", inputs, [info(f"y{n}") for n in range(count)])
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return ort.InferenceSession(model, providers=OPENCL)


def on_device(array: np.ndarray[Any, Any]) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array, "opencl", 0)


def bind_all(session: ort.InferenceSession, *, in_place: bool = False) -> ort.IOBinding:
    """Every x and y bound to tensors on the device, `shared` to an array."""
    binding = session.io_binding()
    binding.bind_cpu_input("shared", X)
    for n in range(len(session.get_outputs())):
        value = on_device(X * n)
        binding.bind_ortvalue_input(f"x{n}", value)
        binding.bind_ortvalue_output(f"y{n}", value if in_place else on_device(X))
    return binding


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    """The frame, the one that called it, and so on."""
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextmanager
def counted_calls() -> Iterator[list[str]]:
    """Names of the Python functions that this thread calls meanwhile, except to launch kernels."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not any(f.f_code.co_name == "_launch" for f in callers(frame)):
            calls.append(frame.f_code.co_name)

    gc.collect()
    gc.disable()  # other sessions' objects have finalizers
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        gc.enable()


@pytest.mark.parametrize("in_place", [False, True])
def test_a_run_calls_as_many_functions_however_many_tensors_stay_bound(in_place: bool) -> None:  # noqa: FBT001 - a case
    counts = {}
    for count in (4, 24):
        with pairs(count) as session:
            binding = bind_all(session, in_place=in_place)
            for _ in range(2):
                session.run_with_iobinding(binding)
            binding.bind_cpu_input("shared", X * 2)
            with counted_calls() as calls:
                session.run_with_iobinding(binding)
            counts[count] = len(calls)
            last = binding.get_outputs()[-1].numpy()
            if not in_place:
                np.testing.assert_array_equal(last, X * 2 - X * (count - 1))
    assert counts[4] > 10
    assert counts[24] == counts[4]


def test_runs_in_place_go_on_from_what_the_run_before_left() -> None:
    with pairs(2) as session:
        binding = bind_all(session, in_place=True)
        for _ in range(3):
            session.run_with_iobinding(binding)
        for n, value in enumerate(binding.get_outputs()):
            np.testing.assert_array_equal(value.numpy(), X - (X - (X - X * n)))


def test_a_tensor_bound_anew_is_checked_again() -> None:
    with pairs(2) as session:
        binding = bind_all(session)
        session.run_with_iobinding(binding)
        for wrong in (X[:2].copy(), X.astype(np.float16), X[0].copy()):
            with pytest.raises(ort.InvalidArgument) as plain:
                session.run(None, {"shared": X, "x0": X, "x1": wrong})
            binding.bind_ortvalue_input("x1", on_device(wrong))
            for _ in range(2):
                with pytest.raises(ort.InvalidArgument) as caught:
                    session.run_with_iobinding(binding)
                assert str(caught.value) == str(plain.value)
        binding.bind_ortvalue_input("x1", on_device(X * 5))
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[1].numpy(), X - X * 5)


def test_an_array_that_gets_another_shape_between_runs_is_refused() -> None:
    with pairs(1) as session:
        binding, array = bind_all(session), X.copy()
        binding.bind_cpu_input("shared", array)
        session.run_with_iobinding(binding)
        array.resize((8, 3), refcheck=False)  # in place
        with pytest.raises(ort.InvalidArgument, match="Got invalid dimensions for input: shared"):
            session.run_with_iobinding(binding)
        array.resize((24,), refcheck=False)
        with pytest.raises(ort.InvalidArgument, match="Invalid rank for input: shared"):
            session.run_with_iobinding(binding)


def test_inputs_that_are_unbound_are_missed() -> None:
    with pairs(1) as session:
        binding = bind_all(session)
        session.run_with_iobinding(binding)
        binding.clear_binding_inputs()
        binding.bind_cpu_input("shared", X)
        with pytest.raises(ValueError, match=r"Required inputs \(\['x0'\]\) are missing"):
            session.run_with_iobinding(binding)


@pytest.mark.parametrize("name", ["x1", "y1"])
def test_a_tensor_that_was_released_between_runs_is_refused(name: str) -> None:
    with pairs(2) as session:
        binding, value = bind_all(session), on_device(X)
        bind = binding.bind_ortvalue_input if name == "x1" else binding.bind_ortvalue_output
        bind(name, value)
        session.run_with_iobinding(binding)
        value.held_value().release()
        for _ in range(2):
            with pytest.raises(ort.InvalidArgument, match="is used after its release"):
                session.run_with_iobinding(binding)
        assert session.get_providers()[0] == "OpenCLExecutionProvider"
        bind(name, on_device(X))
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), X)


def test_outputs_change_places_from_run_to_run() -> None:
    """A tensor, memory of the device, an array, new host memory and the input's own memory."""
    with pairs(2) as session:
        binding, place, shared = bind_all(session), np.zeros_like(X), on_device(X * 3)
        address = place.ctypes.data
        binding.bind_ortvalue_input("x1", shared)
        binds: list[tuple[int, Callable[[], None]]] = [
            (2, lambda: binding.bind_ortvalue_output("y1", on_device(X))),
            (2, lambda: binding.bind_output("y1", "opencl")),
            (2, lambda: binding.bind_output("y1", "cpu", 0, np.float32, SHAPE, address)),
            (2, lambda: binding.bind_output("y1")),
            (1, lambda: binding.bind_ortvalue_output("y1", shared)),
        ]
        for runs, bind in binds:
            bind()
            for _ in range(runs):
                session.run_with_iobinding(binding)
                first, second = (value.numpy() for value in binding.get_outputs())
                np.testing.assert_array_equal(first, X)
                np.testing.assert_array_equal(second, X - X * 3)
        np.testing.assert_array_equal(place, X - X * 3)
        np.testing.assert_array_equal(shared.numpy(), X - X * 3)


def test_results_of_an_earlier_run_keep_memory_of_their_own() -> None:
    with pairs(1) as session:
        binding = bind_all(session)
        binding.bind_output("y0", "opencl")
        session.run_with_iobinding(binding)
        (before,) = binding.get_outputs()
        binding.bind_cpu_input("shared", X * 7)
        session.run_with_iobinding(binding)
        (after,) = binding.get_outputs()
        np.testing.assert_array_equal(before.numpy(), X)
        np.testing.assert_array_equal(after.numpy(), X * 7)


def test_a_plain_run_between_two_bound_ones_changes_neither() -> None:
    with pairs(2) as session:
        binding = bind_all(session)
        for _ in range(2):
            session.run_with_iobinding(binding)
            found = session.run(None, {"shared": X, "x0": X * 2, "x1": X * 4})
            np.testing.assert_array_equal(found, [X - X * 2, X - X * 4])
            for n, value in enumerate(binding.get_outputs()):
                np.testing.assert_array_equal(value.numpy(), X - X * n)
