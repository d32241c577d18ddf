"""Schemas as the installed onnx has them; `python -m eps.cpu.onnx_schemas` writes the table."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import onnx
import onnx.defs
import onnx.helper
import onnx.numpy_helper

from eps.cpu.schema_table import FILE, Schema, SchemaTable, row_of
from ort_lite.ep import places_of_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def schema_from_onnx(domain: str, op_type: str, opset: int) -> Schema | None:
    """The newest schema not newer than `opset`; None if onnx has none."""
    try:
        op_schema = onnx.defs.get_schema(op_type, max_inclusive_version=opset, domain=domain)
    except onnx.defs.SchemaError:
        return None
    return _schema(op_schema)


def table_from_onnx() -> SchemaTable:
    """Every schema that onnx knows, with the newest opsets that its release publishes."""
    release: Sequence[Any] = onnx.helper.VERSION_TABLE[-1]
    main, ml, other = release[2:]
    rows = sorted((s.domain, s.name, s.since_version, s) for s in _history())
    operators: dict[str, dict[str, list[Any]]] = {}
    for domain, name, _, op_schema in rows:
        operators.setdefault(domain, {}).setdefault(name, []).append(row_of(_schema(op_schema)))
    newest = {domain: {"": main, "ai.onnx.ml": ml}.get(domain, other) for domain in operators}
    return SchemaTable(newest, operators)


def table_text(table: SchemaTable) -> str:
    """The table's file: JSON with a line for each operator."""
    domains = (
        f"{json.dumps(domain)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {_compact_json(rows)}" for name, rows in named.items())
        + "\n}"
        for domain, named in table.operators.items()
    )
    inside = ",\n".join(domains)
    return f'{{"newest": {_compact_json(table.newest)}, "operators": {{\n{inside}\n}}}}\n'


def _compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _history() -> Iterable[onnx.defs.OpSchema]:
    op_schemas: Iterable[onnx.defs.OpSchema] = onnx.defs.get_all_schemas_with_history()
    return op_schemas


def _schema(op_schema: onnx.defs.OpSchema) -> Schema:
    names = frozenset(c.type_param_str for c in op_schema.type_constraints)
    # onnx's stub lacks both properties.
    fixed = op_schema.has_function  # type: ignore[attr-defined]
    depending = op_schema.has_context_dependent_function  # type: ignore[attr-defined]
    return Schema(
        since_version=op_schema.since_version,
        places=places_of_schema(op_schema.inputs, op_schema.outputs, names),
        defaults={
            name: _plain(attribute.default_value)
            for name, attribute in op_schema.attributes.items()
            if attribute.default_value.type
        },
        has_body=bool(fixed or depending),
    )


def _plain(default: onnx.AttributeProto) -> Any:  # noqa: ANN401 - as KernelInfo.attr
    value = onnx.helper.get_attribute_value(default)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value) if value.data_type else None
    if isinstance(value, (int, float)):
        return value
    return [item.decode() if isinstance(item, bytes) else item for item in value]


if __name__ == "__main__":
    FILE.write_text(table_text(table_from_onnx()), encoding="utf-8")
    sys.stdout.write(f"{FILE}: of onnx {onnx.__version__}\n")
