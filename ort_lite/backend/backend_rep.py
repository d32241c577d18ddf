"""A prepared model in the form that ONNX's backend interface gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from onnx.backend.base import BackendRep

from ort_lite.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import Value
    from ort_lite.session import InferenceSession

Options = TypeVar("Options")

RUN_OPTIONS = frozenset(
    {"log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches"}
)
"""Attributes of RunOptions that a keyword may set, as in onnxruntime."""


class OnnxRuntimeBackendRep(BackendRep):
    """A session, run by the order of its inputs."""

    def __init__(self, session: InferenceSession) -> None:
        """Over `session`, which stays the caller's to close."""
        self._session = session

    def run(self, inputs: Sequence[Any] | Any, **kwargs: Any) -> list[Value]:  # type: ignore[override]  # noqa: ANN401 - a list, as onnxruntime; ONNX's interface
        """All outputs.

        Args:
            inputs: A list with one array for each input; for a model with one input also that.
            kwargs: Attributes of RunOptions; other names are ignored.

        Raises:
            RuntimeError: An attribute that may not be set here, or one array for several inputs.
        """
        options = set_allowed(RunOptions(), kwargs, RUN_OPTIONS)
        names = [arg.name for arg in self._session.get_inputs()]
        if not isinstance(inputs, list):
            if len(names) != 1:
                raise RuntimeError(f"one array for a model of {len(names)} inputs; expected a list")
            inputs = [inputs]
        if len(inputs) > len(names):
            raise RuntimeError(f"{len(inputs)} arrays for a model of {len(names)} inputs: {names}")
        return self._session.run(None, dict(zip(names, inputs, strict=False)), options)


def set_allowed(options: Options, attributes: dict[str, Any], names: frozenset[str]) -> Options:
    """`options` with the attributes of `attributes` set that are among `names`.

    Raises:
        RuntimeError: One that `options` has is not among them: it would write files, or end runs.
    """
    for key, value in attributes.items():
        if key in names:
            setattr(options, key, value)
        elif hasattr(options, key):
            raise RuntimeError(
                f"{type(options).__name__} attribute '{key}' is not permitted via the backend API. "
                f"Allowed attributes: {', '.join(sorted(names))}"
            )
    return options
