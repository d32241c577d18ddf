"""The table of special values by operator in docs/special_values.md, measured and written.

    cd tests && python -m parity.ieee.table measure             # all operators: ten minutes
    cd tests && python -m parity.ieee.table measure LRN Mod     # these anew
    cd tests && python -m parity.ieee.table write               # the record, into the documentation

`measure` compares OpenVINO, OpenVINO with `ieee_semantics` and OpenCL with onnxruntime, case by
case, and writes `record.json` next to this file. A difference counts if the case agrees without
special values.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from parity.ieee.measure import compare, open_on, right_answers
from parity.ieee.poison import POISONS, node_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from parity.ieee.poison import PoisonedCase

    Record = Mapping[str, Mapping[str, list[str] | None]]

HERE = Path(__file__).resolve().parent
RECORD = HERE / "record.json"
DOCUMENT = HERE.parents[2] / "docs" / "special_values.md"
COLUMNS = {
    "OpenVINO": ("OpenVINOExecutionProvider", {}),
    "with `ieee_semantics`": ("OpenVINOExecutionProvider", {"ieee_semantics": "true"}),
    "OpenCL": ("OpenCLExecutionProvider", {}),
}
"""Column of the table to an execution provider and its options."""
KINDS = {"nan": "NaN", "+inf": "infinity", "-inf": "infinity", "-0.0": "-0.0"}
"""Special values that the table has; denormals are not promised."""
WORDS = {
    "NaN: loses NaN": "NaN lost",
    "NaN: makes NaN": "more NaN",
    "NaN: infinity": "NaN: other infinities",
    "NaN: value": "NaN: other values",
    "infinity: loses NaN": "infinity: NaN lost",
    "infinity: makes NaN": "infinity: more NaN",
    "infinity: infinity": "infinity: other infinities",
    "infinity: value": "infinity: other values",
    "NaN: shape or type": "NaN: other shape",
    "-0.0: sign of zero": "sign of zero",
    "-0.0: shape or type": "-0.0: other shape",
    "-0.0: value": "-0.0: other values",
}
"""A kind of input and of difference, as the table has it."""
MOST = 6
"""Cases of ONNX's suite for each operator; drawn ones are measured, too."""
BEGIN, END = "<!-- begin: parity.ieee.table -->\n", "<!-- end: parity.ieee.table -->\n"


def measure(only: Sequence[str]) -> dict[str, dict[str, list[str] | None]]:
    """Operator to column to differences; None if the EP accepts none of its cases.

    Args:
        only: Operators; none for all.
    """
    record: dict[str, dict[str, list[str] | None]] = defaultdict(dict)
    for case in chosen_cases():
        if only and case.operator not in only:
            continue
        row = record[case.operator]
        right = right_answers(case)
        for column, (provider, options) in COLUMNS.items():
            row.setdefault(column, None)
            session = open_on(case, provider, options, {}) if right else None
            if session is None:
                continue
            with session:
                found = compare(case, session, right, Counter())
            cell = row[column] or []
            row[column] = sorted({*cell, *differences(found)})
    return dict(sorted(record.items()))


def chosen_cases() -> Iterator[PoisonedCase]:
    """At most MOST cases of each operator from ONNX's suite, spread evenly, and the drawn ones."""
    by_operator: dict[str, list[PoisonedCase]] = defaultdict(list)
    for case in node_cases():
        by_operator[case.operator].append(case)
    for _, cases in sorted(by_operator.items()):
        suite = [case for case in cases if not case.name.startswith("drawn")]
        yield from suite[:: -(-len(suite) // MOST) or 1]
        yield from (case for case in cases if case.name.startswith("drawn"))


def differences(found: Mapping[str, str]) -> set[str]:
    """Keys of WORDS, or others like them, for one case; none if plain inputs differ, too."""
    if "plain" in found:
        return set()
    return {
        f"{KINDS[name]}: {worst.split(':')[0]}"
        for name, worst in found.items()
        if name in KINDS and (name == "-0.0" or worst not in ("sign of zero", "denormal"))
    }


def render(record: Record) -> str:
    """Rows of operators with equal cells; those of no EP are left out."""
    rows: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for operator, cells in record.items():
        shown = tuple(_show(cells, column) for column in COLUMNS)
        if set(shown) != {""}:
            rows[shown].append(f"`{operator}`")
    lines = [
        "| operators | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
        *(f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in sorted(rows.items())),
    ]
    return "".join(f"{line}\n" for line in lines)


def _show(cells: Mapping[str, list[str] | None], column: str) -> str:
    cell = cells[column]
    if cell is None:
        is_left = column.startswith("with") and cells["OpenVINO"] is not None
        return "left" if is_left else ""
    return ", ".join(WORDS.get(key, key) for key in cell) if cell else "equal"


def write(record: Record) -> None:
    """Replace the table in the documentation."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{render(record)}\n{END}{after}", encoding="utf-8")


def read_record() -> Record:
    """What was measured last."""
    operators: Record = json.loads(RECORD.read_text(encoding="utf-8"))["operators"]
    return operators


def main(step: str, only: Sequence[str]) -> None:
    """Measure or write."""
    if step == "measure":
        kept = read_record() if only else {}
        made = {name: version(name) for name in ("onnx", "onnxruntime", "openvino")}
        operators = dict(sorted({**kept, **measure(only)}.items()))
        content = {**made, "special values": list(POISONS), "operators": operators}
        RECORD.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    elif step == "write":
        write(read_record())
    else:
        raise SystemExit(f"{step}: expected measure or write")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
