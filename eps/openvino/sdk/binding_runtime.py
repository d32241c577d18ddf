"""OpenVINO through its Python extension: what compiles, and what the C API is not used for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ctx_formats.onnx_model import DataType
from eps.openvino.sdk.binding import VERSION, ov
from eps.openvino.sdk.c_api import DATA_TYPES
from eps.openvino.sdk_errors import PROPERTY_ERRORS
from ort_lite.ep import Port, Ports, uncut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import openvino

    from eps.openvino.sdk.runtime import Array


class BindingRuntime:
    """A Core of the extension."""

    version: str = VERSION
    without_lock = False

    def __init__(self, core: openvino.Core) -> None:
        """Use `core`, which others may use besides."""
        self._core = core

    def available_devices(self) -> Sequence[str]:
        """See Runtime."""
        return list(self._core.available_devices)

    def property(self, device: str, key: str) -> str | None:
        """See Runtime."""
        try:
            return str(self._core.get_property(device, key))
        except PROPERTY_ERRORS:
            return None

    def import_model(
        self, payload: memoryview, device: str, config: Mapping[str, object]
    ) -> BindingModel:
        """See Runtime; read-only bytes are copied, since the binding refuses them."""
        buffer = np.frombuffer(payload, dtype=np.uint8)
        if not buffer.flags.writeable:
            buffer = buffer.copy()
        tensor = ov.Tensor(buffer, shared_memory=True)
        with uncut:
            compiled = self._core.import_model(tensor, device, config)
        return BindingModel(compiled, owner=(buffer, payload))


class BindingModel:
    """A compiled or imported model.

    Attributes:
        compiled: The extension's object.
    """

    def __init__(self, compiled: openvino.CompiledModel, owner: object = None) -> None:
        """Look at its ports; `owner` is what the bytes live in that it reads."""
        self.compiled = compiled
        self._owner = owner
        self.inputs, self.outputs = _ports(compiled.inputs), _ports(compiled.outputs)

    def request(self) -> BindingRequest:
        """See Model."""
        return BindingRequest(self)

    def property(self, key: str) -> str:
        """See Model."""
        found = self.compiled.get_property(key)
        return ", ".join(found) if isinstance(found, list) else str(found)

    def export(self, out: BinaryIO) -> None:
        """See Model."""
        with uncut:
            blob = self.compiled.export_model()
        out.write(blob.getbuffer())


class BindingRequest:
    """One infer request."""

    def __init__(self, model: BindingModel) -> None:
        """Make it."""
        self._model = model  # and with it the bytes that it reads
        with uncut:
            self._request = model.compiled.create_infer_request()

    def own_input(self, index: int, port: Port) -> Array:  # noqa: ARG002 - see Request
        """See Request."""
        found: Array = self._request.get_input_tensor(index).data
        return found

    def lend_input(self, index: int, value: Array) -> Array:
        """See Request; read-only arrays are copied, since the binding refuses them."""
        if not value.flags.writeable:
            value = value.copy()
        self._request.set_input_tensor(index, ov.Tensor(value, shared_memory=True))
        return value

    def infer(self) -> Sequence[Array]:
        """See Request."""
        with uncut:
            found = self._request.infer({}, share_outputs=True, decode_strings=False)
        return [array.copy() for array in found.values()]


def _ports(ports: Sequence[Any]) -> Ports:
    return Ports.by_name(
        [
            Port(
                names=frozenset(port.get_names()),
                data_type=DATA_TYPES.get(port.element_type.get_type_name(), DataType.UNDEFINED),
                shape=_shape(port.partial_shape),
            )
            for port in ports
        ]
    )


def _shape(shape: Any) -> tuple[int | None, ...] | None:  # noqa: ANN401 - an SDK object
    if shape.rank.is_dynamic:
        return None
    return tuple(dim.get_length() if dim.is_static else None for dim in shape)
