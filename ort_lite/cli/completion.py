"""Values that a shell completes: providers, devices, configuration entries, peers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def complete_provider(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Short names of the installed execution providers that begin with `typed`."""
    from ort_lite.providers.catalog import entries

    names = [name.removesuffix("ExecutionProvider").lower() for name in entries()]
    return [name for name in names if name.startswith(typed.lower())]


def complete_entry(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Session configuration entries that begin with `typed`, with their equals sign."""
    from ort_lite.cli.ignored_settings import ENTRIES

    return [f"{key}=" for key in sorted(ENTRIES) if key.startswith(typed)]


def complete_peer(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Peers of --compare that begin with `typed`."""
    from ort_lite.cli.peers import PEERS

    return [peer for peer in PEERS if peer.startswith(typed)]
