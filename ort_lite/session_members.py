"""Members of a session that onnxruntime keeps for itself and that packages use all the same.

`InferenceSession.__getattr__` comes here, so that only a session that is asked imports it.
"""

from __future__ import annotations

import os
import weakref
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ort_lite.providers.catalog import DEFAULT_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ort_lite.options import SessionOptions
    from ort_lite.run_forms import RunForms

BINDING = "binding_session"
"""Module of a package `capi` whose InferenceSession is the face that `_sess` is."""


def private_member(session: RunForms, name: str) -> Any:  # noqa: ANN401 - as various as the names
    """The member that onnxruntime has under a private name.

    Raises:
        AttributeError: There is no such name, or a session cannot supply its value.
    """
    read = _READ.get(name)
    if read is None:
        kind = type(session).__name__
        raise AttributeError(f"'{kind}' object has no attribute '{name}'", name=name, obj=session)
    return read(session)


def _face(session: RunForms) -> Any:  # noqa: ANN401 - a class that is above this one
    """The session as onnxruntime's binding has it; one object while it is referenced."""
    known: weakref.ref[Any] | None = session.__dict__.get("_face")
    face = known() if known is not None else None
    if face is None:
        module = import_module(f"{session._capi}.{BINDING}")  # noqa: SLF001 - for this function
        face = module.InferenceSession.of(session)
        session.__dict__["_face"] = weakref.ref(face)  # weak, or the two would keep each other
    return face


def _model_path(session: RunForms) -> str | None:
    source: object = session._source  # noqa: SLF001 - what this module is for
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else None


def _model_bytes(session: RunForms) -> bytes | None:
    source: object = session._source  # noqa: SLF001 - what this module is for
    return bytes(source) if isinstance(source, (bytes, bytearray, memoryview)) else None


def _options_at_first(session: RunForms) -> SessionOptions:
    options: SessionOptions = session._initial_options  # noqa: SLF001 - what this module is for
    return options


def _validate_input(session: RunForms, feed_input_names: Iterable[str]) -> None:
    """Refuse a feed without these names.

    Raises:
        ValueError: A required input is not among them; onnxruntime's class and words.
    """
    names = list(feed_input_names)
    missing = [
        arg.name
        for arg in session.get_inputs()
        if arg.name not in names and not arg.type.startswith("optional")
    ]
    if missing:
        raise ValueError(f"Required inputs ({missing}) are missing from input feed ({names}).")


_READ: dict[str, Callable[[RunForms], Any]] = {
    "_fallback_providers": lambda _: [DEFAULT_PROVIDER],
    "_input_meminfos": lambda session: session.get_input_memory_infos(),
    "_inputs_meta": lambda session: session.get_inputs(),
    "_model_bytes": _model_bytes,
    "_model_meta": lambda session: session.get_modelmeta(),
    "_model_path": _model_path,
    "_output_meminfos": lambda session: session.get_output_memory_infos(),
    "_outputs_meta": lambda session: session.get_outputs(),
    "_overridable_initializers": lambda session: session.get_overridable_initializers(),
    "_profiling_start_time_ns": lambda session: session.get_profiling_start_time_ns(),
    "_provider_options": lambda session: session.get_provider_options(),
    "_providers": lambda session: session.get_providers(),
    "_reset_session": lambda session: session.set_providers,
    "_sess": _face,
    "_sess_options": lambda session: session.get_session_options(),
    "_sess_options_initial": _options_at_first,
    "_validate_input": lambda session: partial(_validate_input, session),
}
