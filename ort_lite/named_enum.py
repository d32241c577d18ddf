"""Enumerations that read as those of onnxruntime's binding do."""

from __future__ import annotations

from enum import Enum, IntEnum


class NamedIntEnum(IntEnum):
    """An IntEnum whose text is `Class.MEMBER`, as pybind11's; plain ones give the number."""

    __str__ = Enum.__str__
    __format__ = Enum.__format__
