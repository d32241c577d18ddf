"""Whether a trial that is remembered has failed: all that a reload asks of earlier trials."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ort_lite.ep import InvalidArgument, user_cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "opencl_trials"
FAILED_ENDING = ".failed.json"

problems_here: dict[str, str] = {}
"""Problems that trials of this process found, "" for none, by device and by limits of the process:
for the case that nothing can be kept."""


def nothing_failed() -> bool:
    """Whether no trial that is remembered has failed, of any device."""
    return not any(problems_here.values()) and not has_failures(records_folder(os.environ))


def has_failures(folder: str) -> bool:
    """Whether some device has failed its trial, by the records in a folder."""
    try:
        return any(name.endswith(FAILED_ENDING) for name in os.listdir(folder))
    except OSError:
        return False


def records_folder(environ: Mapping[str, str]) -> str:
    """In the user's cache folder; "" for a user without one."""
    try:
        return os.path.join(user_cache_folder(environ), FOLDER)
    except InvalidArgument:
        return ""
