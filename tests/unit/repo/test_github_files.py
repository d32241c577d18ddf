"""Workflows, forms and settings for the site that hosts the repository follow its schemas."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

GITHUB = Path(__file__).parents[3] / ".github"
FORMS = sorted(p for p in GITHUB.glob("ISSUE_TEMPLATE/*.yml") if p.name != "config.yml")


def refused_by(schema: str, *files: Path) -> str:
    """What the schema has against files; "" if nothing."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE/config.yml"]),
        ("vendor.dependabot", [GITHUB / "dependabot.yml"]),
        ("vendor.github-workflows", sorted(GITHUB.glob("workflows/*.yml"))),
    ],
)
def test_files_follow_their_schema(schema: str, files: list[Path]) -> None:
    assert files
    assert refused_by(schema, *files) == ""


def test_a_form_without_a_body_is_refused(tmp_path: Path) -> None:
    form = yaml.safe_load(FORMS[0].read_text("utf-8"))
    del form["body"]
    (tmp_path / "form.yml").write_text(yaml.safe_dump(form), encoding="utf-8")
    assert refused_by("vendor.github-issue-forms", tmp_path / "form.yml")


def test_each_python_that_the_metadata_promises_runs_tests_in_ci() -> None:
    metadata = tomllib.loads((GITHUB.parent / "pyproject.toml").read_text("utf-8"))
    prefix = "Programming Language :: Python :: 3."
    classifiers = metadata["project"]["classifiers"]
    promised = {c.rpartition(" ")[2] for c in classifiers if c.startswith(prefix)}
    jobs = yaml.safe_load((GITHUB / "workflows/ci.yml").read_text("utf-8"))["jobs"]
    tested = set(jobs["gate"]["strategy"]["matrix"]["python"])
    for step in jobs["systems"]["steps"]:
        version = step.get("with", {}).get("python-version")
        tested |= {version} if version else set()
    assert promised
    assert promised <= tested
