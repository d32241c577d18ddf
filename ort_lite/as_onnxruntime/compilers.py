"""The stand-in's ModelCompiler: ort_lite's, for the providers that the outside has chosen."""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar

import ort_lite.compiler

if TYPE_CHECKING:
    from ort_lite.as_onnxruntime.settings import StandInSettings
    from ort_lite.options import SessionOptions


class ModelCompiler(ort_lite.compiler.ModelCompiler):
    """ort_lite's, with providers from outside in place of those of its options."""

    settings: ClassVar[StandInSettings]

    def __init__(self, sess_options: SessionOptions, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as ort_lite's
        """Accept the same arguments as `ort_lite.ModelCompiler`."""
        chosen = self.settings.providers
        if chosen is not None:
            sess_options = sess_options.with_providers(chosen)
        super().__init__(sess_options, *args, **kwargs)


update_wrapper(ModelCompiler.__init__, ort_lite.compiler.ModelCompiler.__init__)  # its signature


def compiler_class(settings: StandInSettings) -> type[ModelCompiler]:
    """The class that the module onnxruntime of these settings has."""
    return type(
        "ModelCompiler", (ModelCompiler,), {"settings": settings, "__module__": "onnxruntime"}
    )
