"""Loads a library with dependencies of our choice before those of the same name in the process.

A library finds its symbols in the libraries of its own tree, breadth first (System V ABI, dynamic
linking). So a library without code, whose tree begins with a chosen dependency and then the
library itself, has the chosen one win, for that library alone: what else is in the process keeps
what it has. The file made here is an ELF header and a list of names.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<QQ")
_SYMBOL = 24
"""Bytes of a symbol; the first is a null symbol."""
_HASH = struct.pack("<IIII", 1, 1, 0, 0)
"""Of a table with one empty bucket and the null symbol."""

_SHARED, _X86_64 = 3, 62
_LOAD, _DYNAMIC = 1, 2
_READ_WRITE = 6  # the dynamic loader writes addresses into the list
_NEEDED, _HASH_AT, _STRINGS_AT, _SYMBOLS_AT, _STRINGS_SIZE, _SYMBOL_SIZE = 1, 4, 5, 6, 10, 11


def load_in_order(libraries: Sequence[str], folder: str) -> None:
    """Load libraries, each of which looks into those before it first.

    Args:
        libraries: Absolute paths, of x86-64.
        folder: Where the list may be written for that moment.

    Raises:
        OSError: One cannot be loaded.
    """
    path = os.path.join(folder, "search_order.so")
    with open(path, "wb") as file:
        file.write(list_of(libraries))
    ctypes.CDLL(path)


def list_of(libraries: Sequence[str]) -> bytes:
    """A shared library of x86-64 ELF that holds nothing and needs `libraries`, in this order."""
    strings, names = b"\0", []
    for library in libraries:
        names.append(len(strings))
        strings += os.fsencode(library) + b"\0"
    entries = len(names) + 6
    dynamic = _HEADER.size + 2 * _SEGMENT.size
    symbols = dynamic + entries * _ENTRY.size
    table = symbols + _SYMBOL
    text = table + len(_HASH)
    size = text + len(strings)
    facts = [
        *((_NEEDED, name) for name in names),
        *((_HASH_AT, table), (_STRINGS_AT, text), (_SYMBOLS_AT, symbols)),
        *((_STRINGS_SIZE, len(strings)), (_SYMBOL_SIZE, _SYMBOL), (0, 0)),
    ]
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")  # 64 bits, little-endian, version 1
    sizes = (_HEADER.size, _SEGMENT.size, 2, 64, 0, 0)
    extent = entries * _ENTRY.size
    return b"".join(
        (
            _HEADER.pack(ident, _SHARED, _X86_64, 1, 0, _HEADER.size, 0, 0, *sizes),
            _SEGMENT.pack(_LOAD, _READ_WRITE, 0, 0, 0, size, size, 4096),
            _SEGMENT.pack(_DYNAMIC, _READ_WRITE, dynamic, dynamic, dynamic, extent, extent, 8),
            *(_ENTRY.pack(*fact) for fact in facts),
            bytes(_SYMBOL),
            _HASH,
            strings,
        )
    )
