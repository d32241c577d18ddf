"""Records what onnxruntime answers to every case: `python tests/parity/realistic/record.py`.

Writes tests/golden/onnxruntime_VERSION/answers.json and refuses to replace one: another release
of onnxruntime gets a record of its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(HERE.parent)]

import numpy as np  # noqa: E402 - the paths come first
import onnx  # noqa: E402 - the paths come first
import onnxruntime  # noqa: E402 - the paths come first
from parity.against_onnxruntime import onnxruntime_answers  # noqa: E402 - as above
from parity.realistic.cases import all_cases  # noqa: E402 - as above
from parity.realistic.summary import inputs_digest, summaries  # noqa: E402 - as above

if TYPE_CHECKING:
    from typing import Any

    from parity.realistic.case import RecordedCase


def main() -> int:
    """Record, or say that there is a record already."""
    target = TESTS / "golden" / f"onnxruntime_{onnxruntime.__version__}" / "answers.json"
    if target.exists():
        sys.stderr.write(f"{target} is there already\n")
        return 1
    rows = {case.name: answers(case) for case in all_cases()}
    about = {
        "onnxruntime": onnxruntime.__version__,
        "onnx": onnx.__version__,
        "numpy": np.__version__,
    }
    target.parent.mkdir(exist_ok=True)
    target.write_text(written({"schema_version": 1, "made_with": about, "cases": rows}), "utf-8")
    sys.stderr.write(f"{len(rows)} cases, {target.stat().st_size} bytes\n")
    return 0


def answers(case: RecordedCase) -> dict[str, Any]:
    """The row of one case."""
    inputs = case.drawn()
    data, feed = case.model_and_feed(inputs)
    found = summaries(case, onnxruntime_answers(data, feed))
    return {"inputs": inputs_digest(inputs), "outputs": [one.as_row() for one in found]}


def written(record: dict[str, Any]) -> str:
    """JSON with a line for each case."""
    head = {name: value for name, value in record.items() if name != "cases"}
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in record["cases"].items()]
    return json.dumps(head)[:-1] + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    sys.exit(main())
