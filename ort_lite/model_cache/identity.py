"""All that a compiled model depends on, as named texts: equal texts, same compiled form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.identity import FieldDifference
from ort_lite.context.keys import (
    CACHE_KEY,
    CACHE_SECRET_KEY,
    CACHE_SHAPES_KEY,
    COMPILE_LATER_KEY,
    CONTEXT_FALLBACK_KEY,
    CONTEXT_SOURCE_KEY,
    EMBED_KEY,
    ENABLE_KEY,
    FOLDER_KEY,
    MAP_KEY,
    PASSPHRASE_KEY,
    PATH_KEY,
    SIGN_KEY,
    SPECIALIZE_KEY,
    TRUST_KEY,
)
from ort_lite.ep.interface import SupportsQuickIdentity
from ort_lite.model_cache import settings
from ort_lite.providers import catalog
from ort_lite.start.placement_option import PLACEMENT_KEY, choose_placement
from ort_lite.version import PRODUCER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctx_formats.identity import HardwareIdentity
    from ort_lite.model.fixed_inputs import FixedInputs
    from ort_lite.model_cache.secret import CacheSecret
    from ort_lite.options import SessionOptions
    from ort_lite.start.load_request import LoadRequest

FORMAT = "1"
"""Goes up when the same identity would be compiled to something else by design."""

SOURCE = "model"
INPUTS = "inputs"
"""Of an entry for one set of input shapes."""

NEUTRAL = frozenset(
    {
        CACHE_KEY,
        CACHE_SECRET_KEY,
        CONTEXT_FALLBACK_KEY,
        CONTEXT_SOURCE_KEY,
        SIGN_KEY,
        SPECIALIZE_KEY,
        COMPILE_LATER_KEY,
        PASSPHRASE_KEY,
        TRUST_KEY,
        FOLDER_KEY,
        settings.QUOTA_KEY,
        CACHE_SHAPES_KEY,
        ENABLE_KEY,
        PATH_KEY,
        EMBED_KEY,
        "session.disable_cpu_ep_fallback",
        "session.disable_model_compile",
        "session.ep_compile_in_background",
        MAP_KEY,
        PLACEMENT_KEY,
        "session.ep_context_probe",
        "session.fail_on_suboptimal_compiled_model",
        "session.inter_op.allow_spinning",
        "session.intra_op.allow_spinning",
        "session.model_external_initializers_file_folder_path",
        "session.record_ep_graph_assignment_info",
        "session.require_payload_digest",
    }
)
"""Entries that do not change what is compiled; every other one, known or not, is taken to."""


def cache_identity(
    source: str, request: LoadRequest, secret: CacheSecret | None = None
) -> dict[str, str]:
    """The identity of a plain model, given its digest, and of what opens it.

    An EP that an earlier start found to run nothing counts as what it was then.
    """
    choice = request.choice
    names = [ep.name for ep in request.eps] if choice is None else choice.names
    provider_options = {name: request.provider_options.get(name, {}) for name in names}
    identity = identity_before_devices(
        *(source, request.options, provider_options, request.disabled, secret),
        inputs=request.fixed_inputs,
    )
    if choice is not None:
        identity |= choice.identity
    for ep in request.eps:
        present = ep.quick_identity if isinstance(ep, SupportsQuickIdentity) else ep.identity
        identity |= device_fields(ep.name, present)
    return identity


def device_fields(name: str, present: HardwareIdentity) -> dict[str, str]:
    """The fields of one EP's device in an identity."""
    return {f"{name}.{key}": value for key, value in present.to_mapping().items()}


def identity_before_devices(
    source: str,
    options: SessionOptions,
    providers: Mapping[str, Mapping[str, str]],
    disabled: Iterable[str],
    secret: CacheSecret | None = None,
    *,
    inputs: FixedInputs | None = None,
) -> dict[str, str]:
    """The part of an identity that is known before an EP has opened its device.

    Args:
        source: The model's digest.
        options: The session's.
        providers: Names with options, in order of preference.
        disabled: Names of transformations that are not to run.
        secret: Of the cache; entries made with it are apart from others.
        inputs: Shapes and values that the model is made ready for; None for all.
    """
    identity = {
        "cache_format": FORMAT,
        "producer": PRODUCER,
        SOURCE: source,
        "providers": ",".join(providers),
        "graph_optimization_level": str(int(options.graph_optimization_level)),
        "disabled_optimizers": ",".join(sorted(disabled)),
        "placement": choose_placement(options),
    }
    if secret is not None:
        identity["cache_key"] = secret.name
    if inputs is not None:
        identity[INPUTS] = str(inputs)
    identity |= {f"config.{k}": v for k, v in options.config.items() if k not in NEUTRAL}
    identity |= {f"dimension.{k}": str(v) for k, v in options.free_dimensions.items()}
    identity |= {f"denotation.{k}": str(v) for k, v in options.denoted_dimensions.items()}
    installed = catalog.entries()
    for name, chosen in providers.items():
        entry = installed.get(name)
        identity[f"{name}.version"] = (
            f"{entry.distribution} {entry.version}" if entry is not None else ""
        )
        handles = catalog.handle_options(name) if chosen else {}
        identity |= {
            f"{name}.option.{key}": value for key, value in chosen.items() if key not in handles
        }
    return identity


def differences(
    recorded: Mapping[str, str], present: Mapping[str, str]
) -> tuple[FieldDifference, ...]:
    """Fields in which an entry's identity differs from the one looked for; "" is absent."""
    return tuple(
        FieldDifference(name, recorded.get(name, ""), present.get(name, ""))
        for name in sorted({*recorded, *present})
        if recorded.get(name, "") != present.get(name, "")
    )
