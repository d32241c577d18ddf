"""Operators that Intel's NPU compiler was asked to compile, for each platform and OpenVINO release.

`benchmarks/npu/operators.py` asks the compiler for cases of ONNX's test suite and writes the
tables. A case that compiles does not show that an NPU computes it correctly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

FORMAT = 1
"""Version of the tables' format; a table of another version is ignored."""
TABLES = Path(__file__).with_name("npu_tables")


@dataclass(frozen=True, slots=True)
class NpuTable:
    """What the NPU compiler of one OpenVINO release accepted for one platform.

    Attributes:
        platform: As the NPU's DEVICE_ARCHITECTURE, e.g. "4000".
        counts: Operator ("Add", "com.microsoft:Gelu") to the number of cases that compiled, and
            of all cases that OpenVINO converted. An operator that was never asked is absent.
        refused_types: Operator to element types of its inputs ("INT16,INT16") of which no case
            compiled, where one with as many inputs of other types did.
    """

    platform: str
    counts: Mapping[str, tuple[int, int]]
    refused_types: Mapping[str, Collection[str]] = field(default_factory=dict)

    def problem(self, domain: str, op_type: str, types: str = "") -> str:
        """Why a node of this operator is not offered; "" if it is.

        Args:
            domain: Of the operator.
            op_type: Of the operator.
            types: Names of its inputs' element types, separated by commas.
        """
        key = op_type if domain == "" else f"{domain}:{op_type}"
        if types in self.refused_types.get(key, ()):
            return f"Intel's NPU compiler refuses {key} of {types} for NPU {self.platform}"
        compiled, total = self.counts.get(key, (0, 0))
        if compiled or not total:
            return ""
        which = "the only case" if total == 1 else f"all {total} cases"
        return f"Intel's NPU compiler refuses {which} of {key} for NPU {self.platform}"


def load_npu_table(openvino: str, platform: str) -> NpuTable:
    """The table for an OpenVINO release and an NPU; without operators if none exists.

    Args:
        openvino: The release, e.g. "2026.4.1"; patch releases share a table.
        platform: Four digits.
    """
    minor = ".".join(openvino.split(".")[:2])
    file = TABLES / f"{minor}.json"
    if not file.is_file():
        return NpuTable(platform, {})
    content = json.loads(file.read_text(encoding="utf-8"))
    if content.get("format") != FORMAT:
        return NpuTable(platform, {})
    counts = {
        name: (platforms[platform][0], platforms[platform][1])
        for name, platforms in content["operators"].items()
        if platform in platforms
    }
    refused_types = {
        name: frozenset(platforms[platform])
        for name, platforms in content.get("refused_types", {}).items()
        if platform in platforms
    }
    return NpuTable(platform, counts, refused_types)
