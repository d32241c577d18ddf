"""Reasons of nodes that an execution provider supports and leaves to the default one."""

from __future__ import annotations

from ort_lite.providers.catalog import DEFAULT_PROVIDER

_LEFT = "left to "
_CROSSING = "a crossing costs more than it saves"


def list_left_nodes(ep: str, here: float, there: float, crossing: float) -> str:
    """The reason, with figures.

    Args:
        ep: Name of the default EP.
        here: Microseconds there of the nodes that belong together.
        there: Microseconds on the EP that leaves them.
        crossing: Microseconds of getting values there and back, and of launch and compile.
    """
    return (
        f"{_LEFT}{_short_name(ep)}: {_CROSSING} (about {here:.0f} us there, {there:.0f} us here "
        f"and {crossing:.0f} us for the crossing)"
    )


def describe_slow_loop(ep: str, here: float, there: float) -> str:
    """The reason of a node whose body takes less time in the session, with figures as above."""
    return (
        f"{_LEFT}{_short_name(ep)}: its iterations take less time (about {here:.0f} us there and "
        f"{there:.0f} us here)"
    )


def is_left(reason: str) -> bool:
    """Whether a node was left for speed, and not for what the EP cannot do."""
    return reason.startswith(_LEFT)


def _short_name(ep: str) -> str:
    return "the CPU EP" if ep == DEFAULT_PROVIDER else ep
