"""Reads what an NPU payload needs of a machine from the text that Intel's NPU compiler states.

`meta=2.7;ov=2026.4.1;desc=[compiler=8.4;npu=4000;t=4;elf=1.2.2;mi=11.4.10]` (OpenVINO 2026.4.1):
the compiler, the platform, its tiles, and the formats of the program, which the driver's loader and
the firmware accept or not. A firmware that is too old refuses the mapped inference ("Expected:
6.1.0 vs received: 7.0.0", https://github.com/intel/linux-npu-driver/issues/28).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass
from eps.openvino.payload.blob_header import parse_requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

HOSTS: Mapping[str, str] = {
    "3720": "Meteor Lake or Arrow Lake",
    "4000": "Lunar Lake",
    "5010": "Panther Lake",
    "5020": "Wildcat Lake",
}
"""Platform to processors: src/plugins/intel_npu/README.md of openvinotoolkit/openvino."""
DRIVERS = "https://github.com/intel/linux-npu-driver/releases"
DRIVERS_OF_WINDOWS = "https://www.intel.com/content/www/us/en/download/794734"

_DESCRIPTION = re.compile(r"desc=\[([^\[\]]*)\]")
_MOST_CHARACTERS = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NpuRequirements:
    """The compiler's statement; a field that it omits is "".

    Attributes:
        platform: "4000".
        compiler: Version of the NPU compiler.
        elf: Version of the program's file format.
        mapped_inference: Version of what the firmware runs.
        openvino: Version of OpenVINO that the compiler came with.
    """

    platform: str
    compiler: str = ""
    elf: str = ""
    mapped_inference: str = ""
    openvino: str = ""

    def __str__(self) -> str:
        """One line for a person."""
        host = HOSTS.get(self.platform)
        npu = f"NPU {self.platform}{f' ({host})' if host else ''}"
        formats = [
            f"{name} {version}"
            for name, version in (("ELF", self.elf), ("mapped inference", self.mapped_inference))
            if version
        ]
        compiler = f", or one with NPU compiler {self.compiler} or newer" if self.compiler else ""
        return (
            f"{npu} with a driver that loads {' and '.join(formats) or 'its format'}, such as one "
            f"released with OpenVINO {self.openvino or '(version unknown)'} or newer{compiler} "
            f"({DRIVERS}, for Windows {DRIVERS_OF_WINDOWS})"
        )


def read_npu_requirements(text: str) -> NpuRequirements | None:
    """The statement in a requirement text; None for a text of another device."""
    described = _DESCRIPTION.search(text[:_MOST_CHARACTERS])
    if described is None:
        return None
    fields = parse_requirements(described[1])
    if not fields.get("npu"):
        return None
    return NpuRequirements(
        platform=fields["npu"],
        compiler=fields.get("compiler", ""),
        elf=fields.get("elf", ""),
        mapped_inference=fields.get("mi", ""),
        openvino=parse_requirements(text[: described.start()]).get("ov", ""),
    )
