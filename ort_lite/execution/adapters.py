"""LoRA adapters: parameters that a run puts in place of a model's initializers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_formats.adapter_file import Adapter, read_adapter, write_adapter
from ctx_formats.atomic_write import write_file
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import replace
from ort_lite.execution.values import OrtValue
from ort_lite.model.tensor_values import from_numpy
from ort_lite.status import BindingError, Fail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LoraAdapter:
    """Parameters for runs; `RunOptions.add_active_adapter` takes it."""

    def __init__(self) -> None:
        """One without parameters, before `Load`."""
        self._parameters: dict[str, OrtValue] = {}

    def Load(self, file_path: str | os.PathLike[str], /) -> None:  # noqa: N802 - onnxruntime's name
        """Read an adapter's file; parameters of a file loaded before are gone.

        Raises:
            BindingError: It cannot be read, or is not an adapter's; a RuntimeError, too.
        """
        self._parameters = _values_of(_read(file_path))

    @property
    def parameters(self) -> Mapping[str, OrtValue]:
        """The parameters for a run, by the name of an input."""
        return self._parameters


class AdapterFormat:
    """The content of an adapter's file, to be read, changed and written."""

    def __init__(self, adapter: AdapterFormat | None = None) -> None:
        """An empty one of version 0 for version 0 of a model, or a copy."""
        self._adapter = Adapter()
        self._parameters: dict[str, OrtValue] = {}
        if adapter is not None:
            self.adapter_version = adapter.adapter_version
            self.model_version = adapter.model_version
            self.parameters = adapter.parameters

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Read an adapter file.

        Raises:
            BindingError: It cannot be read, or is not an adapter's; a RuntimeError, too.
        """
        read, made = _read(file_path), AdapterFormat()
        made.adapter_version, made.model_version = read.adapter_version, read.model_version
        made.parameters = _values_of(read)
        return made

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Write a file that onnxruntime loads, whole or not at all; one of that name is replaced.

        Raises:
            BindingError: A parameter is not a tensor, text, bool or complex, or has no dimension; a
                RuntimeError, too.
            OSError: The file cannot be written.
        """
        tensors = []
        for name, value in self._parameters.items():
            if not value.is_tensor():
                raise BindingError(f"adapter parameter '{name}' is a {value.data_type()}")
            tensors.append(from_numpy(value.numpy(), name))
        try:
            data = write_adapter(replace(self._adapter, parameters=tensors))
        except FormatError as exc:
            raise BindingError(f"cannot write an adapter: {exc}") from exc
        write_file(Path(file_path), data, replace=True)

    @property
    def format_version(self) -> int:
        """Version of the file's format."""
        return self._adapter.format_version

    @property
    def adapter_version(self) -> int:
        """The author's number for the parameters; 32 bits."""
        return self._adapter.adapter_version

    @adapter_version.setter
    def adapter_version(self, number: int) -> None:
        self._adapter = replace(self._adapter, adapter_version=_number(number))

    @property
    def model_version(self) -> int:
        """The author's number for the model that they are made for; 32 bits."""
        return self._adapter.model_version

    @model_version.setter
    def model_version(self, number: int) -> None:
        self._adapter = replace(self._adapter, model_version=_number(number))

    @property
    def parameters(self) -> dict[str, OrtValue]:
        """Values by the name of a model's input."""
        return dict(self._parameters)

    @parameters.setter
    def parameters(self, values: Mapping[str, OrtValue]) -> None:
        self._parameters = dict(values)

    def get_format_version(self) -> int:
        """Version of the file's format."""
        return self.format_version

    def get_adapter_version(self) -> int:
        """The author's number for the parameters."""
        return self.adapter_version

    def set_adapter_version(self, adapter_version: int) -> None:
        """Number the parameters; TypeError for what is not an integer of 32 bits."""
        self.adapter_version = adapter_version

    def get_model_version(self) -> int:
        """The author's number for the model that they are made for."""
        return self.model_version

    def set_model_version(self, model_version: int) -> None:
        """Number the model; TypeError for what is not an integer of 32 bits."""
        self.model_version = model_version

    def get_parameters(self) -> dict[str, OrtValue]:
        """Values by the name of a model's input."""
        return self.parameters

    def set_parameters(self, params: Mapping[str, OrtValue]) -> None:
        """Put these in place of all parameters."""
        self.parameters = dict(params)


def with_adapters(
    feed: Mapping[str, Any], adapters: Sequence[LoraAdapter | None]
) -> Mapping[str, Any]:
    """`feed` with the parameters of active adapters; the first one with a name counts.

    As in onnxruntime, an adapter wins over what the caller feeds.
    """
    parameters: dict[str, Any] = {}
    for adapter in adapters:
        for name, value in (adapter.parameters if adapter is not None else {}).items():
            parameters.setdefault(name, value)
    return {**feed, **parameters} if parameters else feed


def _read(file_path: str | os.PathLike[str]) -> Adapter:
    path = os.fspath(file_path)
    try:
        data = bytearray(Path(path).read_bytes())
        return read_adapter(memoryview(data))
    except OSError as exc:
        raise BindingError(f"cannot read the adapter {path}: {exc.strerror or exc}") from exc
    except FormatError as exc:
        raise BindingError(
            f"{path} does not appear to be a valid lora parameter format: {exc}"
        ) from exc


def _values_of(adapter: Adapter) -> dict[str, OrtValue]:
    try:
        return {tensor.name: OrtValue.of_tensor(tensor) for tensor in adapter.parameters}
    except Fail as exc:
        raise BindingError(f"cannot read the adapter: {exc.message}") from exc


def _number(number: object) -> int:
    if not isinstance(number, int) or not -(1 << 31) <= number < 1 << 31:
        raise TypeError(f"a version is an integer of 32 bits, got {number!r}")
    return number
