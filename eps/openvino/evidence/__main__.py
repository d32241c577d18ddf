"""Command line of the evidence: runs ONNX's suite on OpenVINO, makes or checks the table.

`python -m eps.openvino.evidence` compares the stored table of the installed OpenVINO with a run,
and ends with 1 if the table claims what this run does not show. `--write` stores a new one. To
take in a new OpenVINO release: run it; for each wrong operator write a condition in
eps/openvino/support/conditions.py, or add it to `WRONG` there; then `--write`. The installed onnx
makes cases of current operator versions only; `--cases FOLDER` adds older ones, which
`python tests/model_set/old_suites.py FOLDER` fetches.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openvino as ov

from eps.openvino.evidence.cases import stored_cases, suite_cases
from eps.openvino.evidence.make_table import make_table, table_text
from eps.openvino.evidence.tally import run_cases
from eps.openvino.options import parse_options
from eps.openvino.payload.identity import sdk_version
from eps.openvino.provider import OpenVINOExecutionProvider
from eps.openvino.support.table import claimed_versions, load_table, table_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.openvino.evidence.make_table import Operators
    from eps.openvino.evidence.tally import Tallies


def main(arguments: Sequence[str]) -> int:
    """Run the suite; write the table or compare with it."""
    chosen = _parse(arguments)
    ep = OpenVINOExecutionProvider(parse_options({}))
    folders = (stored_cases(folder) for folder in chosen.cases)
    release = sdk_version(ov.__version__)
    tallies = run_cases(ep, release, itertools.chain(suite_cases(), *folders))
    ep.release()
    table = make_table(release, tallies, _stored_operators(release))
    lost = _compare(release, table, tallies)
    right = sum(tally.right for tally in tallies.values())
    sys.stdout.write(f"OpenVINO {release}: {right} runs right\n")
    if chosen.write:
        table_file(release).write_text(table_text(table), encoding="utf-8")
        return 0
    return 1 if lost or any(tally.wrong for tally in tallies.values()) else 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m eps.openvino.evidence",
        description="Make and check the table of what OpenVINO computes right.",
    )
    parser.add_argument("--write", action="store_true", help="store the table")
    parser.add_argument(
        "--cases",
        action="append",
        type=Path,
        default=[],
        metavar="FOLDER",
        help="a folder of older node cases besides (*/model.onnx, */test_data_set_*)",
    )
    return parser.parse_args(arguments)


def _stored_operators(release: str) -> Operators:
    file = table_file(release)
    content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    operators: Operators = content.get("operators", {})
    return operators


def _compare(release: str, table: Mapping[str, Any], tallies: Tallies) -> bool:
    """Say what is wrong, lost and gained against the stored table; whether something is lost."""
    stored = load_table(release).claims()
    shown = {
        (name, version)
        for name, versions in table["operators"].items()
        for version, right in claimed_versions({int(v): e for v, e in versions.items()}).items()
        if right
    }
    for (name, version), tally in sorted(tallies.items()):
        for what, cases in (("disputed", tally.disputed), ("wrong   ", tally.wrong)):
            sys.stdout.writelines(f"{what} {name}-{version}: {case}\n" for case in cases)
    for what, which in (("lost    ", stored - shown), ("gained  ", shown - stored)):
        sys.stdout.writelines(f"{what} {name}-{version}\n" for name, version in sorted(which))
    return bool(stored - shown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
