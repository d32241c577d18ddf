"""Every kernel of the CPU EP, which itself imports them operator by operator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from eps.cpu.kernels.families import FAMILIES

if TYPE_CHECKING:
    from ort_lite.ep.kernels import KernelDef


def all_kernels() -> list[KernelDef]:
    """Module by module."""
    modules = [import_module(f"eps.cpu.kernels.{name}") for name in FAMILIES]
    return [definition for module in modules for definition in module.KERNELS]
