"""Members of a session that onnxruntime keeps for itself and that packages use all the same."""

from __future__ import annotations

import os
from abc import abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from ort_lite.execution.run_forms import RunForms
from ort_lite.providers.catalog import DEFAULT_PROVIDER

if TYPE_CHECKING:
    import weakref
    from collections.abc import Iterable, Mapping, Sequence

    from ort_lite.execution.memory_info import OrtMemoryInfo
    from ort_lite.model.info import ModelMetadata, NodeArg
    from ort_lite.options import SessionOptions


class PrivateMembers(RunForms):
    """onnxruntime's private names; most are what a public method of a like name returns.

    Only what they are read for is here: assigning to one is an AttributeError, but for
    `_enable_fallback`.
    """

    _capi: ClassVar[str] = "ort_lite.capi"
    _source: Any
    _given: SessionOptions
    _face: weakref.ref[Any] | None = None

    @abstractmethod
    def get_session_options(self) -> SessionOptions:
        """A copy of the options that the session was made with."""

    @abstractmethod
    def get_modelmeta(self) -> ModelMetadata:
        """Descriptions in the model file."""

    @abstractmethod
    def get_providers(self) -> list[str]:
        """Names of the execution providers that the session runs on."""

    @abstractmethod
    def get_profiling_start_time_ns(self) -> int:
        """When profiling began."""

    @abstractmethod
    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """Make the session anew with other execution providers."""

    @property
    def _sess(self) -> Any:  # noqa: ANN401 - a class that is above this one
        """The session as onnxruntime's binding has it; one object as long as anybody holds it."""
        face = self._face() if self._face is not None else None
        if face is None:
            from weakref import ref  # noqa: PLC0415 - few sessions are asked

            module = import_module(f"{self._capi}.binding_session")
            face = module.InferenceSession.of(self)
            self._face = ref(face)  # weak, or the two would keep each other
        return face

    @property
    def _model_path(self) -> str | None:
        source = self._source
        return os.fspath(source) if isinstance(source, (str, os.PathLike)) else None

    @property
    def _model_bytes(self) -> bytes | None:
        source = self._source
        return bytes(source) if isinstance(source, (bytes, bytearray, memoryview)) else None

    @property
    def _sess_options(self) -> SessionOptions:
        return self.get_session_options()

    @property
    def _sess_options_initial(self) -> SessionOptions:
        return self._given

    @property
    def _inputs_meta(self) -> list[NodeArg]:
        return self.get_inputs()

    @property
    def _outputs_meta(self) -> list[NodeArg]:
        return self.get_outputs()

    @property
    def _overridable_initializers(self) -> list[NodeArg]:
        return self.get_overridable_initializers()

    @property
    def _input_meminfos(self) -> list[OrtMemoryInfo]:
        return self.get_input_memory_infos()

    @property
    def _output_meminfos(self) -> list[OrtMemoryInfo]:
        return self.get_output_memory_infos()

    @property
    def _model_meta(self) -> ModelMetadata:
        return self.get_modelmeta()

    @property
    def _providers(self) -> list[str]:
        return self.get_providers()

    @property
    def _fallback_providers(self) -> list[str]:
        return [DEFAULT_PROVIDER]

    @property
    def _profiling_start_time_ns(self) -> int:
        return self.get_profiling_start_time_ns()

    def _reset_session(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
        provider_options: Sequence[Mapping[str, str]] | None,
    ) -> None:
        self.set_providers(providers, provider_options)

    def _validate_input(self, feed_input_names: Iterable[str]) -> None:
        names = list(feed_input_names)
        missing = [
            arg.name
            for arg in self.get_inputs()
            if arg.name not in names and not arg.type.startswith("optional")
        ]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({names}).")
