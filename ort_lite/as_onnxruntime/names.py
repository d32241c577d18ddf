"""Every name of the stand-in's module onnxruntime, imported when it is asked for."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import ort_lite
from ort_lite.as_onnxruntime.installation import NAME, installed_package
from ort_lite.as_onnxruntime.settings import StandInSettings
from ort_lite.version import ONNXRUNTIME_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

BROUGHT = ("quantization", "tools", "transformers", "datasets")
"""Packages of onnxruntime that are Python alone and run on anybody's sessions."""

_VALUES: dict[str, Any] = {
    "version": ONNXRUNTIME_VERSION,
    "package_name": NAME,
    "cuda_version": "",
    "import_capi_exception": None,
}
_MODULES = {"capi": "capi", "onnxruntime_validation": "capi.onnxruntime_validation"}
_BUILD = ("get_version_string", "get_build_info")


def _session_class(settings: StandInSettings) -> type:
    if settings.report:
        from ort_lite.as_onnxruntime.report import reported_session_class  # noqa: PLC0415 - lazy: rare

        base: type = reported_session_class(settings.report)
    else:
        from ort_lite.as_onnxruntime.sessions import InferenceSession  # noqa: PLC0415 - lazy: rare

        base = InferenceSession
    return type("InferenceSession", (base,), {"settings": settings, "__module__": NAME})


def _compiler_class(settings: StandInSettings) -> type:
    from ort_lite.as_onnxruntime.compilers import compiler_class  # noqa: PLC0415 - lazy: rare

    return compiler_class(settings)


_CLASSES = {"InferenceSession": _session_class, "ModelCompiler": _compiler_class}
"""Functions that make the classes which depend on the settings."""


class StandInNames:
    """The names of the module onnxruntime, in a process with these settings.

    Attributes:
        settings: Decisions for all sessions.
        public: Names for `from onnxruntime import *`.
    """

    def __init__(self, settings: StandInSettings) -> None:
        self.settings = settings
        self.public = sorted(
            {*dir(ort_lite), *_BUILD, *_VALUES, *_MODULES} - {"as_onnxruntime", "__version__"}
        )
        self._made: dict[str, type] = {}

    @classmethod
    def of(cls, spec: ModuleSpec | None) -> Self:
        """For the module of `spec`: its settings, or those of the environment.

        Raises:
            ValueError: What the environment says cannot be read.
        """
        state = spec.loader_state if spec is not None else None
        settings = state if isinstance(state, StandInSettings) else StandInSettings.of()
        sys.meta_path.append(MissingPackages())
        return cls(settings)

    def installed_packages(self) -> list[str]:
        """Folder of an installed onnxruntime's other packages, if any."""
        package = installed_package()
        return [package] if package else []

    def get(self, name: str) -> Any:  # noqa: ANN401 - as various as the names
        """Import what `name` is (PEP 562).

        Raises:
            AttributeError: onnxruntime and ort_lite have no such name.
        """
        if name in _VALUES:
            return _VALUES[name]
        if name in _MODULES:
            return import_module(f"{NAME}.{_MODULES[name]}")
        if name in _CLASSES:
            return self._class(name)
        if name in _BUILD:
            return getattr(import_module("ort_lite.as_onnxruntime.build"), name)
        if name in self.public:
            return getattr(ort_lite, name)
        raise AttributeError(f"module '{NAME}' has no attribute '{name}'", name=name)

    def _class(self, name: str) -> type:
        """Made once: whoever asks again gets the same class."""
        if name not in self._made:
            self._made.setdefault(name, _CLASSES[name](self.settings))
        return self._made[name]


class MissingPackages:
    """The last finder: says what to install for a package that only onnxruntime has."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - importlib's protocol
        target: ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> None:
        """None, for what is nobody's (importlib's protocol).

        Raises:
            ModuleNotFoundError: It is one of those packages, and no onnxruntime is installed.
        """
        if fullname in {f"{NAME}.{package}" for package in BROUGHT} and not installed_package():
            raise ModuleNotFoundError(
                f"{fullname} is a package of onnxruntime's own Python code, which the stand-in "
                "takes from an installed onnxruntime, and none is installed: "
                f"pip install onnxruntime=={ONNXRUNTIME_VERSION}",
                name=fullname,
            )
