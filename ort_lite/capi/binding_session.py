"""The class InferenceSession of onnxruntime's binding, over a session of the package above it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ort_lite.status import Fail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from ort_lite.ep.interface import Value
    from ort_lite.execution.value_vector import OrtValueVector
    from ort_lite.execution.values import OrtValue
    from ort_lite.options import SessionOptions
    from ort_lite.run_options import RunOptions
    from ort_lite.session import InferenceSession as Session

_PACKAGE = import_module(__name__.partition(".")[0])
"""ort_lite, or onnxruntime where this is a module of the stand-in."""


class InferenceSession:
    """`session._sess`: a session with the signatures of onnxruntime's binding."""

    def __init__(
        self,
        session_options: SessionOptions,
        path_or_bytes: str | bytes,
        is_path: bool = True,  # noqa: ARG002, FBT001, FBT002 - the binding's; the type says it
        read_config_from_model: bool = False,  # noqa: FBT001, FBT002 - the binding's
    ) -> None:
        """Note what the session is to be made of; `initialize_session` makes it."""
        self._session: Session | None = None
        self._source = path_or_bytes
        self._options = session_options
        self._reads_config = read_config_from_model

    @classmethod
    def of(cls, session: Session) -> InferenceSession:
        """Another face of a session that is there."""
        made = cls.__new__(cls)
        made._session = session  # noqa: SLF001 - of the same class
        return made

    def initialize_session(
        self,
        providers: Sequence[str],
        provider_options: Sequence[Mapping[str, str]],
        disabled_optimizers: Set[str],
    ) -> None:
        """Make the session; empty `providers` leave the choice to the options and the default.

        Raises:
            OrtLiteError: As a session.
        """
        self._session = _PACKAGE.InferenceSession(
            self._source,
            self._options,
            providers=list(providers) or None,
            provider_options=list(provider_options) or None,
            enable_fallback=0,
            disabled_optimizers=disabled_optimizers,
            read_config_from_model=self._reads_config,
        )

    @property
    def session(self) -> Session:
        """The session behind it.

        Raises:
            Fail: `initialize_session` has not been called.
        """
        if self._session is None:
            raise Fail("the session is not initialized; call initialize_session first")
        return self._session

    def run(
        self,
        output_names: Sequence[str],
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        """The session's `run`."""
        return self.session.run(output_names, input_feed, run_options)

    def run_with_ort_values(
        self,
        input_feed: Mapping[str, OrtValue],
        output_names: Sequence[str],
        run_options: RunOptions | None = None,
    ) -> OrtValueVector:
        """The session's, with the feed first."""
        from ort_lite.execution.value_vector import OrtValueVector  # noqa: PLC0415 - lazy: rare

        outputs = self.session.run_with_ort_values(output_names, input_feed, run_options)
        return OrtValueVector.of(outputs)

    def set_tuning_results(
        self,
        results: Sequence[Mapping[str, Any]],
        error_on_invalid: bool = False,  # noqa: FBT001, FBT002 - the binding's
    ) -> None:
        """The session's `set_tuning_results`."""
        self.session.set_tuning_results(results, error_on_invalid=error_on_invalid)

    def is_webgpu_graph_capture_enabled(self) -> bool:
        """False: there is no WebGPU here."""
        return False

    def webgpu_context_id(self) -> int:
        """-1, as for a session without WebGPU."""
        return -1


def _of_the_session(name: str) -> Callable[..., Any]:
    def call(self: InferenceSession, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the session's
        return getattr(self.session, name)(*args, **kwargs)

    call.__name__, call.__doc__ = name, f"The session's `{name}`."
    return call


_PROPERTIES = {
    "get_profiling_start_time_ns": "get_profiling_start_time_ns",
    "input_epdevices": "get_input_epdevices",
    "input_meminfos": "get_input_memory_infos",
    "inputs_meta": "get_inputs",
    "model_meta": "get_modelmeta",
    "output_meminfos": "get_output_memory_infos",
    "outputs_meta": "get_outputs",
    "overridable_initializers": "get_overridable_initializers",
    "session_options": "get_session_options",
}
"""Properties that are methods of the session."""
_METHODS = (
    *("create_ortvalue_from_shape_and_type", "end_profiling", "get_provider_graph_assignment_info"),
    *("get_provider_options", "get_providers", "get_tuning_results", "release_captured_graph"),
    *("run_async", "run_with_iobinding", "run_with_ortvaluevector", "set_ep_dynamic_options"),
)
"""Methods that are the session's own."""
_RENAMED = {"create_ortvalue_from_shape_and_onnx_type": "create_ortvalue_from_shape_and_type"}
"""Methods that have another name in the session."""

for _name, _method in _PROPERTIES.items():
    setattr(InferenceSession, _name, property(_of_the_session(_method)))
for _name in (*_METHODS, *_RENAMED):
    setattr(InferenceSession, _name, _of_the_session(_RENAMED.get(_name, _name)))
