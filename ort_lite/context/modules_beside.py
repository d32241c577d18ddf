"""Imports modules in a thread while an execution provider imports a payload."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING

from ort_lite.shortages import start_helper

if TYPE_CHECKING:
    from collections.abc import Sequence


class ModulesBeside:
    """A thread that is ready to import modules; `begin` lets it.

    Python's import system makes whoever needs one of them meanwhile wait for it. The thread is
    started before it is wanted: starting one waits until it runs, and it would then keep the
    interpreter's lock from the thread that is about to give it away.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Start the thread, which waits.

        Args:
            names: Of modules, in the order in which to import them.
        """
        self._names = names
        self._begun = Event()
        start_helper(self._run, "ort_lite modules")

    def begin(self) -> None:
        """Import them from now on; once is enough."""
        self._begun.set()

    def _run(self) -> None:
        self._begun.wait()
        for name in self._names:
            with suppress(Exception):  # who needs the module imports it again, and is told why
                import_module(name)
