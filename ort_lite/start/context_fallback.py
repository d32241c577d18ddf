"""The plain model of a context that a new driver or SDK refuses, compiled in its place.

`session.ep_context_fallback` allows it. The context model and its payloads stay as they are: they
serve again once the old driver is back. The new compiled form goes to the model cache.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError, Reason
from ctx_formats.lean_dataclass import dataclass, field, replace
from ctx_formats.notes import read_notes
from ctx_formats.safe_path import resolve_payload
from ort_lite.context.keys import CACHE_KEY, CONTEXT_FALLBACK_KEY, CONTEXT_SOURCE_KEY, PATH_KEY
from ort_lite.context.nodes import has_context_nodes, is_context_node
from ort_lite.context.writer import source_of
from ort_lite.model import loader as model_loader
from ort_lite.model.bodies import walk_nodes
from ort_lite.model.free_dimensions import find_fixed_sizes
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.provider_list import ProviderRequest, read_requests, with_threads
from ort_lite.session_log import get_logger
from ort_lite.start.load_request import BACKGROUND_KEY
from ort_lite.status import InvalidArgument, InvalidGraph, OrtLiteError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.onnx_model import ValueInfo
    from ort_lite.model.loader import LoadedModel
    from ort_lite.options import SessionOptions
    from ort_lite.providers.provider_choice import ProviderChoice
    from ort_lite.start.load_session import SessionLoader, SessionState

log = get_logger(__name__)

REFUSE, COMPILE, BACKGROUND, CPU = "refuse", "compile", "background", "cpu"
FALLBACKS = (REFUSE, COMPILE, BACKGROUND, CPU)
OUTDATED = (Reason.SDK_VERSION, Reason.DRIVER_VERSION, Reason.HARDWARE_ARCHITECTURE)
"""Reasons of a refusal that compiling again removes: the payload is sound, the machine changed."""
DEVICE_OPTIONS = ("device", "device_type")
MACHINE_OPTIONS = frozenset({*DEVICE_OPTIONS, "npu_platform", "cache_dir"})
"""Provider options that say where a model was compiled; others say how, and apply again."""
_ACTIONS = {
    COMPILE: "is compiled here",
    BACKGROUND: "is compiled in the background",
    CPU: "runs on the CPU EP",
}
_HIT = "is loaded from the model cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ContextOrigin:
    """What a context model records of the model that it was compiled from.

    Attributes:
        description: The context model in a message.
        name: File name of the plain model; "" if not recorded.
        blake3: Digest of the plain model; "" if not recorded.
        options: By EP name, the provider options that the payloads were made with.
        inputs: Of the context model.
    """

    description: str
    name: str
    blake3: str
    inputs: Sequence[ValueInfo]
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def load_or_fall_back(
    first: SessionLoader,
    source: object,
    requests: Sequence[ProviderRequest],
    choice: ProviderChoice | None = None,
) -> tuple[SessionLoader, object, SessionState]:
    """Load a model; where it is a context for another driver, SDK or device, its plain model.

    Args:
        first: The session's loader; its options have `session.ep_context_fallback`.
        source: The session's model.
        requests: The session's execution providers.
        choice: Those of them that `source` needs, from an earlier start; None for all.

    Returns:
        The loader that loaded it, the model as a session accepts it, and what was loaded.

    Raises:
        InvalidArgument: The entry has another value than those of `FALLBACKS`.
        InvalidGraph: The refusal of the context, where the option or the plain model's absence
            leaves nothing else.
        OrtLiteError: As a session on the plain model.
    """
    mode = first.options.config.get(CONTEXT_FALLBACK_KEY, REFUSE)
    if mode not in FALLBACKS:
        expected = ", ".join(FALLBACKS)
        raise InvalidArgument(
            f"{CONTEXT_FALLBACK_KEY} is '{mode[:40]}', expected one of {expected}"
        )
    known_notes = len(first.fallback.notes)
    try:
        return first, source, first.load(source, requests, choice)
    except InvalidGraph as exc:
        if mode == REFUSE or exc.reason not in OUTDATED:
            raise
        refusal = exc
    del first.fallback.notes[known_notes:]  # the second start has them, too
    try:
        origin = _read_origin(source, first.options)
        path = _find_source(origin, source, first.options)
        options = _require_source(path, origin, first.options)
    except (OSError, FormatError, OrtLiteError) as exc:
        problem = exc.message if isinstance(exc, OrtLiteError) else str(exc)
        raise _without_source(refusal, problem) from exc
    log.info("%s: %s", origin.description, refusal.message)
    again = _with_mode(options, mode)
    loader = replace(first, options=again, sdks_loaded=True, measured=False)
    state = loader.load(path, _requests_again(requests, origin, options, mode))
    is_hit = state.model is not None and state.model.cache.state == "hit"
    note = (
        f"{origin.description} does not fit this machine ({refusal.reason}) and stays as it is; "
        f"{path} {_HIT if is_hit else _ACTIONS[mode]} ({CONTEXT_FALLBACK_KEY}={mode})"
    )
    log.warning("%s", note)
    return loader, path, replace(state, notes=(note, *state.notes))


def _read_origin(source: object, options: SessionOptions) -> _ContextOrigin:
    with closing(model_loader.load(source, options)) as loaded:
        graph = loaded.model.graph
        nodes = [EpContextNode.from_node(n) for n in walk_nodes(graph) if is_context_node(n)]
        names = {node.onnx_model_filename for node in nodes if node.onnx_model_filename}
        notes = [(node.source, read_notes(node)) for node in nodes]
        digests = {one.source_blake3 for _, one in notes if one is not None and one.source_blake3}
        if len(names) > 1 or len(digests) > 1:
            raise FormatError("EPContext nodes", "they record several models", "one model")
        return _ContextOrigin(
            description=loaded.description,
            name=next(iter(names), ""),
            blake3=next(iter(digests), ""),
            inputs=graph.inputs,
            options={ep: one.options for ep, one in notes if one is not None},
        )


def _find_source(origin: _ContextOrigin, source: object, options: SessionOptions) -> str:
    """Path of the plain model: the user's, or the recorded name in the context model's folder."""
    named = options.config.get(CONTEXT_SOURCE_KEY)
    if named:
        return named
    if not origin.name:
        raise FormatError(
            "EPContext nodes", "they do not record a file name", f"{CONTEXT_SOURCE_KEY}=PATH"
        )
    if not origin.blake3:  # another software's: its name alone does not show that it is the model
        raise FormatError(
            "EPContext nodes",
            f"they record no digest of {origin.name!r}",
            f"{CONTEXT_SOURCE_KEY}=PATH",
        )
    place = options.config.get(PATH_KEY) or source
    if not isinstance(place, str | os.PathLike):
        raise FormatError(
            "the context model",
            "it is in memory",
            f"{CONTEXT_SOURCE_KEY}=PATH, or {PATH_KEY}",
        )
    try:
        return resolve_payload(os.path.dirname(place) or os.curdir, origin.name)  # noqa: PTH120 - as safe_path
    except FormatError as exc:
        if exc.reason is not Reason.MISSING_PAYLOAD:
            raise
        raise FormatError(
            f"the model {origin.name!r}",
            "not in the context model's folder",
            f"the model there, or {CONTEXT_SOURCE_KEY}=PATH",
        ) from exc


def _require_source(path: str, origin: _ContextOrigin, options: SessionOptions) -> SessionOptions:
    """`options` with sizes for free dimensions, such that `path` has the context's inputs.

    Raises:
        FormatError: It is another model than the one that was compiled.
        OrtLiteError: It cannot be read.
    """
    with closing(model_loader.load(path, options)) as loaded:
        if has_context_nodes(loaded.model.graph):
            raise FormatError(path, "a context model", "the plain model")
        digest = source_of(loaded).blake3 if origin.blake3 else ""
        if digest != origin.blake3:
            raise FormatError(
                path, f"digest {digest[:16]}", f"{origin.blake3[:16]}, of the model compiled"
            )
        return _with_sizes(options, loaded, origin)


def _with_sizes(
    options: SessionOptions, loaded: LoadedModel, origin: _ContextOrigin
) -> SessionOptions:
    sized = options.snapshot()
    for name, size in find_fixed_sizes(loaded.model.graph.inputs, origin.inputs).items():
        sized.add_free_dimension_override_by_name(name, size)
    return sized


def _with_mode(options: SessionOptions, mode: str) -> SessionOptions:
    entries = {} if mode == CPU else {CACHE_KEY: "1"}
    if mode == BACKGROUND:
        entries[BACKGROUND_KEY] = "1"
    for key, value in entries.items():
        if key not in options.config:
            options.add_session_config_entry(key, value)
    return options


def _requests_again(
    requests: Sequence[ProviderRequest], origin: _ContextOrigin, options: SessionOptions, mode: str
) -> Sequence[ProviderRequest]:
    """The session's providers, with the recorded options that the session does not set itself."""
    if mode == CPU:
        return with_threads(read_requests(DEFAULT_PROVIDER, None), options.intra_op_num_threads)
    return [
        replace(request, options=_with_recorded(request.options, origin.options.get(request.name)))
        for request in requests
    ]


def _with_recorded(
    options: Mapping[str, str], recorded: Mapping[str, str] | None
) -> Mapping[str, str]:
    """`options` with those recorded for the same device; those for another may not be valid."""
    if recorded is None or any(options.get(k) != recorded.get(k) for k in DEVICE_OPTIONS):
        return options
    return {**{k: v for k, v in recorded.items() if k not in MACHINE_OPTIONS}, **options}


def _without_source(refusal: InvalidGraph, problem: str) -> InvalidGraph:
    return InvalidGraph(
        f"{refusal.message} {CONTEXT_FALLBACK_KEY} needs the model that it was compiled from: "
        f"{problem}",
        reason=refusal.reason,
        recorded=refusal.recorded,
        present=refusal.present,
        hint=refusal.hint,
    )
