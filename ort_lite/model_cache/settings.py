"""Whether a session uses the model cache, its folder and its largest size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.keys import (
    CACHE_FOLDER_VARIABLE,
    CACHE_KEY,
    CACHE_SECRET_KEY,
    CACHE_SHAPES_KEY,
    ENABLE_KEY,
    FOLDER_KEY,
    SHARE_KEY,
    TRUST_KEY,
)
from ort_lite.model_cache.user_folder import user_cache_folder
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.model_cache.secret import CacheSecret
    from ort_lite.options import SessionOptions

QUOTA_KEY = "session.ep_context_cache_max_bytes"
QUOTA_VARIABLE = "ORT_LITE_CACHE_MAX_BYTES"
DEFAULT_QUOTA = 10_000_000_000
QUOTA_DIGITS = 20


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Folder and limits of the cache.

    Attributes:
        folder: Absolute; need not exist yet.
        quota: Bytes of compiled models, from which on the least recently used ones go.
        secret: What entries are made with, and have to be; None if anybody's are good.
        keeps_shapes: Whether what is compiled for shapes met in runs is added to entries.
    """

    folder: Path
    quota: int = DEFAULT_QUOTA
    secret: CacheSecret | None = None
    keeps_shapes: bool = True


def session_cache(
    config: Mapping[str, str], environment: Mapping[str, str]
) -> CacheSettings | None:
    """Read the cache settings of a session's entries and the environment; None for no cache.

    `session.ep_context_cache` decides; without it the cache is on where ORT_LITE_CACHE_DIR is set.

    Raises:
        InvalidArgument: An entry has a value that it cannot have.
    """
    enabled = config.get(CACHE_KEY, "1" if environment.get(CACHE_FOLDER_VARIABLE) else "0")
    if enabled not in ("0", "1"):
        raise InvalidArgument(f"{CACHE_KEY} is '{enabled}', expected 0 (off) or 1 (on)")
    return cache_settings(config, environment) if enabled == "1" else None


def bypass_reason(options: SessionOptions) -> str:
    """Why sessions of these options go around the cache although they asked for it; "" if not.

    What of a session has no digest, a function or weights in memory, must not decide what another
    one gets: kernels of the user's own compute constants that become part of a compiled model.
    """
    reasons = {
        "a context model is written": options.flag(ENABLE_KEY),
        "the optimized model is written": bool(options.optimized_model_filepath),
        "its contexts are shared among sessions": options.flag(SHARE_KEY),
        "weights are given in memory": options.added_initializers is not None,
        "kernels are registered": bool(options.custom_kernels),
        f"{TRUST_KEY} is set, and {CACHE_SECRET_KEY} is not": (
            TRUST_KEY in options.config and not options.config.get(CACHE_SECRET_KEY)
        ),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), "")


def cache_settings(config: Mapping[str, str], environment: Mapping[str, str]) -> CacheSettings:
    """The cache that is meant, whether sessions use it or not.

    Raises:
        InvalidArgument: The quota is not a number, there is no folder for caches, its key cannot
            be read, or an entry is neither 0 nor 1.
    """
    folder = (
        config.get(FOLDER_KEY)
        or environment.get(CACHE_FOLDER_VARIABLE)
        or user_cache_folder(environment)
    )
    quota = config.get(QUOTA_KEY) or environment.get(QUOTA_VARIABLE) or str(DEFAULT_QUOTA)
    if not (quota.isascii() and quota.isdigit() and len(quota) <= QUOTA_DIGITS):
        raise InvalidArgument(f"the cache's quota is '{quota[:40]}', expected a number of bytes")
    shapes = config.get(CACHE_SHAPES_KEY, "1")
    if shapes not in ("0", "1"):
        raise InvalidArgument(f"{CACHE_SHAPES_KEY} is '{shapes[:40]}', expected 0 (off) or 1 (on)")
    return CacheSettings(
        Path(folder).absolute(), int(quota), _secret(config), keeps_shapes=shapes == "1"
    )


def _secret(config: Mapping[str, str]) -> CacheSecret | None:
    path = config.get(CACHE_SECRET_KEY)
    if not path:
        return None
    from ort_lite.model_cache.secret import read_secret  # noqa: PLC0415 - lazy: rare

    return read_secret(path)
