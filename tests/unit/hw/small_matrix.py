"""A small matrix of one's own, and a machine to hold it against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ort_lite.hw.facts import DeviceFile, MachineFacts
from ort_lite.hw.read_matrix import read_matrix

if TYPE_CHECKING:
    from pathlib import Path

    from ort_lite.hw.schema import Matrix

TEXT = """\
schema: 1
project: mine
defaults:
  packages: [numpy]
providers:
  cpu: { ep: CPUExecutionProvider, device: CPU }
  npu: { ep: OpenVINOExecutionProvider, device: NPU, options: { device_type: NPU } }
machines:
  any: { runs_on: [ubuntu-24.04], agents: { queue: default }, require: { os: linux } }
  laptop:
    runs_on: [self-hosted, npu]
    setup: [sudo modprobe intel_vpu]
    require: { os: linux, pci: ["8086:643e"] }
axes:
  python: { "3.11": { python: "3.11" }, "3.10": { python: "3.10" } }
  embed: { "0": {}, "1": { config: { ep.context_embed_mode: "1" } } }
rows:
  - { id: plain, provider: cpu, machine: any, suites: [all], lane: quick }
  - { id: mixed, provider: cpu, machine: any, axes: { python: ["3.11"], embed: [] } }
  - { id: npu, provider: npu, machine: laptop, require: { driver: ">=32.0.100" } }
include:
  - { row: mixed, axes: { python: "3.10", embed: "0" } }
exclude:
  - { row: mixed, axes: { python: "3.11", embed: "1" } }
models:
  dense: { path: dense.onnx }
suites:
  all: { kind: models, models: [dense] }
states:
  plain: { state: expected }
  "mixed[python=3.11,embed=0]": { state: expected }
  "mixed[python=3.10,embed=0]": { state: expected }
  npu: { state: expected }
"""

FACTS = MachineFacts(
    os="linux",
    machine="x86_64",
    cpu="A CPU",
    cores=2,
    isa=("avx2",),
    pythons={"3.11": "python3.11"},
)
LAPTOP = MachineFacts(
    os="linux",
    machine="x86_64",
    cpu="Core Ultra",
    cores=8,
    isa=("avx2", "avx_vnni"),
    pci={"8086:643e": "NPU"},
    device_files=(DeviceFile(kind="NPU", path="/dev/accel/accel0", usable=True, group="render"),),
)


def matrix_of(folder: Path, text: str = TEXT) -> Matrix:
    path = folder / "hw_matrix.yaml"
    path.write_text(text, encoding="utf-8")
    return read_matrix(path)
