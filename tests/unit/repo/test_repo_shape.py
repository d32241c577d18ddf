"""The shape of the repository: what ruff and import-linter have no rule for."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("ctx_formats", "ort_lite", "eps")
SCRIPTS = ("examples", "benchmarks")
CODE = sorted(
    path
    for folder in (*PACKAGES, *SCRIPTS, "tests")
    for path in (ROOT / folder).rglob("*.py")
    if "__pycache__" not in path.parts
)
TEXTS = sorted(
    path
    for pattern in (
        "*.md",
        "*.toml",
        "*.yaml",
        "*.txt",
        "Makefile",
        ".github/**/*.yml",
        "docs/**/*.md",
    )
    for path in ROOT.glob(pattern)
)
MAX_LINES = 500
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "stuff"}
SHARED = {"numpy", "onnx", "ml_dtypes", "blake3", "re2", "PIL", "cryptography"}
"""Dependencies of the project itself, and optional ones without a device: these are not SDKs."""


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> set[str]:
    """Top-level packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).split(".")[0])
    return found


def test_there_is_code_to_look_at() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in CODE} >= {*PACKAGES, "tests"}


def test_no_file_is_longer_than_500_lines() -> None:
    lengths = {named(path): len(path.read_bytes().splitlines()) for path in CODE}
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_every_module_opens_with_its_duty() -> None:
    silent = [
        named(path)
        for path in CODE
        if path.relative_to(ROOT).parts[0] != "tests"
        and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_every_file_is_named_after_one_duty() -> None:
    vague = [named(path) for path in CODE if VAGUE & set(path.stem.lower().split("_"))]
    assert vague == []


@pytest.mark.parametrize("folder", sorted(p.parent.name for p in ROOT.glob("eps/*/__init__.py")))
def test_an_ep_with_an_sdk_turns_its_errors_into_ours_in_one_place(folder: str) -> None:
    ours = {*PACKAGES, *SHARED, *sys.stdlib_module_names}
    files = sorted((ROOT / "eps" / folder).rglob("*.py"))
    sdks = set().union(*(imported(path) for path in files)) - ours
    has_translation = (ROOT / "eps" / folder / "sdk_errors.py").is_file()
    assert has_translation or not sdks, f"eps/{folder} imports {sorted(sdks)}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_tells_type_checkers_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_no_file_names_a_place_on_somebody_s_machine() -> None:
    home = re.compile("/" + "(home|root|Users)/|[A-Z]:" + r"\\Users")
    found = [named(p) for p in (*CODE, *TEXTS) if home.search(p.read_text(encoding="utf-8"))]
    assert found == []


def test_ctx_formats_takes_bytes_from_files_and_nothing_from_us() -> None:
    ours_or_heavy = {"ort_lite", "eps", "numpy", "onnx"}
    found = {
        named(path): sorted(imported(path) & ours_or_heavy)
        for path in CODE
        if path.relative_to(ROOT).parts[0] == "ctx_formats"
    }
    assert {name: modules for name, modules in found.items() if modules} == {}


def test_every_decision_has_a_number_of_its_own() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [path.name[:4] for path in decisions]
    assert len(set(numbers)) == len(numbers), numbers
    for path in decisions:
        title = path.read_text(encoding="utf-8").partition("\n")[0]
        assert title.startswith(f"# {int(path.name[:4])}. "), f"{named(path)}: {title}"
