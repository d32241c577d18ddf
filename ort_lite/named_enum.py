"""Enumerations that read as those of onnxruntime's binding do."""

from __future__ import annotations

from enum import IntEnum


class NamedIntEnum(IntEnum):
    """An IntEnum whose text is `Class.MEMBER`, as pybind11's; plain ones give the number."""

    def __str__(self) -> str:
        """E.g. `OrtMemType.DEFAULT`."""
        return f"{type(self).__name__}.{self.name}"
