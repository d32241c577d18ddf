"""The conformance suite finds what it is there to find."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from plugin.installed_site import in_a_child

from ort_lite.providers import catalog

if TYPE_CHECKING:
    from plugin.installed_site import Site

FAULTY = Path(__file__).with_name("faulty_eps.py")
SUITE = """
import faulty_eps
from ort_lite.testing import EpConformance

def held_to_the_promises(fault):
    factory = getattr(faulty_eps, f"{fault.__name__.upper()}_FACTORY")
    return type(f"Test{fault.__name__}", (EpConformance,), {"factory": property(lambda _: factory)})

for fault in faulty_eps.FAULTS:
    globals()[f"Test{fault.__name__}"] = held_to_the_promises(fault)
"""


def faults() -> dict[str, str]:
    """Class names to tests, read from the source: it is importable where it is installed."""
    table = FAULTY.read_text(encoding="utf-8").partition("FAULTS = {")[2].partition("\n}")[0]
    return dict(re.findall(r'(\w+): "([^"]+)"', table))


@pytest.fixture
def faulty(installed: Site) -> Site:
    """The faulty EPs, installed under a name each."""
    shutil.copy(FAULTY, installed.folder)
    points = {f"{name}ExecutionProvider": f"faulty_eps:{name.upper()}_FACTORY" for name in faults()}
    installed.add_distribution("faulty-eps", {catalog.GROUP: points})
    return installed


def test_every_fault_is_found_by_the_test_for_it(faulty: Site, tmp_path: Path) -> None:
    (tmp_path / "test_faults.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n", encoding="utf-8")
    chosen = [f"test_faults.py::Test{name}::{test}" for name, test in faults().items()]
    command = ["-m", "pytest", "-rA", "--tb=short", "-p", "no:cacheprovider", *chosen]
    done = in_a_child(faulty, *command, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) (\S+)", done.stdout, re.MULTILINE)
    assert sorted(found) == sorted(("FAILED", name) for name in chosen), done.stdout


def test_there_is_a_fault_for_every_kind_of_promise() -> None:
    assert len(faults()) >= 19
