"""The stand-in's session and compiler: ort_lite's, with what the outside has decided for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import ort_lite.session
from ort_lite.providers.catalog import DEFAULT_PROVIDER, require_present

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from ort_lite.as_onnxruntime.settings import StandInSettings
    from ort_lite.options import SessionOptions


class InferenceSession(ort_lite.session.InferenceSession):
    """ort_lite's, which by default runs on the CPU EP alone, as onnxruntime's on a CPU does."""

    settings: ClassVar[StandInSettings]
    _capi = "onnxruntime.capi"

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | bytearray | memoryview,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
        **kwargs: Any,  # noqa: ANN401 - as various as those of ort_lite's
    ) -> None:
        """As ort_lite's, on the providers from outside, where there are any."""
        chosen = self._choose_providers(sess_options, providers, provider_options)
        for name, _ in self.settings.providers or ():
            require_present(name)  # a chosen execution provider that is missing is an error
            kwargs["enable_fallback"] = 0
        super().__init__(
            path_or_bytes, decide_options(self.settings, sess_options), *chosen, **kwargs
        )

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        provider_options: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        """As ort_lite's; providers from outside stay."""
        super().set_providers(
            *self._choose_providers(self._initial_options, providers, provider_options)
        )

    def _choose_providers(
        self,
        options: SessionOptions | None,
        providers: Sequence[str | tuple[str, Mapping[str, str]]] | None,
        provider_options: Sequence[Mapping[str, str]] | None,
    ) -> tuple[
        Sequence[str | tuple[str, Mapping[str, str]]] | None, Sequence[Mapping[str, str]] | None
    ]:
        """Arguments `providers` and `provider_options` of ort_lite's session."""
        if self.settings.providers is not None:
            return self.settings.providers, None
        named = bool(providers) or (
            options is not None and (options.has_providers() or options.selects_devices)
        )
        return (providers, provider_options) if named else ([DEFAULT_PROVIDER], None)


def decide_options(
    settings: StandInSettings, options: SessionOptions | None
) -> SessionOptions | None:
    """`options` with the cache of the call; the same object where it names none."""
    if not settings.cache:
        return options
    from ort_lite.context.keys import CACHE_KEY, FOLDER_KEY  # noqa: PLC0415 - lazy: reload
    from ort_lite.options import SessionOptions  # noqa: PLC0415 - lazy: reload

    decided_options = options.snapshot() if options is not None else SessionOptions()
    decided_options.add_session_config_entry(CACHE_KEY, "1")
    decided_options.add_session_config_entry(FOLDER_KEY, settings.cache)
    return decided_options
