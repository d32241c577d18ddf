"""The table of published schemas says what the installed onnx says."""

from __future__ import annotations

import onnx
import onnx.defs
import pytest
from system_limits import WINDOWS

from eps.cpu import schema_table
from eps.cpu.onnx_schemas import schema_from_onnx, table_from_onnx, table_text
from eps.cpu.schema_table import FILE, load_table
from eps.cpu.schemas import find_schema

TABLE = load_table()
PUBLISHED = sorted(TABLE.list_versions())


@pytest.mark.skipif(WINDOWS, reason="onnx for Windows lists attributes in another order")
def test_the_file_is_what_the_installed_onnx_gives() -> None:
    """Another release of onnx has other schemas at the end, and the same before."""
    if onnx.defs.onnx_opset_version() != TABLE.newest[""]:
        pytest.skip(f"the table is of opset {TABLE.newest['']}")
    assert FILE.read_text(encoding="utf-8") == table_text(table_from_onnx())


def test_every_operator_is_found_at_every_opset_as_onnx_finds_it() -> None:
    newest = min(TABLE.newest[""], onnx.defs.onnx_opset_version())
    operators = {(domain, name) for domain, name, _ in PUBLISHED}
    assert len(operators) > 200
    for domain, name in sorted(operators):
        for opset in range(1, newest + 1 if domain == "" else TABLE.newest[domain] + 1):
            ours, theirs = find_schema(domain, name, opset), schema_from_onnx(domain, name, opset)
            assert ours == theirs, (domain, name, opset)


def test_defaults_are_of_the_types_that_onnx_gives() -> None:
    """1 and 1.0 are equal, and to a kernel they are not the same."""
    for domain, name, since in PUBLISHED:
        ours, theirs = find_schema(domain, name, since), schema_from_onnx(domain, name, since)
        if theirs is None:  # an onnx older than the table
            continue
        assert ours is not None
        shown = [repr(sorted(one.defaults.items())) for one in (ours, theirs)]
        assert shown[0] == shown[1], (domain, name, since)


@pytest.mark.parametrize("opset", [-1, 0, 1 << 31, 1 << 63])
def test_an_opset_that_is_none_has_no_schema(opset: int) -> None:
    assert find_schema("", "Add", opset) is None


def test_what_nobody_knows_has_no_schema() -> None:
    assert find_schema("", "NoSuchOperator", 13) is None
    assert find_schema("com.microsoft", "Gelu", 1) is None
    assert find_schema("", "LayerNormalization", 16) is None


def test_an_opset_beyond_the_table_is_asked_of_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    older = schema_table.SchemaTable({**TABLE.newest, "": 9}, TABLE.operators)
    monkeypatch.setattr(schema_table, "load_table", lambda: older)
    found = find_schema("", "Gelu", 20)
    assert found is not None
    assert found.since_version == 20


def test_a_schema_of_a_users_own_is_found() -> None:
    text = onnx.defs.OpSchema.FormalParameter
    own = onnx.defs.OpSchema(
        "Doubled",
        "schema.table.test",
        2,
        inputs=[text("x", "T")],
        outputs=[text("y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
    )
    onnx.defs.register_schema(own)
    try:
        found = find_schema("schema.table.test", "Doubled", 3)
        assert found is not None
        assert found.since_version == 2
    finally:
        onnx.defs.deregister_schema("Doubled", 2, "schema.table.test")
