"""Values of option attributes, taken or refused as onnxruntime's binding does."""

from __future__ import annotations

import os
import sys
from operator import index
from typing import SupportsIndex

PATHS = ("optimized_model_filepath", "profile_file_prefix")
"""Attributes that are text of wide characters on Windows, where bytes are refused."""


def convert_value(owner: str, name: str, value: object, kind: type) -> object:
    """`value` as an attribute of type `kind` holds it.

    A bool is made of anything that has a truth value of its own, and of None; an int of what has
    `__index__`; text of bytes in UTF-8 and, unlike in ONNX Runtime, of a path. An enumeration takes
    its members alone: a plain number is refused.

    Raises:
        TypeError: Nothing of these; onnxruntime's class.
    """
    if kind is int and isinstance(value, SupportsIndex):
        return index(value)
    if isinstance(value, kind):
        return value
    if kind is bool and (value is None or hasattr(type(value), "__bool__")):
        return bool(value)
    is_path = name in PATHS and sys.platform == "win32"
    if kind is str and isinstance(value, bytes) and not is_path:
        return value.decode()
    if kind is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(
        f"{owner}.{name} is of type {kind.__name__}, and got {value!r} of type "
        f"{type(value).__name__}"
    )


def check_entry(key: object, value: object, max_key: int) -> None:
    """Check a configuration entry of a session or a run.

    Raises:
        TypeError: The key or the value is not text.
        RuntimeError: The key is empty or too long; onnxruntime's class and text.
    """
    if not (isinstance(key, str) and isinstance(value, str)):
        raise TypeError(f"configuration entries are text, not {key!r}: {value!r}")
    if not key or len(key) > max_key:
        raise RuntimeError(f"Config key is empty or longer than maximum length {max_key}")
