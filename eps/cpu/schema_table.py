"""The published operator schemas as a table, so that a reload with CPU nodes imports no onnx.

`python -m eps.cpu.onnx_schemas` makes onnx_schemas.json from onnx.defs. A published version of
an operator never changes, so the table answers for every opset up to the newest that it knows; a
newer one, of a newer onnx, and domains with schemas of a user's own are onnx's to answer.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctx_formats.lean_dataclass import dataclass
from ort_lite.ep import ArgPlace

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = Path(__file__).with_name("onnx_schemas.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The facts about an operator version that resolving a node needs.

    Attributes:
        places: What the names in type constraints stand for.
        defaults: Attribute defaults, as `KernelInfo.attr` gives attributes.
        has_body: Whether the schema gives a function, fixed or depending on the node.
    """

    since_version: int
    places: Mapping[str, tuple[ArgPlace, ...]]
    defaults: Mapping[str, Any]
    has_body: bool


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """Published schemas.

    Attributes:
        newest: Domain to the newest opset of it that the table knows.
        operators: Domain and operator to rows, oldest version first, as `row_of` makes them.
    """

    newest: Mapping[str, int]
    operators: Mapping[str, Mapping[str, list[Any]]]

    def find(self, domain: str, op_type: str, opset: int) -> Schema | None:
        """The newest version not newer than `opset`; None if absent."""
        rows = self.operators.get(domain, {}).get(op_type, ())
        row = next((row for row in reversed(rows) if row[0] <= opset), None)
        return schema_of(row) if row is not None else None

    def list_versions(self) -> set[tuple[str, str, int]]:
        """(domain, operator, version) of every schema."""
        return {
            (domain, name, row[0])
            for domain, operators in self.operators.items()
            for name, rows in operators.items()
            for row in rows
        }


def schema_of(row: list[Any]) -> Schema:
    """A row of the table: version, names to signed places, defaults, whether it has a body."""
    since, places, defaults, has_body = row
    return Schema(
        since_version=since,
        places={
            name: tuple(ArgPlace(at >= 0, at if at >= 0 else -1 - at) for at in signed)
            for name, signed in places.items()
        },
        defaults=defaults,
        has_body=has_body,
    )


def row_of(schema: Schema) -> list[Any]:
    """Encode a schema for `schema_of`; inputs are at 0, 1, ..., outputs at -1, -2, ..."""
    places = {
        name: [place.index if place.is_input else -1 - place.index for place in argument_places]
        for name, argument_places in schema.places.items()
    }
    return [schema.since_version, places, dict(schema.defaults), schema.has_body]


@cache
def load_table() -> SchemaTable:
    """The table that ships with ort_lite."""
    import json  # noqa: PLC0415 - lazy: reload

    content = json.loads(FILE.read_bytes())
    return SchemaTable(content["newest"], content["operators"])
