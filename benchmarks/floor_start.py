"""One process of floor.py: `floor_start.py c_api|ort_lite|openvino MODEL CACHE [NAME ARRAY ...]`.

Prints a JSON object: `at`, the `perf_counter` at the first answer, and the seconds of each step.
"""

import sys
from time import perf_counter

TYPE_CHECKING = False  # typing is no program's import
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

STEPS: "dict[str, float]" = {}


def main(program: str, model: str, cache: str, *inputs: str) -> int:
    """Open the model, run it once, say when and how long."""
    arrays = _arrays(inputs) if inputs else {}
    if program == "c_api":
        kept: Any = _c_api(model)
    elif program == "ort_lite":
        kept = _ort_lite(model, arrays)
    else:
        kept = _openvino(model, arrays, cache)
    at = perf_counter()
    import json  # noqa: PLC0415 - after the clock

    sys.stdout.write(json.dumps({"at": at, **STEPS}) + "\n")
    del kept
    return 0


def _arrays(inputs: "tuple[str, ...]") -> "dict[str, np.ndarray[Any, Any]]":
    began = perf_counter()
    import numpy as np  # noqa: PLC0415 - see _c_api

    STEPS["numpy"] = perf_counter() - began
    began = perf_counter()
    found = dict(zip(inputs[::2], map(np.load, inputs[1::2]), strict=True))
    STEPS["feed"] = perf_counter() - began
    return found


def _c_api(blob: str) -> object:
    """import_model of a map, a request and a run, through ctypes."""
    began = perf_counter()
    import ctypes  # noqa: PLC0415 - its time is part of the answer
    import mmap  # noqa: PLC0415 - see above
    import os  # noqa: PLC0415 - see above

    folder = next(p for p in sys.path if p.endswith("site-packages")) + "/openvino/libs/"
    name = next(n for n in os.listdir(folder) if n.startswith("libopenvino_c.so"))  # noqa: PTH208 - see above
    api = ctypes.CDLL(folder + name)

    def call(function: str, *arguments: object) -> None:
        status = getattr(api, function)(*arguments)
        if status:
            raise RuntimeError(f"{function} gives {status}")

    core, compiled, request = (ctypes.c_void_p() for _ in range(3))
    call("ov_core_create", ctypes.byref(core))
    STEPS["libraries"] = perf_counter() - began
    began = perf_counter()
    with open(blob, "rb") as file:  # noqa: PTH123 - see above
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    first = ctypes.addressof(ctypes.c_char.from_buffer(data))
    call(
        "ov_core_import_model",
        *(core, ctypes.c_void_p(first), ctypes.c_size_t(len(data)), b"CPU"),
        ctypes.byref(compiled),
    )
    call("ov_compiled_model_create_infer_request", compiled, ctypes.byref(request))
    STEPS["import"] = perf_counter() - began
    began = perf_counter()
    call("ov_infer_request_infer", request)
    STEPS["run"] = perf_counter() - began
    return api, core, compiled, request, data


def _ort_lite(context: str, arrays: "dict[str, Any]") -> object:
    began = perf_counter()
    import ort_lite  # noqa: PLC0415 - its time is part of the answer

    session = ort_lite.InferenceSession(context, providers=["OpenVINOExecutionProvider"])
    vendor = session.load_report().phases["vendor import"]
    STEPS["libraries"] = perf_counter() - began - vendor
    STEPS["import"] = vendor
    began = perf_counter()
    session.run(None, arrays)
    STEPS["run"] = perf_counter() - began
    return session


def _openvino(model: str, arrays: "dict[str, Any]", cache: str) -> object:
    began = perf_counter()
    import openvino  # noqa: PLC0415 - its time is part of the answer

    core = openvino.Core()
    core.set_property({"CACHE_DIR": cache})
    STEPS["libraries"] = perf_counter() - began
    began = perf_counter()
    compiled = core.compile_model(model, "CPU")
    request = compiled.create_infer_request()
    STEPS["import"] = perf_counter() - began
    began = perf_counter()
    for name, array in arrays.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
    request.infer()
    STEPS["run"] = perf_counter() - began
    return core, compiled, request


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
