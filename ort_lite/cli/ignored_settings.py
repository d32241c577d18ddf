"""Reports options, variables and dimensions that have no effect."""

from __future__ import annotations

from contextlib import closing
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ort_lite.cli.output import print_note

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from ctx_formats.onnx_model import GraphDef
    from ort_lite.options import SessionOptions

MOST_SYMBOLS = 8
"""Symbolic dimensions that a note lists."""
ENTRIES = frozenset(
    {
        "ep.context_embed_mode",
        "ep.context_enable",
        "ep.context_file_path",
        "ep.context_model_external_initializers_file_name",
        "ep.context_node_name_prefix",
        "ep.context_sign_key",
        "ep.context_sign_passphrase_file",
        "ep.share_ep_contexts",
        "ep.stop_share_ep_contexts",
        "optimization.constant_folding_max_output_size_in_bytes",
        "optimization.disable_specified_optimizers",
        "session.disable_cpu_ep_fallback",
        "session.disable_model_compile",
        "session.ep_compile_after_runs",
        "session.ep_compile_in_background",
        "session.ep_context_cache",
        "session.ep_context_cache_dir",
        "session.ep_context_cache_key",
        "session.ep_context_cache_max_bytes",
        "session.ep_context_cache_shapes",
        "session.ep_context_fallback",
        "session.ep_context_map",
        "session.ep_context_probe",
        "session.ep_context_probe_seconds",
        "session.ep_context_source",
        "session.ep_context_trust",
        "session.ep_context_whole_payloads",
        "session.fail_on_suboptimal_compiled_model",
        "session.inter_op.allow_spinning",
        "session.intra_op.allow_spinning",
        "session.load_model_format",
        "session.model_external_initializers_file_folder_path",
        "session.model_external_initializers_map",
        "session.optimized_model_external_initializers_file_name",
        "session.optimized_model_external_initializers_min_size_in_bytes",
        "session.package_component",
        "session.package_fallback",
        "session.placement",
        "session.record_ep_graph_assignment_info",
        "session.require_payload_digest",
        "session.save_model_format",
        "session.specialize_after_runs",
        "session.strict_workspace_verification",
        "session.use_env_allocators",
        "session.use_memory_mapped_ort_model",
        "session.use_ort_model_bytes_directly",
        "session.use_ort_model_bytes_for_initializers",
    }
)
"""Session configuration entries that ort_lite reads."""

VARIABLES = (
    "ORT_LITE_CACHE_DIR",
    "ORT_LITE_CACHE_MAX_BYTES",
    "ORT_LITE_PROVIDERS",
    "ORT_LITE_REPORT",
)
"""Environment variables that ort_lite reads."""


def note_variables(environment: Collection[str]) -> None:
    """Report on stderr which environment variables look like a misspelled one of ort_lite."""
    for name in sorted(set(environment) - set(VARIABLES)):
        close = get_close_matches(name, VARIABLES, n=1, cutoff=0.85)
        if close and name.startswith("ORT_"):
            print_note(f"note: the variable {name} has no effect; did you mean {close[0]}?")


def note_ignored_options(providers: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """Report on stderr which options execution providers ignore, as ONNX Runtime's CPU does."""
    from ort_lite.ep.factory import SupportsUnknownOptions
    from ort_lite.providers.catalog import entries

    for name, options in providers:
        factory = entries()[name].load()
        if not (isinstance(factory, SupportsUnknownOptions) and factory.ignores_options):
            continue
        for key in sorted(set(options) - set(factory.options)):
            known = ", ".join(sorted(factory.options)) or "no options"
            print_note(f"note: -O {key} has no effect: {name} has {known}")


def report_ignored_settings(
    model: Path, options: SessionOptions, entries: Collection[str], sizes: Mapping[str, int]
) -> None:
    """Report on stderr which of `entries` and `sizes` have no effect.

    Args:
        model: The session's model, which has been loaded once already.
        options: The session's.
        entries: Keys that the user set.
        sizes: Symbolic dimensions that the user set.
    """
    for key in sorted(set(entries) - ENTRIES):
        print_note(f"note: -c {key} has no effect: unknown entry{_suggestion(key)}")
    if not sizes:
        return
    from ort_lite.model.loader import load

    with closing(load(model, options)) as loaded:
        symbols = list(dict.fromkeys(_symbols(loaded.model.graph)))
    for name in sorted(set(sizes) - set(symbols)):
        print_note(
            f"note: --dim {name} has no effect: the model has "
            f"{_first_of(symbols) or 'no symbolic dimensions'}"
        )


def _first_of(symbols: Sequence[str]) -> str:
    """The first symbols, which are those of inputs; exporters name one for many a node."""
    more = len(symbols) - MOST_SYMBOLS
    text = ", ".join(symbols[:MOST_SYMBOLS])
    return f"{text} and {more} more" if more > 0 else text


def _suggestion(key: str) -> str:
    close = get_close_matches(key, ENTRIES, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def _symbols(graph: GraphDef) -> Iterator[str]:
    """Those of inputs first."""
    from ctx_formats.onnx_model import TensorType

    for info in (*graph.inputs, *graph.outputs, *graph.value_info.values()):
        if isinstance(info.type, TensorType) and info.type.shape is not None:
            yield from (dim for dim in info.type.shape if isinstance(dim, str) and dim)
