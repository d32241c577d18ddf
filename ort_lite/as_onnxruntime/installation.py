"""Installs the stand-in: a folder on sys.path, and a finder before all others.

The folder `on_path` has a package onnxruntime, which is the stand-in, and the metadata of a
distribution of that name. On sys.path it also serves importlib.metadata and, since multiprocessing
hands sys.path on, worker processes; on PYTHONPATH it serves every Python that is started.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from ort_lite.as_onnxruntime.settings import StandInSettings

NAME = "onnxruntime"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "on_path")  # noqa: PTH100, PTH118, PTH120 - pathlib takes longer to import than the rest
MARK = "__ort_lite__"
"""An attribute of the module onnxruntime that only the stand-in has: its settings."""


class StandInFinder:
    """Finds the stand-in, wherever on sys.path another onnxruntime may be.

    Attributes:
        settings: Handed to the module as its spec's `loader_state`.
    """

    def __init__(self, settings: StandInSettings) -> None:
        self.settings = settings

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> ModuleSpec | None:
        """The stand-in's spec for "onnxruntime", None for all others (importlib's protocol)."""
        if fullname != NAME:
            return None
        # By hand, for importlib.util takes longer to import than the stand-in.
        path = os.path.join(FOLDER, NAME, "__init__.py")  # noqa: PTH118 - as above
        loader = SourceFileLoader(NAME, path)
        spec = ModuleSpec(NAME, loader, origin=path, loader_state=self.settings, is_package=True)
        spec.submodule_search_locations = [os.path.dirname(path)]  # noqa: PTH120 - as above
        spec.has_location = True
        return spec


def install(settings: StandInSettings) -> None:
    """Let `import onnxruntime` give the stand-in.

    Raises:
        ImportError: Another onnxruntime is there, or the stand-in with other settings.
    """
    present = sys.modules.get(NAME)
    calls_us = present is not None and _is_substitute(present)
    if present is not None and not calls_us:
        _check(present, settings)
        return
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, StandInFinder)]
    sys.meta_path.insert(0, StandInFinder(settings))
    if FOLDER not in sys.path:
        # After the program's own folder, which some programs take away again by its place.
        sys.path.insert(1, FOLDER)
    if calls_us:
        # importlib gives whoever imported it what is in sys.modules when it has ended.
        del sys.modules[NAME]
        import_module(NAME)


def installed_package() -> str:
    """Folder of the installed package onnxruntime; "" if it is not installed.

    Found without running any of its code.
    """
    for folder in sys.path:
        if os.path.abspath(folder) != FOLDER:  # noqa: PTH100 - as above
            spec = PathFinder.find_spec(NAME, [folder])
            folders = spec.submodule_search_locations if spec is not None else None
            # Not a folder without __init__.py, nor a module that calls as_onnxruntime.
            if spec is not None and spec.origin and folders and os.path.isdir(f"{folders[0]}/capi"):  # noqa: PTH112 - as above
                return folders[0]
    return ""


def _is_substitute(module: ModuleType) -> bool:
    """Whether it is a module of somebody's own named onnxruntime that calls as_onnxruntime.

    It is being imported then, and has imported nothing of onnxruntime.
    """
    importing = getattr(getattr(module, "__spec__", None), "_initializing", False)
    return importing and not any(name.startswith(f"{NAME}.") for name in sys.modules)


def _check(present: ModuleType, settings: StandInSettings) -> None:
    if not hasattr(present, MARK):
        version = getattr(present, "__version__", "")
        where = getattr(present, "__file__", None)
        raise ImportError(
            f"onnxruntime {version} is imported already, from {where}: call "
            "ort_lite.as_onnxruntime() before anything imports onnxruntime, or start the program "
            "with python -m ort_lite.as_onnxruntime",
            name=NAME,
        )
    if getattr(present, MARK) != settings:
        raise ImportError(
            "the stand-in is imported already, with other settings: "
            f"{getattr(present, MARK)}; call ort_lite.as_onnxruntime() before that",
            name=NAME,
        )
