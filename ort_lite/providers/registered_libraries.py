"""Execution providers that a program brings along without installing them."""

from __future__ import annotations

import os
import threading

from ort_lite.providers.catalog import ProviderEntry, entries, registered
from ort_lite.status import Fail, InvalidArgument

_lock = threading.Lock()


def register_execution_provider_library(
    registration_name: str, library_path: str | os.PathLike[str]
) -> None:
    """Let sessions of this process use an execution provider.

    Args:
        registration_name: To unregister it by, and what `OrtEpDevice.ep_vendor` says.
        library_path: `module:attribute` of an `EpFactory`. An entry point of a distribution
            (docs/architecture.md) does the same for every process.

    Raises:
        Fail: The registration name, or the execution provider's, is taken.
        InvalidArgument: `library_path` names no attribute of a module.
        EPFail: It cannot be imported, or is not a factory.
    """
    target = os.fspath(library_path)
    module, colon, attribute = target.partition(":")
    if not (registration_name and module and colon and attribute):
        raise InvalidArgument(
            f"library_path is {target!r}, expected module:attribute of an execution provider's "
            "factory: execution providers of ort_lite are written in Python"
        )
    with _lock:
        if registration_name in registered:
            raise Fail(f"library is already registered under {registration_name}.")
        name = ProviderEntry("", target, registration_name).load_any_name().name
        _refuse_taken(name)
        registered[registration_name] = ProviderEntry(name, target, registration_name)


def unregister_execution_provider_library(registration_name: str) -> None:
    """Forget it; sessions that use it go on.

    Raises:
        Fail: Nothing is registered by that name.
    """
    with _lock:
        if registered.pop(registration_name, None) is None:
            raise Fail(f"Execution provider library: {registration_name} was not registered.")


def _refuse_taken(name: str) -> None:
    known = entries().get(name)
    if known is not None:
        raise Fail(f"'{name}' is provided already, by {known.target} of {known.distribution}")
