"""Notes which execution providers ran no node of a model: the next start opens none of them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ort_lite.ep.interface import SupportsQuickIdentity
from ort_lite.model_cache.choice_file import name_choice_file
from ort_lite.model_cache.entry import key_of
from ort_lite.model_cache.identity import device_fields
from ort_lite.model_cache.kept_choice import ChoiceFile, choice_identity
from ort_lite.planning.unused_providers import explain_unused, list_used_providers
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.provider_choice import ProviderChoice

if TYPE_CHECKING:
    from ort_lite.model_cache.source_digest import DigestedSource
    from ort_lite.model_cache.store import CacheStore
    from ort_lite.start.load_request import LoadRequest
    from ort_lite.start.prepare_model import PreparedModel


def make_choice(model: PreparedModel, request: LoadRequest) -> ProviderChoice | None:
    """The EPs that `model` runs on; None where it is all, or where a device has failed."""
    used = list_used_providers(model.prepared) | {DEFAULT_PROVIDER}
    unused = [ep for ep in request.eps if ep.name not in used]
    plan = request.choice
    if not (unused or plan) or not all(ep.is_settled() for ep in unused):
        return None
    identity: dict[str, str] = {}
    for ep in unused:
        device = ep.quick_identity if isinstance(ep, SupportsQuickIdentity) else ep.identity
        identity |= device_fields(ep.name, device)
    options = {one.name: one.options for one in request.requested}
    return ProviderChoice(
        names=tuple(ep.name for ep in request.eps) if plan is None else plan.names,
        opened={ep.name: options[ep.name] for ep in request.eps if ep.name in used},
        identity=identity,
        notes=(
            *(plan.notes if plan is not None else ()),
            *explain_unused(model.prepared, [ep.name for ep in unused]),
        ),
    )


def keep_choice(
    store: CacheStore,
    choice: ProviderChoice,
    request: LoadRequest,
    digested: DigestedSource,
    source: object,
) -> bool:
    """Keep a choice for the next start of the same request; a cache that is read-only does not.

    Args:
        store: The cache.
        choice: To be kept.
        request: The one that it answers.
        digested: The model's digest and files.
        source: The model as the session was given it: path or bytes.

    Returns:
        Whether it is kept.
    """
    name = name_choice_file(source)
    identity = choice_identity(
        *(digested.digest, request.options, request.requested, request.disabled, store.secret),
        inputs=request.fixed_inputs,
    )
    if not name or identity is None:
        return False
    model = digested.files[0].path if digested.files else ""
    with suppress(OSError):
        store.prepare()
        ChoiceFile(store.choices / name, store.secret).keep(key_of(identity), choice, model)
        return True
    return False
