"""What a program may hand to `run`, `run_with_iobinding` and `OrtValue`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from attacks.attack import Engine, WrongAnswerError, add, attack, must_fail
from attacks.on_models import B, X, Y, info, model

if TYPE_CHECKING:
    from collections.abc import Callable


KEPT = X.copy()
"""Memory whose address is bound."""


def feed(name: str, value: Callable[[], Any], expected: object = Y) -> None:
    """Run Relu(x + b) with `value()` as x; None as what is expected means that it must fail."""

    def run(engine: Engine) -> None:
        engine.check(model(), {"x": value()}, expected)

    add(f"feeds: {name}", run)


class Sub(np.ndarray):  # type: ignore[type-arg]  # any element type
    """An array of another class, whose arithmetic is wrong."""

    def __add__(self, other: Any) -> Any:
        return self

    def __array_function__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("called back")

    def __array_finalize__(self, _: Any) -> None:
        return None


class Pretends:
    """Says that it is an array."""

    shape, dtype, ndim = (2, 3), np.dtype(np.float32), 2

    def __array__(self, *_: Any, **__: Any) -> Any:
        return X


class Raises:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise KeyError("mine")


def read_only() -> Any:
    found = X.copy()
    found.flags.writeable = False
    return found


def unaligned() -> Any:
    raw = bytearray(1 + X.nbytes)
    raw[1:] = X.tobytes()
    return np.frombuffer(raw, np.float32, 6, 1).reshape(2, 3)


feed("an array", X.copy)
feed("Fortran order", lambda: np.asfortranarray(X))
feed("negative strides", lambda: X[::-1, ::-1].copy()[::-1, ::-1])
feed("every second column", lambda: np.repeat(X, 2, 1)[:, ::2])
feed("read-only", read_only)
feed("unaligned", unaligned)
feed("broadcast", lambda: np.broadcast_to(X[:1], (2, 3)), np.maximum(X[:1] + B, 0).repeat(2, 0))
feed("big-endian", lambda: X.astype(">f4"))
feed("float64", lambda: X.astype(np.float64), None)
feed("int32", lambda: X.astype(np.int32), None)
feed("complex", lambda: X.astype(np.complex64), None)
feed("bool", lambda: X > 0, None)
feed("datetime", lambda: X.astype("datetime64[s]"), None)
feed("structured", lambda: np.zeros((2, 3), [("a", "f4")]), None)
feed("void", lambda: np.zeros((2, 3), "V4"), None)
feed("object array of floats", lambda: X.astype(object), None)
feed("object array of objects", lambda: np.full((2, 3), object()), None)
feed("text", lambda: X.astype(str), None)
feed("0-d", lambda: np.array(1, np.float32), None)
feed("1-d", lambda: X.reshape(-1), None)
feed("3-d", lambda: X[None], None)
feed("no elements", lambda: np.zeros((0, 3), np.float32), None)
feed("too few columns", lambda: X[:, :2], None)
feed("huge by broadcasting", lambda: np.broadcast_to(np.float32(1), (2**40, 3)), None)
feed("a list", X.tolist)
feed("a ragged list", lambda: [[1.0, 2.0], [3.0]], None)
feed("a list of itself", lambda: (lambda x: x.append(x) or x)([]), None)
feed("a tuple of arrays", lambda: tuple(X), Y)
feed("None", lambda: None, None)
feed("a string", lambda: "abc", None)
feed("bytes", lambda: X.tobytes(), None)
feed("a dict", lambda: {"a": 1}, None)
feed("a generator", lambda: (row for row in X), None)
feed("an object that has __array__", Pretends)
feed("an object whose __array__ raises", Raises, None)
feed("a subclass", lambda: X.copy().view(Sub))
feed("a matrix", lambda: np.asmatrix(X))
feed("a masked array", lambda: np.ma.masked_array(X, X > 100))
feed("a memoryview", lambda: memoryview(X.copy()), None)
feed("a float", lambda: 1.5, None)
feed("a huge int", lambda: 10**400, None)
feed(
    "NaN and infinity",
    lambda: np.array([[np.nan, np.inf, -np.inf], [1, 2, 3]], np.float32),
    np.array([[np.nan, np.inf, 0], [2, 4, 0]], np.float32),
)


def names(name: str, wrong: Any) -> None:
    """A feed dictionary that must be refused."""
    add(
        f"feeds: {name}", lambda engine: must_fail(lambda: engine.session(model()).run(None, wrong))
    )


names("no inputs", {})
names("unknown input", {"x": X, "z": X})
names("only an unknown input", {"z": X})
names("a name that is not a string", {0: X})
names("no dictionary", [("x", X)])
names("None for the feed", None)
names("an initializer of IR 8 that is no input", {"x": X, "b": B})


def outputs(name: str, wanted: Any) -> None:
    add(
        f"feeds: outputs {name}",
        lambda engine: must_fail(lambda: engine.session(model()).run(wanted, {"x": X})),
    )


outputs("that are unknown", ["nosuch"])
outputs("named inside", ["s"])
outputs("that are numbers", [0])
outputs("that are one text", "y")
outputs("that are None", [None])


@attack("feeds: outputs twice")
def _outputs_twice(engine: Engine) -> None:
    for found in engine.session(model()).run(["y", "y"], {"x": X}):
        engine.compare(found, Y)


@attack("feeds: outputs are the caller's own")
def _own_outputs(engine: Engine) -> None:
    session = engine.session(model())
    first = session.run(None, {"x": X})[0]
    kept = first.copy()
    session.run(None, {"x": X * 7})
    engine.compare(first, kept)


@attack("feeds: an output written into changes no later run")
def _written_outputs(engine: Engine) -> None:
    constant = model([helper.make_node("Relu", ["x"], ["y"])], outputs=[info("b", (3,)), info("y")])
    session = engine.session(constant)
    first = session.run(None, {"x": X})[0]
    if first.flags.writeable:
        first[:] = 99
    engine.compare(session.run(None, {"x": X})[0], B)


@attack("feeds: an output that is an input does not share its memory")
def _passed_through(engine: Engine) -> None:
    through = model(
        [helper.make_node("Relu", ["x"], ["y"])], outputs=[info("y"), info("x")], weights=[]
    )
    fed = X.copy()
    found = engine.session(through).run(None, {"x": fed})[1]
    fed[:] = 99
    engine.compare(found, X)


@attack("feeds: an Identity does not share its input's memory")
def _identity(engine: Engine) -> None:
    fed = X.copy()
    proto = model([helper.make_node("Identity", ["x"], ["y"])], weights=[])
    found = engine.session(proto).run(None, {"x": fed})[0]
    fed[:] = 99
    engine.compare(found, X)


@attack("feeds: a Reshape does not share its input's memory")
def _reshape(engine: Engine) -> None:
    fed = X.copy()
    proto = model(
        [helper.make_node("Reshape", ["x", "s"], ["y"])],
        outputs=[info("y", (3, 2))],
        weights=[numpy_helper.from_array(np.array([3, 2]), "s")],
    )
    found = engine.session(proto).run(None, {"x": fed})[0]
    fed[:] = 99
    engine.compare(found, X.reshape(3, 2))


@attack("feeds: memory that another thread writes during the run")
def _changing(engine: Engine) -> None:
    session, fed, stop = engine.session(model()), X.copy(), threading.Event()

    def write() -> None:
        while not stop.is_set():
            fed[:] = 5
            fed[:] = X

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(50):
            found = session.run(None, {"x": fed})[0]
            # Each element is of the old or of the new content, never something else.
            ok = np.isclose(found, Y) | np.isclose(found, np.maximum(5 + B, 0))
            if not ok.all():
                raise WrongAnswerError(str(found))
    finally:
        stop.set()
        thread.join()


# --- bindings
def bound(engine: Engine) -> tuple[Any, Any]:
    session = engine.session(model())
    return session, session.io_binding()


@attack("bindings: input and output")
def _bound(engine: Engine) -> None:
    session, binding = bound(engine)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    engine.compare(binding.copy_outputs_to_cpu()[0], Y)


@attack("bindings: nothing bound")
def _unbound(engine: Engine) -> None:
    session, binding = bound(engine)
    must_fail(lambda: session.run_with_iobinding(binding))


@attack("bindings: no output bound")
def _no_output(engine: Engine) -> None:
    session, binding = bound(engine)
    binding.bind_cpu_input("x", X)
    must_fail(lambda: session.run_with_iobinding(binding))


def wrong_binding(name: str, bind: Callable[[Engine, Any], object]) -> None:
    """A binding, or its run, that must be refused."""

    def run(engine: Engine) -> None:
        session, binding = bound(engine)
        binding.bind_cpu_input("x", X)
        binding.bind_output("y")
        bind(engine, binding)
        must_fail(lambda: session.run_with_iobinding(binding))

    add(f"bindings: {name}", run)


wrong_binding("unknown input", lambda _, b: b.bind_cpu_input("z", X))
wrong_binding("unknown output", lambda _, b: b.bind_output("z"))
wrong_binding("input of another type", lambda _, b: b.bind_cpu_input("x", X.astype(np.float64)))
wrong_binding("input of another shape", lambda _, b: b.bind_cpu_input("x", X[:, :2]))
wrong_binding("unknown device", lambda _, b: b.bind_output("y", "gpu9000"))
wrong_binding("device id 7", lambda _, b: b.bind_output("y", "cuda", 7))
wrong_binding("output pointer 0", lambda _, b: b.bind_output("y", "cpu", 0, np.float32, [2, 3], 0))
wrong_binding("input pointer 0", lambda _, b: b.bind_input("x", "cpu", 0, np.float32, [2, 3], 0))
wrong_binding(
    "input of negative shape",
    lambda _, b: b.bind_input("x", "cpu", 0, np.float32, [-2, 3], KEPT.ctypes.data),
)
wrong_binding(
    "input of overflowing shape",
    lambda _, b: b.bind_input("x", "cpu", 0, np.float32, [2**40, 2**40], KEPT.ctypes.data),
)
wrong_binding(
    "input of no dtype",
    lambda _, b: b.bind_input("x", "cpu", 0, "nosuch", [2, 3], KEPT.ctypes.data),
)
wrong_binding(
    "OrtValue of another type",
    lambda e, b: b.bind_ortvalue_input("x", e.ort.OrtValue.ortvalue_from_numpy(X.astype(np.int64))),
)
wrong_binding(
    "output OrtValue of another shape",
    lambda e, b: b.bind_ortvalue_output(
        "y", e.ort.OrtValue.ortvalue_from_numpy(np.zeros((3, 3), np.float32))
    ),
)
wrong_binding(
    "output OrtValue of another type",
    lambda e, b: b.bind_ortvalue_output(
        "y", e.ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.int64))
    ),
)
wrong_binding("None as an OrtValue", lambda _, b: b.bind_ortvalue_input("x", None))


@attack("bindings: output into the input's memory")
def _aliased(engine: Engine) -> None:
    session, binding = bound(engine)
    memory = X.copy()
    for bind in (binding.bind_input, binding.bind_output):
        name = "x" if bind == binding.bind_input else "y"
        bind(name, "cpu", 0, np.float32, [2, 3], memory.ctypes.data)
    session.run_with_iobinding(binding)
    engine.compare(memory, Y)


@attack("bindings: two outputs into one memory")
def _aliased_outputs(engine: Engine) -> None:
    proto = model(outputs=[info("y"), info("s")])
    session = engine.session(proto)
    binding, memory = session.io_binding(), np.zeros((2, 3), np.float32)
    binding.bind_cpu_input("x", X)
    for name in ("y", "s"):
        binding.bind_output(name, "cpu", 0, np.float32, [2, 3], memory.ctypes.data)
    session.run_with_iobinding(binding)
    if not (np.allclose(memory, Y) or np.allclose(memory, X + B)):
        raise WrongAnswerError(f"a mixture: {memory}")


@attack("bindings: an OrtValue whose name is gone")
def _freed(engine: Engine) -> None:
    session, binding = bound(engine)
    value = engine.ort.OrtValue.ortvalue_from_numpy(X.copy())
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y")
    del value
    filler = [np.full((2, 3), 7, np.float32) for _ in range(100)]
    session.run_with_iobinding(binding)
    del filler
    engine.compare(binding.copy_outputs_to_cpu()[0], Y)


@attack("bindings: an array that the caller drops")
def _dropped(engine: Engine) -> None:
    session, binding = bound(engine)
    binding.bind_cpu_input("x", X.copy())
    binding.bind_output("y")
    filler = [np.full((2, 3), 7, np.float32) for _ in range(100)]
    session.run_with_iobinding(binding)
    del filler
    engine.compare(binding.copy_outputs_to_cpu()[0], Y)


@attack("bindings: results that outlive binding and session")
def _outlive(engine: Engine) -> None:
    session, binding = bound(engine)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    found = binding.get_outputs()[0]
    del binding, session
    engine.compare(found.numpy(), Y)


@attack("bindings: binding of another session")
def _foreign(engine: Engine) -> None:
    _, binding = bound(engine)
    other = engine.session(
        model([helper.make_node("Neg", ["q"], ["r"])], [info("q")], [info("r")], [])
    )
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    must_fail(lambda: other.run_with_iobinding(binding))


def value(name: str, call: Callable[[Engine], object]) -> None:
    add(f"values: {name}", lambda engine: must_fail(lambda: call(engine)))


value("ortvalue of a list", lambda e: e.ort.OrtValue.ortvalue_from_numpy([[1.0]]))
value("ortvalue of None", lambda e: e.ort.OrtValue.ortvalue_from_numpy(None))
value(
    "ortvalue of structured",
    lambda e: e.ort.OrtValue.ortvalue_from_numpy(np.zeros(2, [("a", "f4")])),
)
value(
    "shape of negative size",
    lambda e: e.ort.OrtValue.ortvalue_from_shape_and_type([-1, 2], np.float32),
)
value(
    "shape that overflows",
    lambda e: e.ort.OrtValue.ortvalue_from_shape_and_type([2**40, 2**40], np.float32),
)
value("shape of 1 EiB", lambda e: e.ort.OrtValue.ortvalue_from_shape_and_type([2**58], np.float32))
value("unknown device", lambda e: e.ort.OrtValue.ortvalue_from_numpy(X.copy(), "gpu9000", 0))
value("type 999", lambda e: e.ort.OrtValue.ortvalue_from_numpy_with_onnx_type(X, 999))
value(
    "type of another width",
    lambda e: e.ort.OrtValue.ortvalue_from_numpy_with_onnx_type(X, TensorProto.DOUBLE),
)
value(
    "update of another shape",
    lambda e: e.ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(
        np.zeros((9, 9), np.float32)
    ),
)
value(
    "update of another type",
    lambda e: e.ort.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(X.astype(np.float64)),
)
