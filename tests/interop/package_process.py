"""ONNX Runtime's C API for model packages, in a process of its own; started by package_peer.py.

Reads a list of requests as JSON from argv[1] and prints an answer to each as a line of JSON. The
Python package of onnxruntime has no functions for packages, so this calls the shared library in its
wheel. The slots are those of OrtApi and OrtModelPackageApi in onnxruntime_c_api.h of 1.31.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p, cast
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

API_VERSION = 31
FLOAT = 1
SLOTS = {
    "GetErrorCode": 1,
    "GetErrorMessage": 2,
    "CreateEnv": 3,
    "Run": 9,
    "CreateSessionOptions": 10,
    "SessionGetInputCount": 30,
    "SessionGetOutputCount": 31,
    "SessionGetInputName": 36,
    "SessionGetOutputName": 37,
    "CreateTensorWithDataAsOrtValue": 49,
    "GetTensorMutableData": 51,
    "GetDimensionsCount": 61,
    "GetDimensions": 62,
    "GetTensorTypeAndShape": 65,
    "CreateCpuMemoryInfo": 69,
    "GetAllocatorWithDefaultOptions": 78,
    "AddSessionConfigEntry": 130,
    "GetKeyValue": 297,
    "RegisterExecutionProviderLibrary": 301,
    "GetEpDevices": 303,
    "SessionOptionsAppendExecutionProvider_V2": 304,
    "EpDevice_EpName": 312,
    "EpDevice_EpMetadata": 314,
    "GetModelPackageApi": 427,
}
PACKAGE_SLOTS = {
    "CreateModelPackageOptionsFromSessionOptions": 0,
    "CreateModelPackageContext": 2,
    "ModelPackage_GetSchemaVersion": 4,
    "ModelPackage_GetComponentNames": 6,
    "ModelPackage_GetVariantNames": 8,
    "ModelPackage_GetVariantEpName": 9,
    "ModelPackage_ResolveStringRef": 10,
    "SelectComponent": 11,
    "ModelPackageComponent_GetSelectedVariantName": 13,
    "ModelPackageComponent_GetSelectedVariantFolderPath": 14,
    "CreateSession": 15,
}
FLOAT32 = {b"load_config": b'{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'}
"""For the plug-in, which computes in bfloat16 on CPUs that can."""
PLAIN = {"GetErrorCode": c_int, "GetErrorMessage": c_char_p, "GetKeyValue": c_char_p,
         "EpDevice_EpName": c_char_p, "EpDevice_EpMetadata": c_void_p,
         "GetModelPackageApi": c_void_p}  # fmt: skip
"""Functions that return a value and no status."""


class ApiError(Exception):
    """A status that is not OK: its code and its message."""


class Table:
    """Functions of a C structure of pointers, by name."""

    def __init__(self, address: int, slots: dict[str, int], statuses: Table | None = None) -> None:
        """Take the structure at `address`; the function with a status asks `statuses` for text."""
        self._pointers = cast(address, POINTER(c_void_p))
        self._slots = slots
        self._statuses = statuses or self

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function.

        Raises:
            ApiError: It returned a status.
        """
        result = PLAIN.get(name, c_void_p)
        pointer = self._pointers[self._slots[name]]
        found = ctypes.CFUNCTYPE(result)(pointer)(*arguments)
        if name in PLAIN or not found:
            return found
        code = self._statuses.call("GetErrorCode", c_void_p(found))
        text = self._statuses.call("GetErrorMessage", c_void_p(found))
        raise ApiError(code, text.decode())

    def create(self, name: str, *arguments: Any) -> c_void_p:
        """Call a function whose last parameter is for its result."""
        made = c_void_p()
        self.call(name, *arguments, byref(made))
        return made


def load() -> Table:
    spec = find_spec("onnxruntime")
    assert spec is not None
    assert spec.origin is not None
    (path,) = (Path(spec.origin).parent / "capi").glob("libonnxruntime.so.*")
    library = ctypes.CDLL(str(path))
    library.OrtGetApiBase.restype = POINTER(c_void_p)
    get_api = ctypes.CFUNCTYPE(c_void_p, ctypes.c_uint32)(library.OrtGetApiBase()[0])
    address = get_api(API_VERSION)
    assert address, f"no version {API_VERSION} of the C API in {path}"
    return Table(address, SLOTS)


def texts(table: Table, name: str, *arguments: Any) -> list[str]:
    """The strings that a function of a context reports."""
    array, count = POINTER(c_char_p)(), c_size_t()
    table.call(name, *arguments, byref(array), byref(count))
    return [array[i].decode() for i in range(count.value)]


def session_options(api: Table, env: c_void_p, request: dict[str, Any]) -> c_void_p:
    """Options with the plug-in's CPU device, or with nothing: the CPU EP."""
    options = api.create("CreateSessionOptions")
    if not request.get("plugin"):
        cpu = [d for d in devices(api, env) if epname(api, d) == "CPUExecutionProvider"]
        append(api, env, options, cpu[:1])
        return options
    import onnxruntime_ep_openvino  # noqa: PLC0415 - where the plug-in is asked for alone

    library = onnxruntime_ep_openvino.get_library_path().encode()
    api.call("RegisterExecutionProviderLibrary", env, c_char_p(b"openvino"), c_char_p(library))
    chosen = []
    for device in devices(api, env):
        metadata = c_void_p(api.call("EpDevice_EpMetadata", device))
        value = api.call("GetKeyValue", metadata, c_char_p(b"ov_device"))
        meta = api.call("GetKeyValue", metadata, c_char_p(b"ov_meta_device"))
        if value == b"CPU" and meta is None:
            chosen.append(device)
    append(api, env, options, chosen, FLOAT32)
    return options


def devices(api: Table, env: c_void_p) -> list[c_void_p]:
    array, count = POINTER(c_void_p)(), c_size_t()
    api.call("GetEpDevices", env, byref(array), byref(count))
    return [c_void_p(array[i]) for i in range(count.value)]


def epname(api: Table, device: c_void_p) -> str:
    return str(api.call("EpDevice_EpName", device).decode())


def append(
    api: Table,
    env: c_void_p,
    options: c_void_p,
    chosen: list[c_void_p],
    entries: Mapping[bytes, bytes] = MappingProxyType({}),
) -> None:
    array, count = (c_void_p * len(chosen))(*chosen), len(entries)
    keys, values = (c_char_p * count)(*entries), (c_char_p * count)(*entries.values())
    api.call(
        "SessionOptionsAppendExecutionProvider_V2",
        *(options, env, array, c_size_t(len(chosen)), keys, values, c_size_t(count)),
    )


def run(api: Table, session: c_void_p, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    """All outputs for float32 inputs."""
    allocator = api.create("GetAllocatorWithDefaultOptions")
    memory = api.create("CreateCpuMemoryInfo", c_int(0), c_int(0))
    values = []
    for array in feed.values():
        shape = (c_int64 * array.ndim)(*array.shape)
        values.append(
            api.create(
                "CreateTensorWithDataAsOrtValue",
                *(memory, c_void_p(array.ctypes.data), c_size_t(array.nbytes)),
                *(shape, c_size_t(array.ndim), c_int(FLOAT)),
            )
        )
    count = c_size_t()
    api.call("SessionGetOutputCount", session, byref(count))
    names = [api.create("SessionGetOutputName", session, c_size_t(i), allocator)
             for i in range(count.value)]  # fmt: skip
    outputs = (c_void_p * count.value)()
    inputs = (c_char_p * len(feed))(*(name.encode() for name in feed))
    api.call(
        "Run",
        *(session, None, inputs, (c_void_p * len(values))(*values), c_size_t(len(values))),
        *((c_char_p * count.value)(*(cast(n, c_char_p).value for n in names)), count, outputs),
    )
    return [to_array(api, c_void_p(value)) for value in outputs]


def to_array(api: Table, value: c_void_p) -> np.ndarray:
    info = api.create("GetTensorTypeAndShape", value)
    rank = c_size_t()
    api.call("GetDimensionsCount", info, byref(rank))
    shape = (c_int64 * rank.value)()
    api.call("GetDimensions", info, shape, rank)
    data = cast(api.create("GetTensorMutableData", value), POINTER(ctypes.c_float))
    return np.ctypeslib.as_array(data, tuple(shape)).copy()


def answer_to(request: dict[str, Any], api: Table, env: c_void_p) -> dict[str, Any]:
    """Open a package, describe it, and as far as asked select, create a session and run."""
    packages = Table(api.call("GetModelPackageApi"), PACKAGE_SLOTS, api)
    context = packages.create("CreateModelPackageContext", c_char_p(request["package"].encode()))
    version = c_int64()
    packages.call("ModelPackage_GetSchemaVersion", context, byref(version))
    names = texts(packages, "ModelPackage_GetComponentNames", context)
    answer: dict[str, Any] = {"schema": version.value, "components": {}}
    for name in names:
        variants = texts(packages, "ModelPackage_GetVariantNames", context, name.encode())
        found = {}
        for variant in variants:
            ep = c_char_p()
            packages.call(
                "ModelPackage_GetVariantEpName",
                *(context, name.encode(), variant.encode(), byref(ep)),
            )
            found[variant] = (ep.value or b"").decode()
        answer["components"][name] = found
    for text in request.get("resolve", []):
        resolved = c_char_p()
        packages.call("ModelPackage_ResolveStringRef", context, None, text.encode(), 1,
                      byref(resolved))  # fmt: skip
        answer.setdefault("resolved", {})[text] = (resolved.value or b"").decode()
    if request.get("select"):
        options = session_options(api, env, request)
        chosen = packages.create("CreateModelPackageOptionsFromSessionOptions", env, options)
        component = packages.create("SelectComponent", context, request["select"].encode(), chosen)
        for key, function in (("variant", "Name"), ("folder", "FolderPath")):
            found_text = c_char_p()
            name = f"ModelPackageComponent_GetSelectedVariant{function}"
            packages.call(name, component, byref(found_text))
            answer[key] = (found_text.value or b"").decode()
        if "results" in request:
            session = packages.create("CreateSession", env, component, options)
            with np.load(request["feed"]) as feed:
                results = run(api, session, {n: np.ascontiguousarray(feed[n]) for n in feed.files})
            np.savez(request["results"], *results)
    return answer


def main() -> None:
    """Answer the requests of argv[1]; errors of ONNX Runtime are answers, too."""
    api = load()
    env = api.create("CreateEnv", c_int(4), c_char_p(b"test"))
    for request in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        try:
            answer = answer_to(request, api, env)
        except ApiError as exc:
            answer = {"error": exc.args[0], "message": exc.args[1]}
        print(json.dumps(answer))  # noqa: T201 - the answer
    sys.stdout.flush()
    os._exit(0)  # objects of the C API are not released


if __name__ == "__main__":
    main()
