"""Workflows, forms and settings for the site that hosts the repository follow its schemas."""

from __future__ import annotations

import subprocess
import sys
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
