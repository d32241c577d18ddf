"""The seed of random operators that have none of their own, for the whole process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_lock = threading.Lock()
_shared: list[np.random.SeedSequence] = []


def set_seed(seed: int) -> None:
    """Make what random operators draw from now on repeatable.

    Nodes with a `seed` attribute draw by that, whatever is set here. After the same call, the
    same runs in the same order draw the same numbers; runs at the same time share out
    generators in the order in which they ask.

    Raises:
        ValueError: A negative seed.
    """
    import numpy as np  # noqa: PLC0415 - lazy: reload

    with _lock:
        _shared[:] = [np.random.SeedSequence(seed)]


def new_generator() -> np.random.Generator:
    """A generator of its own for one draw: seeded by `set_seed`, else by the system."""
    import numpy as np  # noqa: PLC0415 - lazy: reload

    with _lock:
        return np.random.default_rng(_shared[0].spawn(1)[0] if _shared else None)
