"""A matrix says nothing that it does not mean: closed keys, known names, lines in errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from unit.hw.small_matrix import TEXT, matrix_of

from ort_lite.cli.app import run_command
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.rows import expand, row_digest, select

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
        "hw_matrix.yaml:20: unknown provider 'npy'; did you mean 'npu'?",
    ),
    "a name that would leave its folder": (
        "dense: { path",
        "../dense: { path",
        "hw_matrix.yaml:26: the name '../dense' contains characters other than letters",
    ),
    "a suite that is not there": (
        "suites: [all]",
        "suites: [al]",
        "hw_matrix.yaml:18: unknown suite 'al'; did you mean 'all'?",
    ),
    "a value of an axis that is not there": (
        'python: ["3.11"], embed',
        'python: ["3.12"], embed',
        "hw_matrix.yaml:19: unknown value of python '3.12'; did you mean '3.11'?",
    ),
    "a range that is none": (
        ">=32.0.100",
        "newest",
        "hw_matrix.yaml:20: 'newest' is not a range of versions, such as '>=32.0,<33'",
    ),
    "a row without a state": (
        "  npu: { state: expected }\n",
        "",
        "hw_matrix.yaml:29: the row 'npu' has no state",
    ),
    "a state of no row": (
        "  npu: { state: expected }",
        "  npu: { state: expected }\n  npus: { state: expected }",
        "hw_matrix.yaml:34: unknown row 'npus'; did you mean 'npu'?",
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
        "hw_matrix.yaml:3: the key 'project' appears twice",
    ),
    "an anchor": (
        "project: mine",
        "project: &me mine",
        "hw_matrix.yaml:2: anchors, aliases and tags are not read; write it out",
    ),
    "a tag": (
        "project: mine",
        "project: !!python/name:os.system mine",
        "hw_matrix.yaml:2: anchors, aliases and tags are not read; write it out",
    ),
    "a limit of one's own without a reason": (
        "lane: quick }",
        'lane: quick, limits: { run: { at_most: 9, why: "" } } }',
        "hw_matrix.yaml:18: a platform's own limit says why it is another, as `why`",
    ),
    "lists in lists": (
        "project: mine",
        "project: " + "[" * 20_000,
        "hw_matrix.yaml:2: nested deeper than 20",
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


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"\x08\x07\x12\xbe", "not UTF-8 text"), (b"\x89PNG\r\n\x1a\n", "a PNG image")],
)
def test_a_file_that_is_not_text_is_named(data: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(MatrixError) as refused:
        read_matrix(path)
    assert str(refused.value) == f"{path}: {kind}, expected a hardware matrix (YAML)"


EVIDENCE = """\
  plain:
    state: verified
    evidence:
      { date: 2026-11-20, commit: COMMIT, row_digest: DIGEST, identity: { device: CPU },
        packages: {}, suites: {} }
"""
ASKED = {
    "a pin": ("packages: [numpy]", "packages: [numpy, onnx]"),
    "a requirement": ("require: { os: linux } }", "require: { os: linux, isa: [avx2] } }"),
    "a suite": ("suites: [all], lane", "suites: [all, speed], lane"),
    "a threshold": ("thresholds: { run: 3.0 }", "thresholds: { run: 4.0 }"),
    "a limit": ("at_most: 9", "at_most: 10"),
    "the number of runs": ("runs: 20", "runs: 2"),
    "a tolerance": ("share: 1.0e-4", "share: 1.0e-3"),
    "an oracle": ("oracle: onnxruntime", "oracle: cpu"),
    "a failure that is expected": (
        "states:",
        "expectations: [{ row: plain, test: all::*, reason: x, until: 2999-01-01 }]\nstates:",
    ),
}
NOT_ASKED = {
    "the lane": ("lane: quick", "lane: slow"),
    "a reason": ("why: slow", "why: very slow"),
    "a limit of time": ("runs: 20", "runs: 20, timeout_s: 5"),
    "another row": (">=32.0.100", ">=32.0.101"),
    "another suite": ("kind: conformance", "kind: conformance, timeout_s: 5"),
}


@pytest.fixture
def verified(tmp_path: Path) -> str:
    """A matrix whose row `plain` is verified and asks for a model and for speed."""
    text = TEXT.replace("packages: [numpy]", "packages: [numpy]\n  tolerance: { share: 1.0e-4 }")
    text = text.replace("path: dense.onnx", "path: dense.onnx, oracle: onnxruntime")
    limit = "limits: { run: { at_most: 9, why: slow } }"
    text = text.replace("lane: quick", f"lane: quick, {limit}")
    suites = (
        "  all: { kind: bench, models: [dense], runs: 20, thresholds: { run: 3.0 } }\n"
        "  speed: { kind: bench, models: [dense] }\n"
        "  promises: { kind: conformance }\n"
    )
    text = text.replace("  all: { kind: models, models: [dense] }\n", suites)
    matrix = matrix_of(tmp_path, text)
    digest = row_digest(expand(matrix)["plain"], matrix)
    evidence = EVIDENCE.replace("COMMIT", "0" * 40).replace("DIGEST", digest)
    return text.replace("  plain: { state: expected }\n", evidence)


@pytest.mark.parametrize("change", ASKED)
def test_evidence_answers_only_to_what_was_asked(
    change: str, verified: str, tmp_path: Path
) -> None:
    assert matrix_of(tmp_path, verified).states["plain"].state == "verified"
    old, new = ASKED[change]
    assert verified.count(old) == 1
    with pytest.raises(MatrixError, match="or what its suites ask, has changed since it was"):
        matrix_of(tmp_path, verified.replace(old, new))
    again = read_matrix(tmp_path / "hw_matrix.yaml", outdated=True)
    assert again.states["plain"].state == "verified"


@pytest.mark.parametrize("change", NOT_ASKED)
def test_evidence_outlives_what_no_run_depends_on(
    change: str, verified: str, tmp_path: Path
) -> None:
    old, new = NOT_ASKED[change]
    assert verified.count(old) == 1
    assert matrix_of(tmp_path, verified.replace(old, new)).states["plain"].state == "verified"


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
