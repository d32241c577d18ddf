"""Tables of operators that OpenVINO computes correctly: one file for each OpenVINO release.

`python -m eps.openvino.evidence --write` makes them. A table has, for each version of each
operator, how many cases of ONNX's test suite OpenVINO got right, refused and got wrong; one wrong
case keeps that version out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
"""Version of the tables' format; a table of another version is ignored."""
TABLES = Path(__file__).with_name("tables")
HOW = "create one with python -m eps.openvino.evidence --write"


@dataclass(frozen=True, slots=True)
class SupportTable:
    """Operators that one OpenVINO release was shown to compute correctly.

    Attributes:
        openvino: The release, e.g. "2026.4.1".
        opset: The newest version of ai.onnx that the table knows.
        operators: Operator ("Add", "com.microsoft:Gelu") to its versions, each with whether a
            run showed it correct.
    """

    openvino: str
    opset: int
    operators: Mapping[str, Mapping[int, bool]]

    def problem(self, domain: str, op_type: str, opset: int) -> str:
        """Why OpenVINO does not get a node of this operator; "" if it does.

        Args:
            domain: Of the node; "" for ai.onnx.
            op_type: Of the node.
            opset: Version of the domain that the model imports.
        """
        key = op_type if domain == "" else f"{domain}:{op_type}"
        if not self.operators:
            return f"no operator table exists for OpenVINO {self.openvino}; {HOW}"
        if domain == "" and opset > self.opset:
            return f"the table for OpenVINO {self.openvino} ends at opset {self.opset}"
        versions = self.operators.get(key, {})
        version = max((v for v in versions if v <= opset), default=None)
        if version is None or not versions[version]:
            which = key if version is None else f"{key}-{version}"
            return f"no case of the ONNX test suite shows that OpenVINO computes {which} correctly"
        return ""

    def claims(self) -> frozenset[tuple[str, int]]:
        """Operators with the versions that OpenVINO gets."""
        return frozenset(
            (name, version)
            for name, versions in self.operators.items()
            for version, right in versions.items()
            if right
        )


def table_file(openvino: str) -> Path:
    """Path of a release's table, which patch releases of one minor version share."""
    minor = ".".join(openvino.split(".")[:2])
    return TABLES / f"{minor}.json"


def load_table(openvino: str) -> SupportTable:
    """The table for an OpenVINO release; without operators if none exists."""
    file = table_file(openvino)
    if not file.is_file():
        return SupportTable(openvino, 0, {})
    content = json.loads(file.read_text(encoding="utf-8"))
    if content.get("format") != FORMAT:
        return SupportTable(openvino, 0, {})
    operators = {
        name: claimed_versions({int(version): counts for version, counts in versions.items()})
        for name, versions in content["operators"].items()
    }
    return SupportTable(content["openvino"], content["opset"], operators)


def claimed_versions(evidence: Mapping[int, Mapping[str, int]]) -> dict[int, bool]:
    """Versions of an operator to whether OpenVINO gets it.

    It gets those with a right case and no wrong one, and those without any case that are between
    two such: Add-13 was never in a suite, and is Add-7 and Add-14 with other types.

    Args:
        evidence: Version to the numbers of `right` and, if any, `wrong` cases.
    """
    shown = [v for v, counts in evidence.items() if counts["right"] and not counts.get("wrong")]
    first, last = min(shown, default=1), max(shown, default=0)
    return {
        v: v in shown or (first < v < last and not counts.get("wrong"))
        for v, counts in evidence.items()
    }
