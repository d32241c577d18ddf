"""The model, options and providers with which a session starts from a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.keys import CACHE_KEY, TRUST_KEY
from ort_lite.packages.model_package import (
    COMPONENT_KEY,
    ModelPackage,
    NoSuitableVariant,
    PackageSelection,
)
from ort_lite.packages.variant_notes import SOURCE
from ort_lite.packages.variant_verdict import FALLBACK_KEY, VariantVerdict, with_entries
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.provider_list import ProviderRequest, choose_requests
from ort_lite.start.load_request import BACKGROUND_KEY
from ort_lite.status import InvalidArgument

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from ort_lite.options import SessionOptions

REFUSE, COMPILE, BACKGROUND, CPU = "refuse", "compile", "background", "cpu"
FALLBACKS = (REFUSE, COMPILE, BACKGROUND, CPU)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageStart:
    """Arguments of the session that a package's variant is loaded with.

    Attributes:
        model_path: Of the variant.
        options: The user's, with the variant's entries.
        named: The providers to open; empty for all that are installed.
        notes: For `explain()`.
    """

    model_path: str
    options: SessionOptions
    named: tuple[ProviderRequest, ...]
    notes: tuple[str, ...]


def start_from_package(
    source: ModelPackage | str | os.PathLike[str],
    options: SessionOptions,
    named: Sequence[ProviderRequest],
) -> PackageStart:
    """Choose a variant for a session, or the source model where the options allow it.

    Raises:
        NoSuitableVariant: No variant may run here, and `session.package_fallback` is refuse, or
            the package has no source model.
        OrtLiteError: The package cannot be read.
    """
    mode = options.config.get(FALLBACK_KEY, REFUSE)
    if mode not in FALLBACKS:
        expected = ", ".join(FALLBACKS)
        raise InvalidArgument(f"{FALLBACK_KEY} is '{mode[:40]}', expected one of {expected}")
    if isinstance(source, ModelPackage):
        package = source
    else:
        component = options.config.get(COMPONENT_KEY, "")
        package = ModelPackage(source, component, config=options.config)
    if TRUST_KEY in options.config:
        from ort_lite.packages.package_trust import require_signed_manifest  # noqa: PLC0415 - lazy: rare

        require_signed_manifest(package.folder, options.config[TRUST_KEY])
    chosen_options = options.snapshot()
    requests = choose_requests(chosen_options, named, package._no_metadata)  # noqa: SLF001 - the same package
    selection = package.select_for(options, requests)
    if selection.chosen is not None:
        return _start_variant(selection.chosen, selection, chosen_options)
    source_model = _choose_source(mode, selection)
    package.fetch_variant(source_model.variant)
    return _fall_back(mode, source_model, selection, chosen_options, named)


def _start_variant(
    verdict: VariantVerdict, selection: PackageSelection, options: SessionOptions
) -> PackageStart:
    names = dict.fromkeys((verdict.ep, *(node.source for node in verdict.nodes)))
    options_of = {verdict.ep: verdict.provider_options}
    named = tuple(ProviderRequest(n, options_of.get(n, {}), explicit=True) for n in names)
    return PackageStart(
        model_path=verdict.model_path,
        options=with_entries(options, verdict.session_options),
        named=named,
        notes=selection.lines(),
    )


def _choose_source(mode: str, selection: PackageSelection) -> VariantVerdict:
    """The source model, where the options allow it."""
    source = next((v for v in selection.verdicts if v.role == SOURCE and v.reason is None), None)
    if source is None:
        raise NoSuitableVariant(selection, "build the package for this machine as well")
    if mode == REFUSE:
        raise NoSuitableVariant(
            selection,
            f"set {FALLBACK_KEY} to compile, background or cpu, which use the package's source "
            "model, or build the package for this machine as well",
        )
    return source


def _fall_back(
    mode: str,
    source: VariantVerdict,
    selection: PackageSelection,
    options: SessionOptions,
    named: Sequence[ProviderRequest],
) -> PackageStart:
    options = with_entries(options, source.session_options)
    entries = {} if mode == CPU else {CACHE_KEY: "1"}
    if mode == BACKGROUND:
        entries[BACKGROUND_KEY] = "1"
    if mode == CPU:
        named = (ProviderRequest(DEFAULT_PROVIDER, {}, explicit=True),)
    does = {
        COMPILE: "the source model is compiled here",
        BACKGROUND: "the source model is compiled in the background",
        CPU: "the source model runs on the CPU EP",
    }
    note = f"{selection.lines()[0]} fits; {does[mode]} ({FALLBACK_KEY}={mode})"
    return PackageStart(
        model_path=source.model_path,
        options=with_entries(options, entries),
        named=tuple(named),
        notes=(note, *selection.lines()[1:]),
    )
