"""The stand-in: `import onnxruntime` gives ort_lite. This module is callable.

    python -m ort_lite.as_onnxruntime [options] script.py ...

starts a program with it, and `ort_lite.as_onnxruntime()` at the top of a program has the same
effect from there on: see `as_onnxruntime` and docs/as_onnxruntime.md.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence


def as_onnxruntime(
    *,
    providers: str | Sequence[str | tuple[str, Mapping[str, str]]] | None = None,
    cache: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
) -> None:
    """Let every `import onnxruntime` of this process, and of its workers, give ort_lite.

    A later call replaces the settings only as long as nothing has imported onnxruntime.

    Args:
        providers: Execution providers of all sessions, whatever the program asks for: as
            `ORT_LITE_PROVIDERS` spells them, or as a session gets them. None leaves the choice
            to the program.
        cache: Folder of the model cache, on for all sessions; None leaves it to the program and
            `ORT_LITE_CACHE_DIR`.
        report: File that gets a report in JSON when the process ends, "-" for text on stderr;
            None or "" for no report.

    Variables of the environment (`ORT_LITE_PROVIDERS`, `ORT_LITE_CACHE_DIR`, `ORT_LITE_REPORT`)
    win over these arguments: they are the choice of the person who runs the program.

    Raises:
        ImportError: onnxruntime itself is imported already, or the stand-in with other settings.
        ValueError: `providers` or ORT_LITE_PROVIDERS cannot be read, or names an execution
            provider that is not installed.
    """
    from ort_lite.as_onnxruntime.installation import install  # noqa: PLC0415 - lazy: rare
    from ort_lite.as_onnxruntime.settings import StandInSettings  # noqa: PLC0415 - lazy: rare

    install(StandInSettings.of(providers=providers, cache=cache, report=report))


class _Callable(ModuleType):
    """A module that is called as the function which it holds."""

    __call__ = staticmethod(as_onnxruntime)


sys.modules[__name__].__class__ = _Callable
