"""An SDK's shared libraries: found, loaded early in a thread, and called through ctypes.

Importing an extension module loads the SDK's libraries with the GIL held. `dlopen` through ctypes
releases it, and the import then finds them loaded (docs/adr/0015-early-loading.md).
"""

from __future__ import annotations

import ctypes
import mmap  # noqa: F401 - extension modules that a session needs: importing one takes the
import os
import sys
import zlib  # noqa: F401 - dynamic loader's lock, which the thread holds while it loads
from contextlib import suppress
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any

import blake3  # noqa: F401 - see mmap

from ort_lite.shortages import start_helper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def package_folders(name: str) -> Sequence[str]:
    """Folders of a top-level package, without importing it; empty if it is not installed.

    As importlib.util.find_spec, whose module a reload needs for nothing else.
    """
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None)
        if spec is not None:
            return spec.submodule_search_locations or ()
    return ()


def load_early(libraries: Sequence[str], then: Callable[[], None] | None = None) -> bool:
    """Load shared libraries in a thread, in this order; for Linux.

    Errors are ignored here; importing the SDK reports them.

    Args:
        libraries: Paths; each library needs those before it.
        then: Called after that, in the same thread; may raise OSError or ImportError.

    Returns:
        Whether the process has loaded them all already; False for an empty list, and on Windows.
    """
    if not libraries or sys.platform == "win32":
        return False
    if _is_loaded(libraries[-1]):
        return True
    start_helper(_load, "ort_lite library loading", libraries, then)
    return False


class CLibrary:
    """A loaded library; the functions that `declare` names are its attributes."""

    def __init__(self, path: str) -> None:
        """Load the library.

        Args:
            path: A file, or a name that the system's loader resolves.

        Raises:
            OSError: The library cannot be loaded.
        """
        self._without_gil, self._with_gil = ctypes.CDLL(path), ctypes.PyDLL(path)

    def declare(
        self,
        slow: Mapping[str, Sequence[Any]],
        fast: Mapping[str, Sequence[Any]],
        result: Any,  # noqa: ANN401 - a type of ctypes
        check: Callable[..., Any] | None = None,
    ) -> None:
        """Declare functions that all return the same type.

        Args:
            slow: Argument types by function name; these run with the GIL released.
            fast: The same for functions called with the GIL held: releasing it would cost more
                than the call, since another thread may take it.
            result: Return type; None for void.
            check: Errcheck of ctypes: called with (result, function, arguments) after each call.

        Raises:
            OSError: The library lacks a function.
        """
        for library, functions in ((self._without_gil, slow), (self._with_gil, fast)):
            for name, arguments in functions.items():
                function = _declare_function(library, name, arguments, result)
                if check is not None:
                    function.errcheck = check
                setattr(self, name, function)

    def declare_untyped(self, name: str, result: Any) -> Any:  # noqa: ANN401 - ctypes
        """A fast function whose callers pass values of ctypes' types themselves.

        Raises:
            OSError: The library lacks it.
        """
        return _declare_function(self._with_gil, name, None, result)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - ctypes; for type checkers alone
        """Fails: `declare` sets every function."""
        raise AttributeError(name)


class Owned:
    """An object of a C library, released with the last reference to it.

    May be passed where a function takes the object.
    """

    __slots__ = ("_as_parameter_", "_keeps", "_release")

    def __init__(
        self, handle: c_void_p, release: Callable[[c_void_p], object], keeps: object = None
    ) -> None:
        """Take over `handle`.

        Args:
            handle: The library's address of the object.
            release: The function that frees it.
            keeps: What must live as long as the object does.
        """
        self._as_parameter_ = handle
        self._release = release
        self._keeps = keeps

    @property
    def handle(self) -> int:
        """The library's address of the object, for other libraries; 0 after `release`."""
        return self._as_parameter_.value or 0

    @property
    def pointer(self) -> Any:  # noqa: ANN401 - ctypes' reference
        """A pointer to the handle, for functions that copy it from there."""
        return ctypes.byref(self._as_parameter_)

    def release(self) -> None:
        """Free the object now, then let go of what it refers to; a second call does nothing."""
        handle, self._as_parameter_ = self._as_parameter_, c_void_p()
        if handle.value is not None:
            self._release(handle)
        self._keeps = None

    def __del__(self) -> None:
        """Free the C object."""
        if hasattr(self, "_keeps"):  # __init__ was reached
            self.release()


def _is_loaded(library: str) -> bool:
    if sys.platform == "win32":
        return False
    try:
        ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def _load(libraries: Sequence[str], then: Callable[[], None] | None) -> None:
    if sys.platform == "win32":
        return
    with suppress(OSError, ImportError, MemoryError):  # whoever needs what is missing says so
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.restype = ctypes.c_void_p
        for library in libraries:
            dlopen(os.fsencode(library), os.RTLD_NOW)
        if then is not None:
            then()


def _declare_function(
    library: ctypes.CDLL,
    name: str,
    arguments: Sequence[Any] | None,
    result: Any,  # noqa: ANN401 - ctypes
) -> Any:  # noqa: ANN401 - ctypes
    try:
        function = getattr(library, name)
    except AttributeError as exc:
        raise OSError(f"{library._name} has no function {name}") from exc  # noqa: SLF001 - ctypes' only name for it
    function.argtypes, function.restype = arguments, result
    return function
