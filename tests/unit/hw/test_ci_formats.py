"""Jobs for CI systems are what the systems' own schemas take, and run as they are printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from system_limits import UNDER_WINE

from ort_lite.cli.app import run_command
from ort_lite.hw.result import read_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from unit.hw.conftest import OddProject

    Make = Callable[..., OddProject]

ROOT = Path(__file__).parents[3]
needs_schemas = pytest.mark.skipif(
    UNDER_WINE, reason="schemas of CI systems are checked elsewhere, not under Wine"
)
SCHEMAS = {
    "gitlab": "vendor.gitlab-ci",
    "buildkite": "vendor.buildkite",
    "azure": "vendor.azure-pipelines",
}


def jobs(form: str, capsys: pytest.CaptureFixture[str], file: Path, *rows: str) -> str:
    capsys.readouterr()
    assert run_command(["hw", "plan", "-f", str(file), "--format", form, *rows]) == 0
    return capsys.readouterr().out


def refused_by(schema: str, file: Path) -> str:
    """What the schema has against a file; "" if nothing."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@needs_schemas
@pytest.mark.parametrize("form", SCHEMAS)
def test_jobs_are_what_the_system_s_schema_takes(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"{form}.yml"
    file.write_text(jobs(form, capsys, ROOT / "hw_matrix.yaml"), encoding="utf-8")
    assert refused_by(SCHEMAS[form], file) == ""
    word = {"gitlab": "script:", "buildkite": "commands:", "azure": "steps:"}[form]
    file.write_text(file.read_text("utf-8").replace(word, "skript:"), encoding="utf-8")
    assert refused_by(SCHEMAS[form], file) != ""


@needs_schemas
@pytest.mark.parametrize("name", ["ci.yml", "hw.yml"])
def test_the_repository_s_workflows_are_what_github_s_schema_takes(name: str) -> None:
    assert refused_by("vendor.github-workflows", ROOT / ".github/workflows" / name) == ""


@needs_schemas
def test_github_s_matrix_fits_the_workflow_that_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = json.loads(jobs("gha", capsys, ROOT / "hw_matrix.yaml"))
    workflow = yaml.safe_load((ROOT / ".github/workflows/hw.yml").read_text("utf-8"))
    for job in ("run", "crossload"):
        text = json.dumps(workflow["jobs"][job])
        used = {part.partition("}")[0].strip() for part in text.split("matrix.")[1:]}
        used = {part.split()[0] for part in used}
        assert used <= set(matrix["include"][0])
        workflow["jobs"][job]["strategy"]["matrix"] = matrix
    file = tmp_path / "hw.yml"
    # `on` is true to a YAML 1.1 reader.
    file.write_text(yaml.safe_dump({"on": workflow.pop(True), **workflow}), encoding="utf-8")
    assert refused_by("vendor.github-workflows", file) == ""


def script_of(form: str, text: str) -> list[str]:
    """The shell commands of the only job."""
    told = yaml.safe_load(text)
    if form == "gitlab":
        (job,) = told.values()
        return list(job["script"])
    if form == "buildkite":
        (step,) = told["steps"]
        return list(step["commands"])
    (job,) = told["jobs"]
    return [step["script"] for step in job["steps"] if "script" in step]


@pytest.mark.parametrize("form", SCHEMAS)
def test_a_job_runs_as_it_is_printed(
    form: str, odd: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    project = odd()
    (project.root / ".hw-environments").symlink_to(project.environments)
    commands = script_of(form, jobs(form, capsys, project.file, "odd[do=right]"))
    assert commands[0] == "echo made ready > ready.txt"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        subprocess.run(
            ["bash", "-ec", command], cwd=project.root, env={**os.environ, "PATH": path}, check=True
        )
    (result,) = read_results([project.root / "hw-results"])
    assert (result.row, result.status) == ("odd[do=right]", "passed")
    assert (project.root / "ready.txt").is_file()
