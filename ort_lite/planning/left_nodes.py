"""The reason of a node that an execution provider supports and leaves to the default one."""

from __future__ import annotations

from ort_lite.providers.catalog import DEFAULT_PROVIDER

LEFT = "a crossing costs more than it saves"


def list_left_nodes(ep: str, here: float, there: float, crossing: float) -> str:
    """The reason, with figures.

    Args:
        ep: Name of the default EP.
        here: Microseconds there of the nodes that belong together.
        there: Microseconds on the EP that leaves them.
        crossing: Microseconds of getting values there and back, and of launch and compile.
    """
    name = "the CPU EP" if ep == DEFAULT_PROVIDER else ep
    return (
        f"left to {name}: {LEFT} (about {here:.0f} us there, {there:.0f} us here and "
        f"{crossing:.0f} us for the crossing)"
    )
