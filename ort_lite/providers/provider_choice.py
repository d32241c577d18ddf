"""Which execution providers a session opens for a model, where an earlier start found that out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from ort_lite.providers.catalog import DEFAULT_PROVIDER
from ort_lite.providers.provider_list import ProviderRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChoice:
    """The execution providers of a session of which some need not be opened.

    Attributes:
        names: Of all that the session has, in order of preference, the default EP last.
        opened: Options by name of those that are opened.
        identity: Fields of the others' devices in the identity of the model's cache entry.
        notes: Why the others are not opened, for `explain()`.
    """

    names: tuple[str, ...]
    opened: Mapping[str, Mapping[str, str]]
    identity: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def is_default_only(self) -> bool:
        """Whether the default EP runs everything, so that nothing is compiled."""
        return list(self.opened) == [DEFAULT_PROVIDER]

    def pick(self, requests: Sequence[ProviderRequest]) -> tuple[ProviderRequest, ...]:
        """The requests for those that are opened; a request that is missing is added."""
        known = {request.name: request for request in requests}
        return tuple(
            ProviderRequest(
                name, options, explicit=known[name].explicit if name in known else False
            )
            for name, options in self.opened.items()
        )
