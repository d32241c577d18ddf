"""Reports configuration entries and dimensions that have no effect on a session."""

from __future__ import annotations

from contextlib import closing
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ctx_formats.onnx_model import TensorType
from ort_lite.cli.output import print_note
from ort_lite.model.loader import load

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from ctx_formats.onnx_model import GraphDef
    from ort_lite.options import SessionOptions

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
        "session.ep_compile_in_background",
        "session.ep_context_cache",
        "session.ep_context_cache_dir",
        "session.ep_context_cache_key",
        "session.ep_context_cache_max_bytes",
        "session.ep_context_map",
        "session.ep_context_probe",
        "session.ep_context_probe_seconds",
        "session.ep_context_trust",
        "session.ep_context_whole_payloads",
        "session.fail_on_suboptimal_compiled_model",
        "session.inter_op.allow_spinning",
        "session.intra_op.allow_spinning",
        "session.model_external_initializers_file_folder_path",
        "session.model_external_initializers_map",
        "session.optimized_model_external_initializers_file_name",
        "session.optimized_model_external_initializers_min_size_in_bytes",
        "session.record_ep_graph_assignment_info",
        "session.require_payload_digest",
        "session.save_model_format",
    }
)
"""Session configuration entries that ort_lite reads."""


def note_unheeded(
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
    with closing(load(model, options)) as loaded:
        symbols = sorted(set(_symbols(loaded.model.graph)))
    for name in sorted(set(sizes) - set(symbols)):
        print_note(
            f"note: --dim {name} has no effect: the model has "
            f"{', '.join(symbols) or 'no symbolic dimensions'}"
        )


def _suggestion(key: str) -> str:
    close = get_close_matches(key, ENTRIES, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def _symbols(graph: GraphDef) -> Iterator[str]:
    for info in (*graph.inputs, *graph.outputs, *graph.value_info.values()):
        if isinstance(info.type, TensorType) and info.type.shape is not None:
            yield from (dim for dim in info.type.shape if isinstance(dim, str) and dim)
