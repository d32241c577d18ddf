"""The matrix that `ort-lite hw init` writes for a user's own models."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ort_lite.context.quote_argument import quote_argument
from ort_lite.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEAD = """\
# Which hardware runs these models, and which context loads where.
#
#   ort-lite hw plan        what this machine can run, and why not the rest
#   ort-lite hw run         run it, each row in an environment of its own
#   ort-lite hw crossload   load every row's contexts on every other
#   ort-lite hw report      one HTML page of all that
#   ort-lite hw record DIR  make rows that passed at a clean commit `verified`
schema: 1
project: {project}

defaults:
{install}  packages: {packages}
  setup: {setup} # of every CI job
  tolerance: {{ share: 1.0e-3, floor: 1.0e-5 }} # of an output's largest value, plus
  timeout_s: 900

providers:
  cpu: {{ ep: CPUExecutionProvider, device: CPU }}
  openvino-cpu: {{ ep: OpenVINOExecutionProvider, device: CPU, options: {{ device_type: CPU }} }}
  openvino-gpu: {{ ep: OpenVINOExecutionProvider, device: GPU, options: {{ device_type: GPU }} }}
  openvino-npu: {{ ep: OpenVINOExecutionProvider, device: NPU, options: {{ device_type: NPU }} }}

machines:
  any: {{ about: any machine, runs_on: [ubuntu-24.04] }}
  intel-gpu: {{ about: a machine with an Intel GPU, runs_on: [self-hosted, intel-gpu] }}
  intel-npu: {{ about: a machine with an Intel NPU, runs_on: [self-hosted, intel-npu] }}

axes:
  openvino:
    "2026.4.1": {{ packages: ["openvino==2026.4.1"], require: {{ sdk: "==2026.4.1" }} }}

rows:
  - {{ id: cpu, provider: cpu, machine: any, suites: [models] }}
  - id: openvino-cpu
    provider: openvino-cpu
    machine: any
    axes: {{ openvino: ["2026.4.1"] }}
    suites: [models, bench]
  - id: openvino-gpu
    provider: openvino-gpu
    machine: intel-gpu
    axes: {{ openvino: ["2026.4.1"] }}
    suites: [models, bench]
  - id: openvino-npu
    provider: openvino-npu
    machine: intel-npu
    axes: {{ openvino: ["2026.4.1"] }}
    suites: [models, bench]
    # 3720: Meteor Lake, Arrow Lake; 4000: Lunar Lake; 5010: Panther Lake; 5020: Wildcat Lake
    require: {{ architecture: "4000" }}

# `inputs` is the path of a .npz file, or a shape for each input; dimensions left open are 1.
# `oracle` is onnxruntime, cpu, or a .npz file of the outputs that are right.
models:
"""

TAIL = """\

suites:
  models: {{ kind: models, models: {names} }}
  bench: {{ kind: bench, models: {names}, runs: 20, thresholds: {{ reload: 1.0 }} }}

cross_load:
  models: {names}
  rows: ["openvino-*"]
  expect:
    - {{ from: openvino-cpu*, to: openvino-cpu*, verdict: optimal, why: the same SDK and device }}
    - {{ from: openvino-gpu*, to: openvino-gpu*, verdict: optimal, why: the same SDK and device }}
    - {{ from: openvino-npu*, to: openvino-npu*, verdict: optimal, why: the same SDK and device }}
    - {{ from: "*", to: "*", verdict: invalid_graph, why: another device }}

states:
  cpu: {{ state: expected }}
  "openvino-cpu[openvino=2026.4.1]": {{ state: expected }}
  "openvino-gpu[openvino=2026.4.1]": {{ state: expected }}
  "openvino-npu[openvino=2026.4.1]": {{ state: expected }}
"""


def starter(project: str, models: Sequence[Path], source: Path | str) -> str:
    """The text of a matrix for `models`, paths as they shall stand in it.

    Args:
        project: Its name.
        models: At least one.
        source: Where rows install ort_lite from: a checkout, or a requirement for pip.
    """
    names = _names(models)
    packages = ["onnxruntime"]
    if isinstance(source, str):
        packages.insert(0, source)
        named = source.startswith("ort-lite")
        requirement = quote_argument(
            source.replace("ort-lite", "ort-lite[cli]", 1) if named else source
        )
        requirement += "" if named else ' "ort-lite[cli]"'
    else:
        packages += ["numpy", "onnx", "ml_dtypes", "blake3"]
        requirement = f"--editable {quote_argument(f'{source}[cli]')}"
    setup = json.dumps([f"python -m pip install {requirement}"])
    install = f"  install: {json.dumps(['-e', str(source)])}\n" if isinstance(source, Path) else ""
    head = HEAD.format(
        project=json.dumps(project), packages=json.dumps(packages), install=install, setup=setup
    )
    lines = [
        f"  {name}: {{ path: {json.dumps(path.as_posix())}, oracle: onnxruntime }}\n"
        for name, path in names.items()
    ]
    return head + "".join(lines) + TAIL.format(names=json.dumps(list(names)))


def installation_source() -> Path | str:
    """Origin of this ort_lite, from which a row's environment can install the same version.

    Returns:
        The checkout that it runs from; else a requirement for pip: of the wheel, folder or
        revision that pip recorded (PEP 610, direct_url.json), or of the version on the index.
    """
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return root
    try:
        recorded = distribution("ort-lite").read_text("direct_url.json")
    except PackageNotFoundError:
        recorded = None
    return _requirement(json.loads(recorded)) if recorded else f"ort-lite=={VERSION}"


def _requirement(direct_url: Mapping[str, Any]) -> str:
    """A requirement for what pip installed from a URL (PEP 440, direct references)."""
    url = direct_url["url"]
    revision = direct_url.get("vcs_info")
    if revision is not None:
        revised = f"{revision['vcs']}+{url}@{revision['commit_id']}"
        # Older versions of pip refuse a name before a URL that has no host.
        return revised if url.startswith("file:///") else f"ort-lite @ {revised}"
    digest = direct_url.get("archive_info", {}).get("hashes", {}).get("sha256")
    return f"ort-lite @ {url}#sha256={digest}" if digest else f"ort-lite @ {url}"


def _names(models: Sequence[Path]) -> dict[str, Path]:
    """A name of its own for each model."""
    named: dict[str, Path] = {}
    for path in models:
        name, count = path.stem, 2
        while name in named:
            name, count = f"{path.stem}-{count}", count + 1
        named[name] = path
    return named
