"""One process of floor.py, started by launch.py: BLOB CHECK NUMPY [NAME ARRAY ...].

The least that a Python program can do to import BLOB and run it once: OpenVINO's C API, through
ctypes. With "digest" for CHECK it hashes the blob before OpenVINO sees it, while a thread loads
OpenVINO. NUMPY is "first"; "meanwhile": imported while a thread does all of that; or "never".
Outputs stay in OpenVINO's memory, and no error but a status is looked at.

Prints a JSON object as first_answer_process.py does. `steps` follow each other and make up the
answer: numpy, before (the import of the blob), import, after, feed, run; libraries and digest are
parts of what comes before.
"""

import os
import sys
from time import perf_counter

TYPE_CHECKING = False  # importing typing would be counted as the program's
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Pointer = Any
    """A c_void_p."""
    Call = Callable[..., None]
    """Calls a function of the library, by name."""

NUMBERS = {"<f4": 4, "<i4": 9, "<i8": 10, "|u1": 16}
"""ov_element_type_e of OpenVINO 2026.4, by what .npy files call the types."""


def main(started: float, blob: str, check: str, numpy: str, *inputs: str) -> int:
    """Import the blob, run it once, say when and how long."""
    if numpy == "first":
        _import_numpy()
    imported = perf_counter()
    opening = Opening(blob, check)
    if numpy == "meanwhile":
        run_overlapped(opening.run, _import_numpy)
    else:
        opening.run()
    opened = perf_counter()
    kept = _feed(opening, inputs, _read_alone if numpy == "never" else _read)
    fed = perf_counter()
    opening.call("ov_infer_request_infer", opening.request)
    at = perf_counter()
    from benchmarks.harness.process_result import send_result  # noqa: PLC0415 - after the clock

    steps = {
        "numpy": imported - started,
        "before": opening.began - imported,
        "import": opening.ended - opening.began,
        "after": opened - opening.ended,
        "feed": fed - opened,
        "run": at - fed,
        **opening.parts,
    }
    send_result(1, started=started, at=at, steps=steps)
    del kept
    return 0


class Opening:
    """From the library to a request.

    Attributes:
        call: Calls a function of the library; raises where it gives anything but 0.
        request: The request.
        began: The `perf_counter` when OpenVINO got the blob.
        ended: That when the request was there.
        parts: Seconds of what came before.
    """

    call: "Call"
    request: "Pointer"
    began: float
    ended: float

    def __init__(self, blob: str, check: str) -> None:
        """Remember them."""
        self._blob, self._check = blob, check
        self.parts: dict[str, float] = {}

    def run(self) -> None:
        """Open it."""
        import ctypes  # noqa: PLC0415 - its time is part of the answer
        import mmap  # noqa: PLC0415 - see above

        with open(self._blob, "rb") as file:  # noqa: PTH123 - pathlib takes a while to import
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        if self._check == "digest":
            import blake3  # noqa: PLC0415, F401 - an extension: not while libraries are loaded

            run_overlapped(self.load, self._digest)
        else:
            self.load()
        self._compiled, self.request = ctypes.c_void_p(), ctypes.c_void_p()
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._data))
        span = (ctypes.c_void_p(first), ctypes.c_size_t(len(self._data)))
        self.began = perf_counter()
        self.call(
            *("ov_core_import_model", self._core, *span, b"CPU"), ctypes.byref(self._compiled)
        )
        self.call(
            *("ov_compiled_model_create_infer_request", self._compiled),
            ctypes.byref(self.request),
        )
        self.ended = perf_counter()

    def load(self) -> None:
        """Load the library, and make a core that has loaded the plug-in for CPUs."""
        import ctypes  # noqa: PLC0415 - see run

        began = perf_counter()
        folder = next(f for p in sys.path if os.path.isdir(f := f"{p}/openvino/libs"))  # noqa: PTH112 - see run
        name = next(n for n in os.listdir(folder) if n.startswith("libopenvino_c.so"))  # noqa: PTH208 - see run
        library = ctypes.CDLL(f"{folder}/{name}")

        def call(function: str, *arguments: object) -> None:
            status = getattr(library, function)(*arguments)
            if status:
                raise RuntimeError(f"{function} gives {status}")

        self._core, text = ctypes.c_void_p(), ctypes.c_void_p()
        call("ov_core_create", ctypes.byref(self._core))
        name_of = (self._core, b"CPU", b"FULL_DEVICE_NAME")
        call("ov_core_get_property", *name_of, ctypes.byref(text))
        # As all other programs: by default OpenVINO computes in bfloat16 on CPUs that can.
        call("ov_core_set_property", self._core, b"CPU", b"INFERENCE_PRECISION_HINT", b"f32")
        self.call = call
        self.parts["libraries"] = perf_counter() - began

    def _digest(self) -> None:
        from blake3 import blake3  # noqa: PLC0415 - imported before

        began = perf_counter()
        blake3(self._data, max_threads=blake3.AUTO).digest()
        self.parts["digest"] = perf_counter() - began


def _import_numpy() -> None:
    import numpy as np  # noqa: F401, PLC0415 - what is measured


def run_overlapped(work: "Callable[[], None]", meanwhile: "Callable[[], None]") -> None:
    """Do `work` in a thread and `meanwhile` here.

    A thread that fails says so on stderr; what it did not make is then missed here.
    """
    import _thread  # noqa: PLC0415 - threading takes a millisecond

    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            work()
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    meanwhile()
    done.acquire()


def _feed(
    opening: Opening,
    inputs: "tuple[str, ...]",
    read: "Callable[[str], tuple[int, list[int], int, object]]",
) -> "list[object]":
    """Set the inputs; what OpenVINO reads them from, which must stay."""
    import ctypes  # noqa: PLC0415 - imported before

    class Shape(ctypes.Structure):
        _fields_ = (("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64)))

    kept = []
    for name, path in zip(inputs[::2], inputs[1::2], strict=True):
        kind, shape, address, owner = read(path)
        sizes = Shape(len(shape), (ctypes.c_int64 * len(shape))(*shape))
        tensor = ctypes.c_void_p()
        place = (ctypes.c_void_p(address), ctypes.byref(tensor))
        opening.call("ov_tensor_create_from_host_ptr", kind, sizes, *place)
        opening.call("ov_infer_request_set_tensor", opening.request, name.encode(), tensor)
        kept.append(owner)
    return kept


def _read(path: str) -> "tuple[int, list[int], int, object]":
    """Type, shape, address and owner of an array."""
    import numpy as np  # noqa: PLC0415 - not in all processes

    array = np.load(path)
    place = array.__array_interface__["data"][0]
    return NUMBERS[array.dtype.str], list(array.shape), place, array


def _read_alone(path: str) -> "tuple[int, list[int], int, object]":
    """The same without numpy: an .npy file of version 1.0 in C order, as numpy.save writes it."""
    import ctypes  # noqa: PLC0415 - imported before

    with open(path, "rb") as file:  # noqa: PTH123 - see Opening.run
        raw = file.read()
    begin = 10 + int.from_bytes(raw[8:10], "little")
    head = raw[10:begin].decode()
    sizes = head.partition("(")[2].partition(")")[0].split(",")
    memory = ctypes.create_string_buffer(raw[begin:])
    shape = [int(size) for size in sizes if size.strip()]
    return NUMBERS[head.split("'")[3]], shape, ctypes.addressof(memory), memory
