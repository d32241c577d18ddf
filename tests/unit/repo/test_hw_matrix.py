"""The matrix promises nothing that it cannot show, and tests of hardware name its rows."""

from __future__ import annotations

import importlib.util
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from ort_lite.catalog import entries

ROOT = Path(__file__).parents[3]
ROWS: list[dict[str, Any]] = yaml.safe_load((ROOT / "hw_matrix.yaml").read_text("utf-8"))["rows"]
IDS = [row["id"] for row in ROWS]
KINDS = {"CPU", "GPU", "NPU", "ACCELERATOR"}


@pytest.fixture(scope="module")
def rules() -> Any:
    """tests/conftest.py as a module, for its functions."""
    spec = importlib.util.spec_from_file_location("conftest_rules", ROOT / "tests/conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_row_has_a_name_of_its_own() -> None:
    assert sorted(set(IDS)) == sorted(IDS)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_says_what_it_is_about_and_what_it_needs(row: dict[str, Any]) -> None:
    assert row["ep"] in entries()
    assert row["sdk"]
    assert row["requires"]["kind"] in KINDS
    options = entries()[row["ep"]].load().options
    assert set(row.get("options", {})) <= set(options)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_claims_no_more_than_it_shows(row: dict[str, Any]) -> None:
    assert row["state"] in {"expected", "unsupported", "verified"}
    if row["state"] == "unsupported":
        assert row["reason"]
    if row["state"] == "verified":
        assert set(row["evidence"]) >= {"date", "identity", "commit"}


def test_every_test_of_hardware_names_a_row(rules: Any) -> None:
    uses = {
        (path.relative_to(ROOT).as_posix(), row)
        for path in (ROOT / "tests").rglob("*.py")
        for row in re.findall(r'mark\.hw\("([^"]+)"', path.read_text("utf-8"))
    }
    strangers = {use for use in uses if not any(f"{i}-".startswith(f"{use[1]}-") for i in IDS)}
    assert strangers == set()


def test_a_row_of_the_cpu_runs_here(rules: Any) -> None:
    assert rules._unmet("cpu") == ""


def test_a_row_that_is_not_in_the_file_is_a_mistake(rules: Any) -> None:
    with pytest.raises(pytest.UsageError, match=r"hw_matrix\.yaml has no row 'npu-of-mars'"):
        rules._unmet("npu-of-mars")


def test_what_a_machine_lacks_is_named(rules: Any) -> None:
    row = {"ep": "CPUExecutionProvider", "requires": {"kind": "NPU", "architecture": "4000"}}
    lacks = rules._lacks(row, rules.catalog.probe_all())
    assert lacks.startswith("needs a NPU 4000, CPUExecutionProvider found CPU ")


def test_a_required_ep_that_is_not_installed_is_named(rules: Any) -> None:
    assert "no entry point of that name" in rules._why_missing("cuda")


def test_a_test_cannot_reach_the_network() -> None:
    with socket.socket() as opened, pytest.raises(AssertionError, match="reached for the network"):
        opened.connect(("127.0.0.1", 9))
