"""The matrix promises nothing that it cannot show, and tests of hardware name its rows."""

from __future__ import annotations

import importlib.util
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ort_lite.hw.errors import MatrixError
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.requirements import NPU_CHIPS
from ort_lite.hw.rows import expand
from ort_lite.hw.schema import Require
from ort_lite.providers.catalog import entries

if TYPE_CHECKING:
    from ort_lite.hw.rows import ExpandedRow

ROOT = Path(__file__).parents[3]
FILE = ROOT / "hw_matrix.yaml"
MATRIX = read_matrix(FILE)
ROWS = expand(MATRIX)
IDS = [row.row for row in ROWS.values()]


@pytest.fixture(scope="module")
def rules() -> Any:
    """tests/conftest.py as a module, for its functions."""
    spec = importlib.util.spec_from_file_location("conftest_rules", ROOT / "tests/conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_a_row_names_an_ep_and_options_that_there_are(row: ExpandedRow) -> None:
    if row.ep not in entries():
        assert MATRIX.states[row.id].state == "unsupported"
        return
    assert set(row.options) <= set(entries()[row.ep].load().options)


def test_a_verified_row_shows_its_run(tmp_path: Path) -> None:
    text = FILE.read_text("utf-8")
    hoped = text.replace("    state: expected\n", "    state: verified\n", 1)
    assert hoped != text
    (tmp_path / "hw_matrix.yaml").write_text(hoped, "utf-8")
    with pytest.raises(MatrixError, match="verified without evidence"):
        read_matrix(tmp_path / "hw_matrix.yaml")


def test_every_npu_that_the_vendor_names_has_a_row_with_its_chips() -> None:
    promised = {
        row.row: {chip for require in row.requires for chip in require.pci}
        for row in ROWS.values()
        if row.device == "NPU"
    }
    named: dict[str, set[str]] = {}
    for chip, npu in NPU_CHIPS.items():
        for end in ("", "-windows"):
            named.setdefault(f"openvino-npu-{npu.platform}{end}", set()).add(chip)
    assert promised == named
    for row in (r for r in ROWS.values() if r.device == "NPU"):
        (platform,) = {r.architecture for r in row.requires if r.architecture}
        assert platform in row.row.split("-")
        assert {r.os for r in row.requires if r.os} == {
            "windows" if row.row.endswith("-windows") else "linux"
        }


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
    row = replace(next(iter(ROWS.values())), device="ACCELERATOR", python="", requires=())
    facts, probes = rules.read_facts(), rules.catalog.probe_all()
    assert rules._lacks(row, facts, probes).startswith(
        "needs a ACCELERATOR, CPUExecutionProvider found CPU"
    )
    other = replace(row, device="CPU", requires=(Require(architecture="4000"),))
    assert rules._lacks(other, facts, probes).startswith("needs architecture 4000, found ")


def test_a_required_ep_that_is_not_installed_is_named(rules: Any) -> None:
    assert "no entry point of that name" in rules._why_missing("cuda")


def test_a_test_cannot_reach_the_network() -> None:
    with socket.socket() as opened, pytest.raises(AssertionError, match="reached for the network"):
        opened.connect(("127.0.0.1", 9))
