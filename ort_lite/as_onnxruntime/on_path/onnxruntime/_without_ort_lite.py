"""Behaviour in an environment with the stand-in's folder on its path and without ort_lite."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

NAME = "onnxruntime"
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - as installation.py


def import_other() -> None:
    """Put the onnxruntime of this environment into sys.modules, in the stand-in's place.

    Raises:
        ModuleNotFoundError: It has none.
    """
    path = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]  # noqa: PTH100 - as above
    spec = PathFinder.find_spec(NAME, path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(
            f"No module named '{NAME}'; {FOLDER} is on the path and gives ort_lite in its place, "
            f"which {sys.executable} does not have: pip install ort-lite",
            name=NAME,
        )
    del sys.modules[f"{NAME}._without_ort_lite"]
    module = module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
