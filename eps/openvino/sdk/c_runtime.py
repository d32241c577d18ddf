"""OpenVINO through its C API: imports blobs in place, without the Python package.

Nothing here needs numpy, so that a blob can be imported while numpy is (c_request.py needs it).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, BinaryIO

from ctx_formats.onnx_model import DataType
from eps.openvino.sdk import c_api
from eps.openvino.sdk.signal_stack import KeptSignalStack
from eps.openvino.sdk_errors import SDK_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eps.openvino.sdk.c_api import CApi
    from eps.openvino.sdk.c_request import CRequest
    from ort_lite.ep import Owned, Port, Ports


class CRuntime:
    """A Core of the C API, for all sessions of one device and config.

    `import_model` of the C API takes its properties from the Core.
    """

    without_lock = True

    def __init__(self, api: CApi, device: str, config: Mapping[str, object]) -> None:
        """Start, or go on with the Core that another session started.

        Args:
            api: The library.
            device: Whose payloads are imported.
            config: Properties for `import_model`.
        """
        self._api = api
        self.version = api.version()
        self._device, self._config = device, dict(config)
        self._core = c_api.core_with(api, device, config)

    def available_devices(self) -> Sequence[str]:
        """See Runtime."""
        devices = c_api.Devices()
        with KeptSignalStack():
            self._api.ov_core_get_available_devices(self._core, devices)
        try:
            return [bytes(devices.names[i]).decode() for i in range(devices.size)]
        finally:
            self._api.ov_available_devices_free(devices)

    def property(self, device: str, key: str) -> str | None:
        """See Runtime."""
        try:
            with KeptSignalStack():
                return self._api.text(
                    self._api.ov_core_get_property, self._core, device.encode(), key.encode()
                )
        except SDK_ERRORS:
            return None

    def with_config(self, config: Mapping[str, object]) -> CRuntime:
        """See Runtime; another Core takes 1 ms."""
        same = dict(config) == self._config
        return self if same else CRuntime(self._api, self._device, config)

    def import_model(
        self, payload: memoryview, device: str, config: Mapping[str, object]
    ) -> CModel:
        """See Runtime; `device` and `config` are those that it was made with."""
        assert (device, dict(config)) == (self._device, self._config), "one runtime, one config"
        data = _in_place(payload)
        compiled = self._api.create(
            self._api.ov_core_import_model,
            *(self._core, data, payload.nbytes, device.encode()),
            free=self._api.ov_compiled_model_free,
            keeps=data,
        )
        return CModel(self._api, compiled, payload)


class CModel:
    """An imported model of the C API."""

    def __init__(self, api: CApi, compiled: Owned, payload: memoryview) -> None:
        """Ask for its ports."""
        self._api = api
        self._compiled = compiled
        self._payload = payload
        read = _PortReader(api, compiled)
        self.inputs, self.outputs = read.ports("input"), read.ports("output")

    @property
    def blob_bytes(self) -> int:
        """See RuntimeModel."""
        return self._payload.nbytes

    def request(self) -> CRequest:
        """See Model."""
        from eps.openvino.sdk.c_request import CRequest  # noqa: PLC0415 - lazy: reload

        made = self._api.create(
            self._api.ov_compiled_model_create_infer_request,
            self._compiled,
            free=self._api.ov_infer_request_free,
            keeps=self._compiled,
        )
        return CRequest(self._api, made, self.outputs.all)

    def property(self, key: str) -> str:
        """See Model."""
        return self._api.text(
            self._api.ov_compiled_model_get_property, self._compiled, key.encode()
        )

    def export(self, out: BinaryIO) -> None:
        """See Model: what was imported."""
        out.write(self._payload)


class _PortReader:
    """The ports of a compiled model; refers to OpenVINO's handle of it alone.

    What finds a port by name outlives the reading. If it referred to the `CModel` that holds it,
    only the garbage collector would end a closed session's model, its threads and its file.
    """

    def __init__(self, api: CApi, compiled: Owned) -> None:
        self._api = api
        self._compiled = compiled

    def ports(self, side: str) -> Ports:
        """All of one `side`, "input" or "output".

        The C API reports one name of each, and finds a port by any.
        """
        from ort_lite.ep import Ports  # noqa: PLC0415 - lazy: reload

        count = ctypes.c_size_t()
        getattr(self._api, f"ov_compiled_model_{side}s_size")(self._compiled, count)
        by_index = getattr(self._api, f"ov_compiled_model_{side}_by_index")
        by_name = getattr(self._api, f"ov_compiled_model_{side}_by_name")
        ports = tuple(self._describe_port(self._port(by_index, i)) for i in range(count.value))
        known = {name: i for i, port in enumerate(ports) for name in port.names}

        def index_of(name: str) -> int | None:
            if name in known:
                return known[name]
            try:
                (first_name,) = self._names(self._port(by_name, name.encode()))
            except SDK_ERRORS:
                return None
            return known.get(first_name)

        return Ports(ports, index_of)

    def _port(self, find: Callable[..., Any], where: int | bytes) -> Owned:
        return self._api.create(
            find, self._compiled, where, free=self._api.ov_output_const_port_free
        )

    def _names(self, port: Owned) -> frozenset[str]:
        """One of the port's names, if it has any."""
        try:
            return frozenset((self._api.text(self._api.ov_port_get_any_name, port),))
        except SDK_ERRORS:
            return frozenset()

    def _describe_port(self, port: Owned) -> Port:
        from ort_lite.ep import Port  # noqa: PLC0415 - lazy: reload

        number = ctypes.c_int()
        self._api.ov_port_get_element_type(port, number)
        data_type = c_api.DATA_TYPES.get(c_api.ELEMENT_TYPES[number.value], DataType.UNDEFINED)
        return Port(self._names(port), data_type, self._shape(port))

    def _shape(self, port: Owned) -> tuple[int | None, ...] | None:
        c_shape = c_api.PartialShape()
        self._api.ov_port_get_partial_shape(port, c_shape)
        try:
            if c_shape.rank.min != c_shape.rank.max:
                return None
            dims = [c_shape.dims[axis] for axis in range(c_shape.rank.min)]
            return tuple(dim.min if dim.min == dim.max else None for dim in dims)
        finally:
            self._api.ov_partial_shape_free(c_shape)


def _in_place(payload: memoryview) -> Any:  # noqa: ANN401 - ctypes
    """Address of the bytes, for a C function; keeps them alive."""
    if not payload.readonly:
        return (ctypes.c_char * payload.nbytes).from_buffer(payload)
    import numpy as np  # noqa: PLC0415 - lazy: reload

    return np.frombuffer(payload, dtype=np.uint8).ctypes
