"""The file of the model cache that says which execution providers a model needs, if it is there.

A session asks for it before SDKs begin to load, so this imports little.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from blake3 import blake3

from ort_lite.context.keys import CACHE_FOLDER_VARIABLE, FOLDER_KEY, asks_for_cache
from ort_lite.model_cache.user_folder import user_cache_folder
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = os.path.join("v1", "choices")


def find_choice_file(
    source: object, config: Mapping[str, str], environment: Mapping[str, str]
) -> str:
    """Path of the model's file; "" for models without a file and sessions without a cache."""
    folder = config.get(FOLDER_KEY) or environment.get(CACHE_FOLDER_VARIABLE)
    if not asks_for_cache(config, environment):
        return ""
    try:
        choices = os.path.join(folder or user_cache_folder(environment), FOLDER)
    except InvalidArgument:
        return ""  # who opens the cache says so
    name = name_choice_file(source)
    path = os.path.join(choices, name)
    return path if name and os.path.isfile(path) else ""


def name_choice_file(source: object) -> str:
    """Name of the file for a model at a path, or for models in memory of that size; else ""."""
    if isinstance(source, bytes | bytearray | memoryview):
        words: list[object] = ["", len(source)]
    elif isinstance(source, str | os.PathLike) and isinstance(path := os.fspath(source), str):
        words = [os.path.abspath(path)]
    else:
        return ""
    return f"{blake3(json.dumps(words).encode()).hexdigest()[:32]}.json"
