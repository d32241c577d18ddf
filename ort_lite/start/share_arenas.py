"""`session.use_env_allocators`: sessions that use one memory for values inside models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.ep.memory_use import SupportsSharedArena

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ort_lite.ep.interface import ExecutionProvider


def share_arenas(eps: Sequence[ExecutionProvider]) -> None:
    """Have those EPs that can use the arena of their device, before they compile or import."""
    for ep in eps:
        if isinstance(ep, SupportsSharedArena):
            ep.share_arena()
