"""A matrix says nothing that it does not mean: closed keys, known names, lines in errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from unit.hw.small_matrix import TEXT, matrix_of

from ort_lite.cli.app import run_command
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.rows import expand, select

if TYPE_CHECKING:
    from pathlib import Path

CHANGES = {
    "a key that is not known": (
        "require: { os: linux, pci:",
        "require: { oss: linux, pci:",
        r"hw_matrix.yaml:13: unknown key 'oss' in machines.laptop.require; did you mean 'os'?",
    ),
    "a key at the top": (
        "project: mine",
        "project: mine\nmachine: {}",
        "hw_matrix.yaml:3: unknown key 'machine'; did you mean 'machines'?",
    ),
    "a key of a row": (
        "lane: quick",
        "line: quick",
        "hw_matrix.yaml:18: unknown key 'line' in rows.0; did you mean 'lane'?",
    ),
    "a key of a suite": (
        "kind: models, models: [dense]",
        "kind: models, models: [dense], runs: 3",
        "hw_matrix.yaml:28: unknown key 'runs' in suites.all; there is: kind, models, timeout_s",
    ),
    "a wrong type": (
        "packages: [numpy]",
        "timeout_s: soon",
        "hw_matrix.yaml:4: Expected `float`, got `str` (in defaults.timeout_s)",
    ),
    "a provider that is not there": (
        "provider: npu,",
        "provider: npy,",
        "hw_matrix.yaml:20: there is no provider 'npy'; did you mean 'npu'?",
    ),
    "a name that would leave its folder": (
        "dense: { path",
        "../dense: { path",
        "hw_matrix.yaml:26: the name '../dense' has other characters than letters",
    ),
    "a suite that is not there": (
        "suites: [all]",
        "suites: [al]",
        "hw_matrix.yaml:18: there is no suite 'al'; did you mean 'all'?",
    ),
    "a value of an axis that is not there": (
        'python: ["3.11"], embed',
        'python: ["3.12"], embed',
        "hw_matrix.yaml:19: there is no value of python '3.12'; did you mean '3.11'?",
    ),
    "a range that is none": (
        ">=32.0.100",
        "newest",
        "hw_matrix.yaml:20: 'newest' is no range of versions, such as '>=32.0,<33'",
    ),
    "a row without a state": (
        "  npu: { state: expected }\n",
        "",
        "hw_matrix.yaml:29: the row 'npu' has no state",
    ),
    "a state of no row": (
        "  npu: { state: expected }",
        "  npu: { state: expected }\n  npus: { state: expected }",
        "hw_matrix.yaml:34: there is no row 'npus'; did you mean 'npu'?",
    ),
    "unsupported without a reason": (
        "  npu: { state: expected }",
        "  npu: { state: unsupported }",
        "hw_matrix.yaml:33: npu: an unsupported row says why, as `reason`",
    ),
    "verified without evidence": (
        "  npu: { state: expected }",
        "  npu: { state: verified }",
        "hw_matrix.yaml:33: npu: verified without evidence; "
        "ort-lite hw record writes both from a real run",
    ),
    "a key twice": (
        "project: mine",
        "project: mine\nproject: yours",
        "hw_matrix.yaml:3: the key 'project' is there twice",
    ),
    "no YAML": ("project: mine", "project: [mine", "hw_matrix.yaml:3: not YAML: "),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_mistake_is_told_with_its_line(change: str, tmp_path: Path) -> None:
    old, new, expected = CHANGES[change]
    assert TEXT.count(old) == 1
    with pytest.raises(MatrixError) as caught:
        matrix_of(tmp_path, TEXT.replace(old, new))
    assert str(caught.value).startswith(expected)


def test_evidence_of_a_row_that_has_changed_since_is_refused(tmp_path: Path) -> None:
    evidence = (
        "{ date: 2026-11-20, commit: " + "0" * 40 + ", row_digest: DIGEST, "
        "identity: { device: NPU }, packages: {}, suites: {} }"
    )
    state = f"  npu: {{ state: verified, evidence: {evidence} }}\n"
    text = TEXT.replace("  npu: { state: expected }\n", state)
    digest = expand(matrix_of(tmp_path))["npu"].digest()
    assert matrix_of(tmp_path, text.replace("DIGEST", digest)).states["npu"].state == "verified"
    changed = text.replace("DIGEST", digest).replace(">=32.0.100", ">=32.0.101")
    with pytest.raises(MatrixError, match="has changed since it was verified"):
        matrix_of(tmp_path, changed)


def test_a_version_stays_the_text_that_was_written(tmp_path: Path) -> None:
    matrix = matrix_of(tmp_path, TEXT.replace('python: "3.10", embed', "python: 3.10, embed"))
    assert matrix.include[0].axes["python"] == "3.10"


def test_axes_are_expanded_with_what_is_included_and_excluded(tmp_path: Path) -> None:
    rows = expand(matrix_of(tmp_path))
    ids = ["plain", "mixed[python=3.11,embed=0]", "mixed[python=3.10,embed=0]", "npu"]
    assert list(rows) == ids
    assert rows["mixed[python=3.10,embed=0]"].python == "3.10"
    assert rows["mixed[python=3.10,embed=0]"].folder == "mixed-python-3.10-embed-0"
    assert rows["npu"].options == {"device_type": "NPU"}


def test_rows_are_chosen_by_name_by_id_and_by_pattern(tmp_path: Path) -> None:
    rows = expand(matrix_of(tmp_path))
    assert [row.row for row in select(rows, ["mixed"])] == ["mixed", "mixed"]
    assert [row.id for row in select(rows, ["mixed[python=3.10*"])] == [
        "mixed[python=3.10,embed=0]"
    ]
    with pytest.raises(MatrixError, match="no row is called 'nqu'; did you mean 'npu'"):
        select(rows, ["nqu"])


def test_the_schema_for_editors_knows_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["hw", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$defs"]["Row"]["additionalProperties"] is False
    assert {"providers", "machines", "rows", "states"} <= set(
        schema["$defs"]["Matrix"]["properties"]
    )
