"""Facts from operator schemas: versions, attribute defaults, names of types."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass, field
from eps.cpu.schema_table import load_table
from ort_lite.ep import ArgPlace, OpIdentifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.cpu.schema_table import Schema
    from ort_lite.ep import KernelRegistry

_NO_SCHEMA_FORMALS = 64
"""An operator without a schema has formal parameters input0, output0, ... up to this many."""

PLACES_BY_POSITION: Mapping[str, tuple[ArgPlace, ...]] = {
    f"{kind}{i}": (ArgPlace(kind == "input", i),)
    for kind in ("input", "output")
    for i in range(_NO_SCHEMA_FORMALS)
}
"""The type names of an operator without a schema."""

MAX_OPSET = 1 << 31
"""onnx takes 32 bits."""

MACHINE_LAYOUT = "com.microsoft.nchwc"
"""Blocks of as many channels as fit a vector of the CPU, which the model does not say."""


@dataclass(slots=True)
class Schemas:
    """Schemas as onnx publishes them, looked at once per operator version.

    Operators that onnx does not know (com.microsoft, a user's own) have the versions at which
    kernels for them start, and no defaults.
    """

    registries: tuple[KernelRegistry, ...]
    _versions: dict[tuple[str, str, int], int | None] = field(default_factory=dict)
    _defaults: dict[OpIdentifier, Mapping[str, Any]] = field(default_factory=dict)

    def since_version(self, domain: str, op_type: str, opset: int) -> int | None:
        """Version of the operator that a model importing `opset` means; None if unknown."""
        key = (domain, op_type, opset)
        if key not in self._versions:
            schema = find_schema(domain, op_type, opset)
            starts = [
                version
                for registry in self.registries
                for version in registry.since_versions(domain, op_type)
                if version <= opset
            ]
            self._versions[key] = schema.since_version if schema else max(starts, default=None)
        return self._versions[key]

    def defaults(self, op: OpIdentifier) -> Mapping[str, Any]:
        """Attribute defaults of `op`, as `KernelInfo.attr` gives attributes."""
        if op not in self._defaults:
            schema = find_schema(op.domain, op.op_type, op.since_version)
            self._defaults[op] = schema.defaults if schema else {}
        return self._defaults[op]

    def has_body(self, op: OpIdentifier) -> bool:
        """Whether the schema of `op` gives a function, fixed or depending on the node."""
        schema = find_schema(op.domain, op.op_type, op.since_version)
        return schema is not None and schema.has_body

    def places(self, op: OpIdentifier) -> Mapping[str, tuple[ArgPlace, ...]]:
        """The types of each type constraint of `op`."""
        schema = find_schema(op.domain, op.op_type, op.since_version)
        if schema is None:
            return PLACES_BY_POSITION
        return schema.places

    def explain_unknown(self, domain: str, op_type: str, opset: int) -> str:
        """Why nothing is known of an operator, with the nearest that is."""
        what = f"unknown operator {op_type} of domain {domain or 'ai.onnx'} in opset {opset}"
        if domain == MACHINE_LAYOUT:
            return (
                f"{what}; ONNX Runtime lays tensors out for the CPU that it optimised the model "
                "on: save the model with graph_optimization_level ORT_ENABLE_EXTENDED"
            )
        known = self._known_versions()
        later = [v for d, name, v in known if (d, name) == (domain, op_type)]
        if later:
            return f"{what}; it appears in opset {min(later)}"
        elsewhere = sorted({d or "ai.onnx" for d, name, _ in known if name == op_type})
        if elsewhere:
            return f"{what}; domain {', '.join(elsewhere)} has an operator of that name"
        import difflib  # noqa: PLC0415 - lazy: rare

        names = sorted({name for _, name, _ in known})
        near = difflib.get_close_matches(op_type, names, n=1)
        return f"{what}; nearest known: {near[0]}" if near else what

    def _known_versions(self) -> set[tuple[str, str, int]]:
        """(domain, operator, version) of every schema and kernel."""
        versions = load_table().list_versions()
        for registry in self.registries:
            for domain, op_type in registry.operators():
                versions.update(
                    (domain, op_type, v) for v in registry.since_versions(domain, op_type)
                )
        return versions


def find_schema(domain: str, op_type: str, opset: int) -> Schema | None:
    """The newest schema not newer than `opset`; None if neither the table nor onnx has one."""
    if not 0 < opset < MAX_OPSET:
        return None  # a hostile model's
    table = load_table()
    newest = table.newest.get(domain)
    if newest is not None and opset <= newest:
        return table.find(domain, op_type, opset)
    if newest is None and "onnx.defs" not in sys.modules:
        return None  # a program that registers schemas of its own has imported it
    from eps.cpu.onnx_schemas import schema_from_onnx  # noqa: PLC0415 - lazy: rare

    return schema_from_onnx(domain, op_type, opset)
