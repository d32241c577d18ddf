"""Names and limits in a session's configuration of contexts that several modules read."""

from __future__ import annotations

TYPE_CHECKING = False  # no start imports typing for this
if TYPE_CHECKING:
    from collections.abc import Mapping

ENABLE_KEY = "ep.context_enable"
PATH_KEY = "ep.context_file_path"
EMBED_KEY = "ep.context_embed_mode"
PREFIX_KEY = "ep.context_node_name_prefix"
SHARE_KEY = "ep.share_ep_contexts"
STOP_KEY = "ep.stop_share_ep_contexts"
MAP_KEY = "session.ep_context_map"
MAP_OF_CACHE = "cache"
"""Value of MAP_KEY for files of the model cache, which never change: mapped, not watched."""
SUBOPTIMAL_KEY = "session.fail_on_suboptimal_compiled_model"
PROBE_KEY = "session.ep_context_probe"
TRUST_KEY = "session.ep_context_trust"
SIGN_KEY = "ep.context_sign_key"
PASSPHRASE_KEY = "ep.context_sign_passphrase_file"

CONTEXT_FALLBACK_KEY = "session.ep_context_fallback"
SPECIALIZE_KEY = "session.specialize_after_runs"
COMPILE_LATER_KEY = "session.ep_compile_after_runs"
CONTEXT_SOURCE_KEY = "session.ep_context_source"

CACHE_KEY = "session.ep_context_cache"
CACHE_SHAPES_KEY = "session.ep_context_cache_shapes"
FOLDER_KEY = "session.ep_context_cache_dir"
CACHE_SECRET_KEY = "session.ep_context_cache_key"
CACHE_FOLDER_VARIABLE = "ORT_LITE_CACHE_DIR"
"""Keys that turn the model cache on and say where it is; model_cache/settings.py has all others."""

MAX_DATA_SIZE = (1 << 63) - 1
"""Largest EP context data in bytes, where `set_ep_context_data_read_func` sets no limit."""


def asks_for_cache(config: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Whether a session uses the model cache; a variable with its folder turns it on, too."""
    return config.get(CACHE_KEY, "1" if environment.get(CACHE_FOLDER_VARIABLE) else "0") == "1"
