"""OpenVINO's C API: the functions of libopenvino_c that a reload needs, through ctypes.

Declared after OpenVINO 2026.4's headers ov_core.h, ov_compiled_model.h, ov_infer_request.h,
ov_node.h, ov_model.h, ov_tensor.h and ov_partial_shape.h (src/bindings/c/include/openvino/c).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from ctx_formats.onnx_model import DataType
from eps.openvino.sdk_errors import OpenVINOError
from ort_lite.ep import CLibrary, Owned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSIONS = ("2026.4.",)
"""Releases that these declarations were tried with: the numbers of element types have changed
between releases, and `ov_core_set_properties` is there from 2026.4 on."""

ELEMENT_TYPES = (
    *("dynamic", "boolean", "bf16", "f16", "f32", "f64", "i4", "i8", "i16", "i32", "i64", "u1"),
    *("u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64", "nf4", "f8e4m3", "f8e5m2", "string"),
    *("f4e2m1", "f8e8m0"),
)
"""OpenVINO's names, by the number in ov_element_type_e."""

DATA_TYPES: Mapping[str, int] = {
    "boolean": DataType.BOOL,
    "f16": DataType.FLOAT16,
    "f32": DataType.FLOAT,
    "f64": DataType.DOUBLE,
    "i8": DataType.INT8,
    "i16": DataType.INT16,
    "i32": DataType.INT32,
    "i64": DataType.INT64,
    "u8": DataType.UINT8,
    "u16": DataType.UINT16,
    "u32": DataType.UINT32,
    "u64": DataType.UINT64,
}
"""The element types that numpy can hold, by OpenVINO's names."""

MOST_CORES = 4
"""Configurations whose Cores are kept; few programs have a second one."""


class Shape(ctypes.Structure):
    """ov_shape_t of openvino/c/ov_shape.h."""

    _fields_: ClassVar = [("rank", c_int64), ("dims", POINTER(c_int64))]


class Dimension(ctypes.Structure):
    """ov_dimension_t, and ov_rank_t: bounds that are equal where the size is known."""

    _fields_: ClassVar = [("min", c_int64), ("max", c_int64)]


class PartialShape(ctypes.Structure):
    """ov_partial_shape_t; `dims` is NULL where the rank is not known."""

    _fields_: ClassVar = [("rank", Dimension), ("dims", POINTER(Dimension))]


class Property(ctypes.Structure):
    """ov_property_t.

    For some keys the value is not text but an address: never pass on a key from outside.
    """

    _fields_: ClassVar = [("key", c_char_p), ("value", c_char_p)]


class Version(ctypes.Structure):
    """ov_version_t of openvino/c/ov_core.h."""

    _fields_: ClassVar = [("build_number", c_char_p), ("description", c_char_p)]


class Devices(ctypes.Structure):
    """ov_available_devices_t of openvino/c/ov_core.h."""

    _fields_: ClassVar = [("names", POINTER(c_char_p)), ("size", c_size_t)]


_OBJECT = c_void_p
_NEW = POINTER(c_void_p)

_SLOW: Mapping[str, Sequence[Any]] = {
    "ov_core_create": (_NEW,),
    "ov_core_get_available_devices": (_OBJECT, POINTER(Devices)),
    "ov_core_get_property": (_OBJECT, c_char_p, c_char_p, _NEW),
    "ov_core_read_model_from_memory_buffer": (_OBJECT, c_char_p, c_size_t, _OBJECT, _NEW),
    "ov_core_import_model": (_OBJECT, c_void_p, c_size_t, c_char_p, _NEW),
    "ov_compiled_model_create_infer_request": (_OBJECT, _NEW),
    "ov_infer_request_infer": (_OBJECT,),
}
"""Functions that may take long: they run with the GIL released."""

_FAST: Mapping[str, Sequence[Any]] = {
    "ov_get_openvino_version": (POINTER(Version),),
    "ov_core_set_properties": (_OBJECT, c_char_p, c_size_t, POINTER(Property)),
    "ov_compiled_model_get_property": (_OBJECT, c_char_p, _NEW),
    "ov_compiled_model_inputs_size": (_OBJECT, POINTER(c_size_t)),
    "ov_compiled_model_input_by_index": (_OBJECT, c_size_t, _NEW),
    "ov_compiled_model_input_by_name": (_OBJECT, c_char_p, _NEW),
    "ov_compiled_model_outputs_size": (_OBJECT, POINTER(c_size_t)),
    "ov_compiled_model_output_by_index": (_OBJECT, c_size_t, _NEW),
    "ov_compiled_model_output_by_name": (_OBJECT, c_char_p, _NEW),
    "ov_port_get_any_name": (_OBJECT, _NEW),
    "ov_port_get_element_type": (_OBJECT, POINTER(c_int)),
    "ov_port_get_partial_shape": (_OBJECT, POINTER(PartialShape)),
    "ov_infer_request_get_input_tensor_by_index": (_OBJECT, c_size_t, _NEW),
    "ov_infer_request_set_input_tensor_by_index": (_OBJECT, c_size_t, _OBJECT),
    "ov_infer_request_get_output_tensor_by_index": (_OBJECT, c_size_t, _NEW),
    "ov_infer_request_set_output_tensor_by_index": (_OBJECT, c_size_t, _OBJECT),
    "ov_tensor_create_from_host_ptr": (c_int, Shape, c_void_p, _NEW),
    "ov_tensor_get_shape": (_OBJECT, POINTER(Shape)),
    "ov_tensor_data": (_OBJECT, _NEW),
}
"""Functions that return immediately, called with the GIL held."""

_SLOW_FREE: Mapping[str, Sequence[Any]] = {
    "ov_core_free": (_OBJECT,),
    "ov_compiled_model_free": (_OBJECT,),
    "ov_infer_request_free": (_OBJECT,),
    "ov_model_free": (_OBJECT,),
}
_FAST_FREE: Mapping[str, Sequence[Any]] = {
    "ov_output_const_port_free": (_OBJECT,),
    "ov_tensor_free": (_OBJECT,),
    "ov_shape_free": (POINTER(Shape),),
    "ov_partial_shape_free": (POINTER(PartialShape),),
    "ov_available_devices_free": (POINTER(Devices),),
    "ov_version_free": (POINTER(Version),),
    "ov_free": (c_void_p,),
}


class CApi(CLibrary):
    """The library, loaded; its functions are attributes, and raise `OpenVINOError`.

    OpenVINO keeps one last message for all threads: where two fail at once, one may report the
    other's.
    """

    def __init__(self, library: str) -> None:
        """Load the library, and the runtime with it.

        Raises:
            OSError: It cannot be loaded, or is not OpenVINO's.
        """
        super().__init__(library)
        self.declare({}, {"ov_get_last_err_msg": ()}, c_void_p)
        self.declare(_SLOW_FREE, _FAST_FREE, None)
        self.declare(_SLOW, _FAST, c_int, self._require_success)

    def version(self) -> str:
        """OpenVINO's build, as `openvino.__version__`."""
        version = Version()
        self.ov_get_openvino_version(version)
        try:
            return bytes(version.build_number).decode(errors="replace")
        finally:
            self.ov_version_free(version)

    def create(self, create: Any, *arguments: object, free: Any, keeps: object = None) -> Owned:  # noqa: ANN401 - ctypes
        """A new object.

        Args:
            create: A function whose last parameter takes the address of the new object.
            arguments: Those before it.
            free: The function that frees the object.
            keeps: What must live as long as the object does.
        """
        pointer = c_void_p()
        create(*arguments, pointer)
        return Owned(pointer, free, keeps)

    def text(self, read: Any, *arguments: object) -> str:  # noqa: ANN401 - ctypes
        """The text that `read` returns through its last parameter."""
        pointer = c_void_p()
        read(*arguments, pointer)
        return self._take_text(pointer)

    def _require_success(self, status: int, function: Any, arguments: tuple[Any, ...]) -> int:  # noqa: ANN401, ARG002 - ctypes' errcheck
        if status:
            message = self._take_text(self.ov_get_last_err_msg())
            raise OpenVINOError(function.__name__, status, message)
        return status

    def _take_text(self, pointer: Any) -> str:  # noqa: ANN401 - an address or a c_void_p
        """A text of OpenVINO's, which is freed; messages may hold bytes of a blob."""
        if not pointer:
            return ""
        try:
            return ctypes.string_at(pointer).decode(errors="replace")
        finally:
            self.ov_free(pointer)


@cache
def open_library(path: str) -> CApi:
    """The library of this path, loaded and declared once in a process.

    Raises:
        OSError: It cannot be loaded, or is none of OpenVINO's.
    """
    return CApi(path)


def core_with(api: CApi, device: str, config: Mapping[str, object]) -> Owned:
    """A Core with these properties of a device, which the process keeps for later sessions.

    Making one and naming its device takes 3 ms, and a new one starts threads of its own. It keeps
    plug-ins and idle threads; models belong to their importers.

    Raises:
        OpenVINOError: OpenVINO does not start.
    """
    return _open_core(api, device, tuple((key, str(value)) for key, value in config.items()))


@lru_cache(maxsize=MOST_CORES)
def _open_core(api: CApi, device: str, config: tuple[tuple[str, str], ...]) -> Owned:
    core = api.create(api.ov_core_create, free=api.ov_core_free)
    listed = [Property(key.encode(), value.encode()) for key, value in config]
    array = (Property * len(listed))(*listed)
    api.ov_core_set_properties(core, device.encode(), len(listed), array)
    return core
