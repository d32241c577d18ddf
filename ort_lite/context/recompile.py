"""The command that compiles a context model again, as the model records its compile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.ep_context import EpContextNode
from ctx_formats.errors import FormatError
from ctx_formats.lean_dataclass import dataclass
from ctx_formats.notes import read_notes
from ort_lite.context.dimension_arguments import dimension_arguments
from ort_lite.context.nodes import is_context_node
from ort_lite.context.quote_argument import is_quotable, quote_argument
from ort_lite.context.rebuild_package import package_of, rebuild_text
from ort_lite.ep.input_shapes import RESHAPE_INPUT
from ort_lite.model.bodies import walk_nodes
from ort_lite.providers import catalog
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.model.loader import LoadedModel

ORT_ENDING = ".ort"
_MAX_NAME = 255
_SUFFIX = "ExecutionProvider"
_PLACES = frozenset({"device", "device_type", "npu_platform", "platform"})
"""Provider options that choose a device; they are not repeated for another one."""
_LEFT = frozenset({"build_processes", "cache_dir", "profiling", "tuning_cache"})
"""Provider options of a machine or a run, which say nothing about the payload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCompile:
    """What a context model says of its compile; nothing of it is trusted.

    Attributes:
        sources: Provider options by execution provider, in the order in which sessions prefer
            those that are installed; others are left out.
        devices: By execution provider, the recorded device, e.g. "CPU: AMD EPYC"; "" if unknown.
        embed: Whether payloads are inside the model.
    """

    sources: Mapping[str, Mapping[str, str]]
    devices: Mapping[str, str]
    embed: bool


def read_recorded(loaded: LoadedModel) -> RecordedCompile:
    """What the EPContext nodes of a model record; malformed ones count for nothing."""
    options: dict[str, dict[str, str]] = {}
    devices: dict[str, str] = {}
    embed = False
    for raw in walk_nodes(loaded.model.graph):
        if not is_context_node(raw):
            continue
        try:
            node = EpContextNode.from_node(raw)
        except FormatError:
            continue
        embed |= node.embed_mode
        try:
            notes = read_notes(node)
        except FormatError:
            notes = None
        options.setdefault(node.source, dict(notes.options) if notes is not None else {})
        devices.setdefault(node.source, notes.identity.device if notes is not None else "")
    sources = {}
    for name, entry in catalog.entries().items():
        if name in options:
            try:
                known = entry.load().options.keys() - catalog.handle_options(name).keys() - _LEFT
            except EPFail:
                continue  # its distribution is broken
            sources[name] = {k: v for k, v in sorted(options[name].items()) if k in known}
    return RecordedCompile(sources=sources, devices=devices, embed=embed)


def describe_recompile(
    loaded: LoadedModel | None,
    onnx_model_filename: str,
    *,
    source: str,
    present: HardwareIdentity | None,
    option: str,
) -> str:
    """See `ort_lite.context.hints.recompile_hint`."""
    name = onnx_model_filename
    needs = f" with provider option {option}" if option else ""
    if not (name and _is_plain(name)):
        return (
            "compile the original ONNX model again on this machine"
            f"{needs} (this file does not record its name; see ort-lite compile --help)"
        )
    path = loaded.user_path if loaded is not None else None
    chosen = _Choice({}, "")
    embed = False
    if loaded is not None:
        recorded = read_recorded(loaded)
        embed = recorded.embed
        chosen = _choose(recorded, source, present)
    if option:
        key, _, value = option.partition("=")
        chosen.sources.setdefault(source, {})[key] = value
    package = package_of(path) if path is not None else None
    if package is not None and loaded is not None:
        return rebuild_text(package, loaded, chosen.sources, chosen.device)
    hidden = _list_unreadable(chosen.sources)
    also = (
        f" with the recorded provider options {', '.join(hidden)}, which ort-lite inspect shows"
        if hidden
        else ""
    )
    if path is not None and path.lower().endswith(ORT_ENDING):
        path, also = f"{path[: -len(ORT_ENDING)]}.onnx", f"{also}, then run ort-lite convert"
    model = _find_model(name, path)
    words = ["ort-lite compile", _model_and_output(model, path), "--force"]
    words += ["--embed"] if embed else []
    words += dimension_arguments(model, loaded) if loaded is not None else []
    words += _provider_arguments(chosen)
    return f"compile the model again on this machine{needs}{also}: {' '.join(words)}"


@dataclass(frozen=True, slots=True)
class _Choice:
    """Execution providers with their options, and a value for --device; "" for none."""

    sources: dict[str, dict[str, str]]
    device: str


def _choose(recorded: RecordedCompile, source: str, present: HardwareIdentity | None) -> _Choice:
    """The recorded providers and options; for another device, those that fit it.

    Of a device of another kind, only shapes stay: a precision of an NPU is none of a CPU.
    """
    sources = {name: dict(options) for name, options in recorded.sources.items()}
    before = recorded.devices.get(source, "")
    here = present.device if present is not None else ""
    if source not in sources or not before or not here or before == here:
        return _Choice(sources, "")
    was, kind = (text.partition(":")[0] for text in (before, here))
    options = sources[source]
    if was == kind:
        changed = not options.keys().isdisjoint(_PLACES)
        sources[source] = {k: v for k, v in options.items() if k not in _PLACES}
    else:
        changed = True
        sources[source] = {k: v for k, v in options.items() if k == RESHAPE_INPUT}
    is_first = next(iter(sources)) == source
    known = kind in ("CPU", "GPU", "NPU")
    return _Choice(sources, kind.lower() if changed and is_first and known else "")


def _provider_arguments(chosen: _Choice) -> list[str]:
    """-e, -O and --device."""
    names = {name: name.removesuffix(_SUFFIX).lower() for name in chosen.sources}
    words = [word for short in names.values() for word in ("-e", short)]
    for name, options in chosen.sources.items():
        prefix = f"{names[name]}." if len(names) > 1 else ""
        for key, value in options.items():
            if _is_readable(value):
                words += ["-O", quote_argument(f"{prefix}{key}={value}")]
    return [*words, "--device", chosen.device] if chosen.device else words


def _list_unreadable(sources: Mapping[str, Mapping[str, str]]) -> Sequence[str]:
    """Names of options whose values cannot be part of a command that a user reads."""
    return [key for options in sources.values() for key, value in options.items()
            if not _is_readable(value)]  # fmt: skip


def _is_readable(value: str) -> bool:
    return _is_plain(value) and is_quotable(value)


def _is_plain(text: str) -> bool:
    return text.isprintable() and len(text) <= _MAX_NAME and not text.startswith("-")


def _find_model(name: str, context_path: str | None) -> Path:
    """The original model: in the context model's folder, or by its name alone."""
    if context_path is not None and context_path.isprintable():
        context = Path(context_path)
        neighbour = context.parent / name
        if Path(name).name == name and neighbour != context and neighbour.is_file():
            return neighbour
    return Path(name)


def _model_and_output(model: Path, context_path: str | None) -> str:
    """Arguments that name the original model, and the context model unless it is the default."""
    argument = quote_argument(str(model))
    if context_path is None or not context_path.isprintable():
        return argument
    context = Path(context_path)
    if model.with_name(f"{model.stem}_ctx.onnx").absolute() == context.absolute():
        return argument
    return f"{argument} -o {quote_argument(context_path)}"
