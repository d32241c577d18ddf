"""Mapped files that others may write to, watched while a prepared graph runs."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Tells whether files that a graph's partitions have mapped are what they were."""

    def require_unchanged(self) -> None:
        """Raise InvalidGraph if one is not."""
        ...

    def close(self) -> None:
        """Let go of the files."""
        ...
