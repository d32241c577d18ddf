"""C functions by name, with a GIL policy each; objects that are freed once."""

from __future__ import annotations

import ctypes
import sys
from ctypes import c_int, c_void_p
from typing import Any

import pytest

from ort_lite.ep import CLibrary, Owned

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs libc by its Linux name")
LIBC = "libc.so.6" if sys.platform == "linux" else "libc.dylib"


def test_functions_are_attributes_and_their_results_are_checked() -> None:
    seen: list[tuple[str, int]] = []

    def check(result: int, function: Any, _arguments: object) -> int:
        seen.append((function.__name__, result))
        return result

    library = CLibrary(LIBC)
    library.declare({"abs": (c_int,)}, {"labs": (ctypes.c_long,)}, c_int, check)
    assert (library.abs(-3), library.labs(-4)) == (3, 4)
    assert seen == [("abs", 3), ("labs", 4)]


def test_a_slow_function_releases_the_gil_and_a_fast_one_holds_it() -> None:
    library = CLibrary(LIBC)
    library.declare({"abs": (c_int,)}, {"labs": (ctypes.c_long,)}, c_int)
    holds_gil = 0x4  # ctypes' FUNCFLAG_PYTHONAPI
    assert not library.abs._flags_ & holds_gil
    assert library.labs._flags_ & holds_gil


def test_a_library_without_a_function_is_an_error_that_names_it() -> None:
    with pytest.raises(OSError, match="has no function no_such_function"):
        CLibrary(LIBC).declare({}, {"no_such_function": ()}, None)
    with pytest.raises(AttributeError, match="undeclared"):
        _ = CLibrary(LIBC).undeclared


def test_an_object_is_freed_once_and_then_what_it_refers_to() -> None:
    freed: list[int | None] = []
    owned = Owned(c_void_p(7), lambda handle: freed.append(handle.value), keeps=freed)
    assert owned.handle == 7
    owned.release()
    owned.release()
    del owned
    assert freed == [7]


def test_an_object_is_freed_with_its_last_reference() -> None:
    freed: list[int | None] = []
    owned = Owned(c_void_p(7), lambda handle: freed.append(handle.value))
    del owned
    assert freed == [7]
