"""A project of its own with a matrix, a model, and an environment made without a network."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from system_limits import UNDER_WINE, WINDOWS
from unit.cli.conftest import write_dense

from ort_lite.cli.app import run_command
from ort_lite.hw.child_process import row_environ
from ort_lite.hw.environment import EnvironmentRecipe, ensure_environment

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples/example_ep"

MATRIX = """\
schema: 1
project: odd
defaults: {{ timeout_s: {timeout_s}, load_timeout_s: {timeout_s} }}
providers:
  cpu: {{ ep: CPUExecutionProvider, device: CPU }}
  odd: {{ ep: OddExecutionProvider, device: CPU }}
machines:
  any: {{ runs_on: [ubuntu-24.04], setup: ["echo made ready > ready.txt"] }}
axes:
  do:
    right: {{}}
    hang: {{ options: {{ do: hang }} }}
    crash: {{ options: {{ do: crash }} }}
    lie: {{ options: {{ do: lie }} }}
    newer: {{ options: {{ sdk: "1.1" }} }}
    other: {{ options: {{ chip: b }} }}
    roomy: {{ limits: {{ payload: {{ at_most: 1000, why: contexts are padded }} }} }}
    embedded: {{ config: {{ ep.context_embed_mode: "1" }} }}
    wrong-pin: {{ packages: ["./no-such-package-here"] }}
    other-pin: {{ require: {{ sdk: "==2.0" }} }}
rows:
  - {{ id: cpu, provider: cpu, machine: any, suites: [models] }}
  - {{ id: odd, provider: odd, machine: any, axes: {{ do: [] }}, suites: [{suites}] }}
models:
  dense: {{ path: dense.onnx, oracle: {oracle} }}
suites:
  models: {{ kind: models, models: [dense] }}
  bench: {{ kind: bench, models: [dense], runs: 2, against: cpu, thresholds: {thresholds} }}
cross_load:
  models: [dense]
  rows: ["odd*"]
  expect:
{cross}
{expectations}
states:
  cpu: {{ state: expected }}
  "odd[do=right]": {{ state: expected }}
  "odd[do=hang]": {{ state: expected }}
  "odd[do=crash]": {{ state: expected }}
  "odd[do=lie]": {{ state: expected }}
  "odd[do=newer]": {{ state: expected }}
  "odd[do=other]": {{ state: expected }}
  "odd[do=roomy]": {{ state: expected }}
  "odd[do=embedded]": {{ state: expected }}
  "odd[do=wrong-pin]": {{ state: expected }}
  "odd[do=other-pin]": {{ state: unsupported, reason: there is no version 2 }}
"""

CROSS = [
    ("*other]", "*other]", "optimal", ""),
    ("*", "*other]", "invalid_graph", "hardware_architecture"),
    ("*other]", "*", "invalid_graph", "hardware_architecture"),
    ("*newer]", "*newer]", "optimal", ""),
    ("*", "*newer]", "recompile_advised", ""),
    ("*newer]", "*", "recompile_advised", ""),
    ("*", "*", "optimal", ""),
]


@dataclass(frozen=True)
class OddProject:
    """A folder with hw_matrix.yaml and dense.onnx."""

    root: Path
    environments: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def file(self) -> Path:
        return self.root / "hw_matrix.yaml"

    @property
    def results(self) -> Path:
        return self.root / "results"

    def write(
        self,
        *,
        timeout_s: float = 60,
        oracle: str = "cpu",
        expectations: str = "",
        cross: list[tuple[str, str, str, str]] | None = None,
        bench: dict[str, float] | None = None,
    ) -> None:
        lines = [
            f'    - {{ from: "{a}", to: "{b}", verdict: {v}, reasons: [{r}], why: a rule }}'
            for a, b, v, r in cross or CROSS
        ]
        text = MATRIX.format(
            timeout_s=timeout_s,
            oracle=oracle,
            expectations=expectations,
            cross="\n".join(lines),
            suites="models" if bench is None else "models, bench",
            thresholds=json.dumps(bench or {}).replace('"', ""),
        )
        self.file.write_text(text, encoding="utf-8")

    def call(self, command: str, *arguments: object) -> tuple[int, dict[str, Any]]:
        """`ort-lite hw COMMAND --json`: its exit code and what it says."""
        told = ["hw", command, "-f", self.file, "--json", *arguments]
        self.capsys.readouterr()
        code = run_command([str(part) for part in told])
        return code, json.loads(self.capsys.readouterr().out)

    def run(self, *arguments: object) -> tuple[int, dict[str, dict[str, Any]]]:
        """`ort-lite hw run`: its exit code, and the results by row."""
        places = ["--out", self.results, "--environments", self.environments]
        code, told = self.call("run", *places, *arguments)
        return code, {row["row"]: row for row in told["rows"]}

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
        command = ["git", *who, "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where rows without pins find an environment: a venv that borrows this one's packages."""
    if UNDER_WINE:
        pytest.skip("tests under Wine have python.org's embeddable Python: no pip, no venv")
    cache = tmp_path_factory.mktemp("environments")
    recipe = EnvironmentRecipe(python=sys.executable, packages=(), install=(), root=cache)
    made = ensure_environment(recipe, cache, row_environ({}, {}, cache))
    paths = [sysconfig.get_path("purelib"), ROOT, EXAMPLE, Path(__file__).parent, cache / "eps"]
    pattern = "Lib/site-packages" if WINDOWS else "lib/python*/site-packages"
    (site,) = made.folder.glob(pattern)
    (site / "borrowed.pth").write_text("\n".join(map(str, paths)) + "\n", encoding="utf-8")
    info = cache / "eps" / "odd_ep-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-ep\nVersion: 1.0\n")
    group = "[ort_lite.execution_providers]\nOddExecutionProvider = odd_ep:FACTORY\n"
    (info / "entry_points.txt").write_text(group, encoding="utf-8")
    return cache


@pytest.fixture
def odd(
    tmp_path: Path, environments: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., OddProject]:
    """`odd(timeout_s=3)`: a project with that in its matrix."""

    def make(**settings: Any) -> OddProject:
        project = OddProject(tmp_path, environments, capsys)
        write_dense(tmp_path / "dense.onnx")
        project.write(**settings)
        return project

    return make
