"""The default folder of caches; without pathlib, for reloads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ort_lite.context.keys import CACHE_FOLDER_VARIABLE
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping


def user_cache_folder(environment: Mapping[str, str]) -> str:
    """The folder `ort_lite` among the user's caches; it need not exist yet.

    Raises:
        InvalidArgument: The user has no home.
    """
    windows = os.name == "nt"
    base = environment.get("LOCALAPPDATA" if windows else "XDG_CACHE_HOME")
    if base:
        return os.path.join(base, "ort_lite")
    home = os.path.expanduser("~")
    if home == "~":
        raise InvalidArgument(
            "the folder for caches is unknown, because the user has no home folder; "
            f"set {CACHE_FOLDER_VARIABLE}"
        )
    return os.path.join(home, ".cache", "ort_lite")
