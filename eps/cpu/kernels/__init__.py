"""The kernels of the CPU execution provider, a module for each family of operators.

A module holds no state; it lists its kernels in a tuple `KERNELS` of KernelDef. What is in it,
`families.py` says, so that a model imports the modules of its own operators alone.
"""

from __future__ import annotations

import importlib
from threading import Lock
from typing import TYPE_CHECKING

from eps.cpu.kernels.families import FAMILIES
from ort_lite.ep import KernelRegistry

if TYPE_CHECKING:
    from ort_lite.ep import KernelCall, KernelDef, KernelTypeStrResolver, Match


def _kernels_in(name: str) -> tuple[KernelDef, ...]:
    kernels: tuple[KernelDef, ...] = importlib.import_module(f"eps.cpu.kernels.{name}").KERNELS
    return kernels


class OwnKernels(KernelRegistry):
    """All of these, each operator registered when it is first requested, in any thread."""

    def __init__(self, provider: str) -> None:
        """Look the modules of each operator up."""
        super().__init__(provider)
        self._modules: dict[tuple[str, str], list[str]] = {}
        for name, operators in FAMILIES.items():
            for domain, listed in operators.items():
                for op_type in listed.split():
                    self._modules.setdefault((domain, op_type), []).append(name)
        self._registered: set[tuple[str, str]] = set()
        self._lock = Lock()

    def operators(self) -> tuple[tuple[str, str], ...]:
        """(domain, operator) of every kernel; imports none."""
        return tuple(sorted(self._modules))

    def definitions(self) -> tuple[KernelDef, ...]:
        """See KernelRegistry; imports every module."""
        for domain, op_type in self._modules:
            self._import(domain, op_type)
        return super().definitions()

    def since_versions(self, domain: str, op_type: str) -> tuple[int, ...]:
        """Versions at which kernels of an operator begin; imports its modules."""
        self._import(domain, op_type)
        return super().since_versions(domain, op_type)

    def search(self, call: KernelCall, resolver: KernelTypeStrResolver) -> Match:
        """The kernels that may take a node; imports the modules of its operator."""
        self._import(call.op.domain, call.op.op_type)
        return super().search(call, resolver)

    def _import(self, domain: str, op_type: str) -> None:
        operator = (domain, op_type)
        if operator in self._registered:
            return
        with self._lock:
            if operator in self._registered:
                return
            for name in self._modules.get(operator, ()):
                for definition in _kernels_in(name):
                    if (definition.domain, definition.op_type) == operator:
                        self.register(definition)
            self._registered.add(operator)
