"""Every operator that OpenVINO or OpenCL gets has an entry in the table of special values."""

from __future__ import annotations

import json

import onnx.defs
import pytest
from parity.ieee.table import BEGIN, COLUMNS, DOCUMENT, END, WORDS, read_record, render

from eps.opencl.compile.lower import LOWERINGS
from eps.openvino.compile.ieee import _REPLACEMENTS, UNREPLACED
from eps.openvino.support import table

RECORD = read_record()
OPENVINO, IEEE, OPENCL = COLUMNS
NEWEST = max(table.TABLES.glob("*.json"))

EXPLAINED = {
    "Cast": "ONNX leaves undefined what NaN becomes as an integer",
    "GlobalMaxPool": "a maximum over NaN is NaN, as documented",
    "MaxPool": "as above",
    "ReduceMax": "as above",
    "ReduceMin": "as above",
    "STFT": "a sum of an infinity with both signs, docs/special_values.md",
}
"""Operators that differ from ONNX Runtime with the option, and why they may."""
NO_CASE: dict[str, set[str]] = {OPENVINO: set(), OPENCL: {"OneHot"}}
"""Operators whose float inputs must be constants there."""


def openvino_operators() -> set[str]:
    operators = json.loads(NEWEST.read_text(encoding="utf-8"))["operators"]
    return {
        name
        for name, versions in operators.items()
        if any(counts.get("right") for counts in versions.values())
    }


def opencl_operators() -> set[str]:
    return {f"{domain}:{name}" if domain else name for domain, name in LOWERINGS}


def takes_floats(operator: str) -> bool:
    """Whether an input may be float32, by the newest schema; a contrib operator has none here."""
    domain, _, name = operator.rpartition(":")
    if domain or not onnx.defs.has(name):
        return True
    schema = onnx.defs.get_schema(name)
    return any("tensor(float)" in one.types for one in schema.inputs)


@pytest.mark.parametrize(
    ("column", "operators"),
    [(OPENVINO, openvino_operators()), (OPENCL, opencl_operators())],
    ids=["openvino", "opencl"],
)
def test_every_operator_with_float_inputs_was_measured(column: str, operators: set[str]) -> None:
    measured = {name for name, cells in RECORD.items() if cells[column] is not None}
    missing = {name for name in operators - measured if takes_floats(name)} - NO_CASE[column]
    assert not missing, f"python -m parity.ieee.table measure write, and cases for {missing}"


def test_the_document_has_the_table_of_the_record() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0] == f"\n{render(RECORD)}\n"


def test_the_option_leaves_no_operator_that_loses_special_values() -> None:
    """An entry is one of those that docs/special_values.md explains."""
    lossy = {
        operator: cells[IEEE]
        for operator, cells in RECORD.items()
        if set(cells[IEEE] or ()) - {"-0.0: sign of zero"}
    }
    assert lossy.keys() <= EXPLAINED.keys(), lossy
    assert not lossy.keys() & UNREPLACED
    assert EXPLAINED.keys() - _REPLACEMENTS.keys() <= lossy.keys()


def test_every_difference_has_its_words() -> None:
    found = {key for cells in RECORD.values() for cell in cells.values() for key in cell or ()}
    assert found <= WORDS.keys()
