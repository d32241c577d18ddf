"""Settings of the person who runs a program; they override the program's own choices."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from ctx_formats.lean_dataclass import dataclass
from ort_lite.context.keys import CACHE_FOLDER_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROVIDERS_VARIABLE = "ORT_LITE_PROVIDERS"
REPORT_VARIABLE = "ORT_LITE_REPORT"
STDERR = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInSettings:
    """Decisions for all sessions of a process.

    Attributes:
        providers: Names and options, in order of preference; None if the program decides.
        cache: Folder of the model cache; "" where the program decides, or the environment,
            which every session of ort_lite looks at.
        report: File for the report at exit, "-" for stderr, "" for none.
    """

    providers: tuple[tuple[str, Mapping[str, str]], ...] | None = None
    cache: str = ""
    report: str = ""

    @classmethod
    def of(
        cls,
        *,
        providers: str | Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
        cache: str | os.PathLike[str] | None = None,
        report: str | os.PathLike[str] | None = None,
    ) -> Self:
        """These arguments, each of them only where the environment says nothing.

        Raises:
            ValueError: The providers cannot be read, or one is not installed.
        """
        text = os.environ.get(PROVIDERS_VARIABLE, "")
        chosen: tuple[tuple[str, Mapping[str, str]], ...] | None = None
        if text or providers is not None:
            from ort_lite.as_onnxruntime.provider_text import providers_of  # noqa: PLC0415 - lazy: rare

            origin = PROVIDERS_VARIABLE if text else "providers"
            chosen = providers_of(text or providers or (), origin)
        return cls(
            providers=chosen,
            cache="" if os.environ.get(CACHE_FOLDER_VARIABLE) else os.fspath(cache or ""),
            report=os.environ.get(REPORT_VARIABLE) or os.fspath(report or ""),
        )
