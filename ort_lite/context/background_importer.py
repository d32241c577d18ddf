"""Imports modules in a thread while an execution provider imports a payload."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING

from ort_lite.shortages import start_helper

if TYPE_CHECKING:
    from collections.abc import Sequence


class BackgroundImporter:
    """Imports modules in a background thread once `begin` is called.

    Code that needs one of them meanwhile waits for it, by Python's import locks. The thread starts
    early and waits: a new thread would take the GIL just when the calling thread is about to
    release it.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Start the thread, which waits for `begin`.

        Args:
            names: Of modules, in the order in which to import them.
        """
        self._names = names
        self._begun = Event()
        start_helper(self._run, "ort_lite modules")

    def begin(self) -> None:
        """Let the thread import; a second call does nothing."""
        self._begun.set()

    def _run(self) -> None:
        self._begun.wait()
        for name in self._names:
            with suppress(Exception):  # the code that needs the module gets the error
                import_module(name)
