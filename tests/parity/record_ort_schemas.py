"""Writes ort_schemas.json, of the installed onnxruntime, for ort_lite.model.ort_schemas."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import onnx
import onnx.defs
import onnx.helper
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as binding

from ort_lite.kernel_type_str import places_of_schema
from ort_lite.model.ort_schemas import CONTRIB, FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OPEN_END = (1 << 31) - 1
_VARIADIC = 2


class _Formal:
    """A formal parameter with onnx's names for its attributes."""

    def __init__(self, parameter: Any) -> None:
        self.name: str = parameter.name
        self.type_str: str = parameter.typeStr


def main() -> None:
    """Write the table."""
    rows = {
        schema.name: _row(schema)
        for schema in sorted(binding.get_all_operator_schema(), key=lambda s: s.name)
        if schema.domain == CONTRIB
    }
    kernels = [k for k in binding.get_all_opkernel_def() if k.provider == "CPUExecutionProvider"]
    table = {
        "onnxruntime": onnxruntime.__version__,
        "inlined": _list_inlined(kernels),
        "half": _list_half(kernels),
        "operators": rows,
    }
    lines = ",\n".join(f"{json.dumps(k)}: {_table_json(v)}" for k, v in table.items())
    FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    sys.stdout.write(f"{FILE}: {len(rows)} operators of onnxruntime {onnxruntime.__version__}\n")


def _table_json(value: object) -> str:
    if not isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    lines = (f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in value.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _row(schema: Any) -> list[Any]:
    """As `ort_schemas._contrib_schema` reads it."""
    names = frozenset(c.type_param_str for c in schema.type_constraints)
    inputs, outputs = ([_Formal(p) for p in some] for some in (schema.inputs, schema.outputs))
    places = places_of_schema(inputs, outputs, names)
    signed = {
        name: [place.index if place.is_input else -1 - place.index for place in listed]
        for name, listed in places.items()
    }
    variadic = bool(schema.inputs) and schema.inputs[-1].option.value == _VARIADIC
    defaults = {
        name: _default(attribute._default_value)
        for name, attribute in sorted(schema.attributes.items())
        if attribute._default_value
    }
    return [schema.since_version, signed, len(schema.inputs), variadic, defaults]


def _default(encoded: bytes) -> list[Any]:
    proto = onnx.AttributeProto.FromString(encoded)
    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        value = value.decode()
    elif not isinstance(value, int | float):
        value = [item.decode() if isinstance(item, bytes) else item for item in value]
    return [int(proto.type), value]


def _list_half(kernels: Iterable[Any]) -> list[list[str | int]]:
    """Kernels with float16 among their types: domain, operator, first and last version."""
    return sorted(
        [kernel.domain, kernel.op_name, *kernel.version_range]
        for kernel in kernels
        if any("tensor(float16)" in types for types in kernel.type_constraints.values())
    )


def _list_inlined(kernels: Iterable[Any]) -> list[Sequence[str | int]]:
    """Operators with a function in their schema and no kernel for that version."""
    ranges: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for kernel in kernels:
        ranges.setdefault((kernel.domain, kernel.op_name), []).append(kernel.version_range)
    inlined = []
    for schema in onnx.defs.get_all_schemas_with_history():
        version = schema.since_version
        # onnx's stub lacks both properties.
        fixed = schema.has_function  # type: ignore[attr-defined]
        depending = schema.has_context_dependent_function  # type: ignore[attr-defined]
        if not (fixed or depending):
            continue
        served = any(
            start == version or (end != _OPEN_END and start <= version <= end)
            for start, end in ranges.get((schema.domain, schema.name), ())
        )
        if not served:
            inlined.append((schema.domain, schema.name, version))
    return [list(op) for op in sorted(inlined)]


if __name__ == "__main__":
    main()
