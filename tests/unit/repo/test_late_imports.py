"""Imports inside functions have one of two reasons, which docs/architecture.md defines."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("ctx_formats", "ort_lite", "eps")
REASONS = ("lazy: reload", "lazy: rare")
SUPPRESSION = re.compile(r"# noqa: [A-Z0-9, ]*PLC0415[A-Z0-9, ]*(?: - (.*))?$", re.MULTILINE)


def reasons(text: str) -> list[str]:
    return [match[1] or "" for match in SUPPRESSION.finditer(text)]


def test_each_late_import_names_one_of_the_two_reasons() -> None:
    others = {
        f"{path.relative_to(ROOT).as_posix()}: {reason}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for reason in reasons(path.read_text(encoding="utf-8"))
        if reason not in REASONS
    }
    assert others == set()


def test_the_documentation_defines_both() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert all(f"`{reason}`" in text for reason in REASONS)


def test_another_reason_is_seen() -> None:
    text = "import a  # noqa: PLC0415 - see above\nimport b  # noqa: PLC0415\n"
    assert reasons(text) == ["see above", ""]
