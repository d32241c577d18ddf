"""docs/compatibility.md names the version of every format that the code reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctx_formats import adapter_file, container, notes, ort_model_reader, signatures
from eps.opencl.payload import format as payload
from eps.opencl.payload import import_payload as reload
from eps.opencl.trials import record as trial_record
from eps.opencl.tuning import cache as tuning_cache
from eps.openvino.payload import identity
from eps.openvino.support import table
from ort_lite.cli import output
from ort_lite.hw import cross_result, report, result
from ort_lite.model_cache import entry, source_digest, store, transfer
from ort_lite.packages import variant_notes
from ort_lite.probing import probe

DOCUMENT = Path(__file__).parents[3] / "docs" / "compatibility.md"
VERSIONS = {
    "context model, `notes` of an EPContext node": notes.FORMAT,
    '`executor_info["ort_lite"]` of a model package': variant_notes.FORMAT,
    "payload container": container.VERSION,
    "signature of a model": signatures.FORMAT,
    "OpenCL payload": payload.VERSION,
    "`ep_compatibility_info` of OpenVINO": identity.INFO_VERSION,
    "`ep_compatibility_info` of OpenCL": reload._INFO_FORMAT,
    "folder of the model cache": store.LAYOUT,
    "entry of the model cache": entry.FORMAT,
    "archive of `ort-lite cache export`": transfer.FORMAT,
    "remembered digest of a model": source_digest.FORMAT,
    "verdict of `session.ep_context_probe`": probe.FORMAT,
    "tuned OpenCL tilings": tuning_cache.FORMAT,
    "trial of an OpenCL device": trial_record.FORMAT,
    "model in the ORT format": ort_model_reader.NEWEST_VERSION,
    "LoRA adapter": adapter_file.FORMAT_VERSION,
    "`result.json` of `ort-lite hw`": result.RESULT_VERSION,
    "`crossload.json`": cross_result.CROSS_VERSION,
    "`report.json`": report.REPORT_VERSION,
    "table of operators for an OpenVINO release": table.FORMAT,
    "`--json` output of commands": output.SCHEMA_VERSION,
}


def rows() -> dict[str, str]:
    """File to version, of the table under "Formats and their versions"."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("## Formats and their versions")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    return {row[0]: row[1] for row in cells}


@pytest.mark.parametrize("name", VERSIONS)
def test_a_format_has_the_documented_version(name: str) -> None:
    assert rows()[name] == str(VERSIONS[name])


def test_the_containers_index_has_the_documented_version() -> None:
    assert f"`version` {container.INDEX_VERSION} of the index" in DOCUMENT.read_text("utf-8")
