"""Session options that a model brings along, in its metadata entry `ort_config`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import replace
from ort_lite.options import (
    ATTRIBUTE_TYPES,
    TRUST_KEY,
    ExecutionMode,
    GraphOptimizationLevel,
    SessionOptions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ort_lite.model.info import ModelMetadata

VARIABLE = "ORT_LOAD_CONFIG_FROM_MODEL"
CONFIG_KEY = "ort_config"
OPTIONS_KEY = "session_options"
KEPT = (
    TRUST_KEY,
    "session.ep_context_cache_key",
    "session.ep_context_probe",
    "session.ep_context_probe_seconds",
    "session.require_payload_digest",
)
"""Entries of the user's that stay: what says which files are believed is not for a file to say."""


def configure_from_model(
    options: SessionOptions, metadata: Callable[[], ModelMetadata], environ: Mapping[str, str]
) -> SessionOptions:
    """The options of a session, from its model where ORT_LOAD_CONFIG_FROM_MODEL is 1.

    As in ONNX Runtime, they take the place of all that `options` say of how a session runs, those
    that the model leaves out being at their defaults. What else was added to `options`
    (providers, kernels, weights) stays, and so do entries that say which files to believe.

    Args:
        options: The user's.
        metadata: Reads the model's; without an entry `ort_config` it brings only defaults.
        environ: With the variable; without it, or with 0, the user's options stay.

    Raises:
        RuntimeError: The variable is neither 0 nor 1, the entry is not JSON, or an option has a
            value that it cannot have; onnxruntime's class and texts.
    """
    switch = environ.get(VARIABLE, "")
    if switch not in {"", "0", "1"}:
        raise RuntimeError(
            f"The only supported values for the environment variable {VARIABLE} are '0' and '1'. "
            f"The environment variable contained the value: {switch}"
        )
    if switch != "1":
        return options
    try:
        document = json.loads(metadata().custom_metadata_map.get(CONFIG_KEY, "{}"))
    except ValueError as exc:
        raise RuntimeError(
            f"Json stored in the `{CONFIG_KEY}` key cannot be parsed. Error message: {exc}"
        ) from exc
    entries = document.get(OPTIONS_KEY, {}) if isinstance(document, dict) else {}
    fresh = SessionOptions()
    kept = {key: options.config[key] for key in KEPT if key in options.config}
    plain = replace(
        options.snapshot(), _config=kept, **{name: getattr(fresh, name) for name in ATTRIBUTE_TYPES}
    )
    for key, value in (entries if isinstance(entries, dict) else {}).items():
        if key in _READERS:
            setattr(plain, key, _read(key, value))
    return plain


def _read(key: str, value: object) -> object:
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuntimeError(f"{key} option in the model file must be an integer, not {value!r}")  # noqa: TRY004 - onnxruntime's class
    try:
        return _READERS[key](value)
    except ValueError as exc:
        raise RuntimeError(f"Unsupported {key} value in ORT config: {value}") from exc


def _thread_count(value: int) -> int:
    if value < 0:
        raise ValueError(value)
    return value


def _switch(value: int) -> bool:
    if value not in {0, 1}:
        raise ValueError(value)
    return value == 1


_READERS: Mapping[str, Any] = {
    "intra_op_num_threads": _thread_count,
    "inter_op_num_threads": _thread_count,
    "execution_mode": ExecutionMode,
    "graph_optimization_level": GraphOptimizationLevel,
    "enable_profiling": _switch,
}
