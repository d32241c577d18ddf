"""Doctor finds where an NPU or GPU got lost, on machines built of files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ort_lite.cli.accelerator_checks import check_gpu, check_npu
from ort_lite.cli.checks import State

if TYPE_CHECKING:
    from pathlib import Path


def pci(root: Path, address: str, kind: str, vendor: str, device: str) -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, value in (("class", kind), ("vendor", vendor), ("device", device)):
        (folder / name).write_text(f"{value}\n")


def touch(root: Path, path: str) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch()
    return target


def meteor_lake(root: Path) -> None:
    pci(root, "0000:00:0b.0", "0x120000", "0x8086", "0x7d1d")
    pci(root, "0000:00:02.0", "0x030000", "0x8086", "0x7d55")


def test_a_machine_without_accelerators_has_none(tmp_path: Path) -> None:
    pci(tmp_path, "0000:00:00.0", "0x060000", "0x8086", "0x1237")
    (npu,), (gpu,) = check_npu(tmp_path), check_gpu(tmp_path)
    assert (npu.state, gpu.state) == (State.ABSENT, State.ABSENT)
    assert npu.fix == gpu.fix == ""


def test_a_chip_without_its_kernel_driver_names_the_driver(tmp_path: Path) -> None:
    meteor_lake(tmp_path)
    (npu,) = check_npu(tmp_path)
    assert npu.state is State.BROKEN
    assert npu.found == "Intel 8086:7d1d, but /dev/accel does not exist"
    assert "modprobe intel_vpu" in npu.fix


def test_a_driver_without_its_libraries_names_the_packages(tmp_path: Path) -> None:
    meteor_lake(tmp_path)
    touch(tmp_path, "dev/accel/accel0")
    npu, loader, driver = check_npu(tmp_path)
    assert (npu.state, npu.found) == (State.OK, "Intel 8086:7d1d, accel0")
    assert (loader.state, loader.fix) == (State.BROKEN, "install the package level-zero")
    assert (driver.state, driver.fix) == (State.BROKEN, "install intel-level-zero-npu")


def test_a_complete_npu_is_fine(tmp_path: Path) -> None:
    meteor_lake(tmp_path)
    touch(tmp_path, "dev/accel/accel0")
    touch(tmp_path, "usr/lib/x86_64-linux-gnu/libze_loader.so.1.24")
    touch(tmp_path, "usr/lib/x86_64-linux-gnu/libze_intel_npu.so.1")
    checks = check_npu(tmp_path)
    assert {check.state for check in checks} == {State.OK}
    assert checks[1].found == "/usr/lib/x86_64-linux-gnu/libze_loader.so.1.24"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may open every node"
)
def test_a_node_that_may_not_be_opened_names_its_group(tmp_path: Path) -> None:
    meteor_lake(tmp_path)
    node = touch(tmp_path, "dev/accel/accel0")
    node.chmod(0)
    npu = check_npu(tmp_path)[0]
    assert npu.state is State.BROKEN
    assert f"usermod -aG {node.group()}" in npu.fix


def test_a_gpu_without_an_opencl_driver_says_so(tmp_path: Path) -> None:
    meteor_lake(tmp_path)
    touch(tmp_path, "dev/dri/renderD128")
    gpu, opencl = check_gpu(tmp_path)
    assert (gpu.state, gpu.found) == (State.OK, "Intel 8086:7d55, renderD128")
    assert opencl.state is State.BROKEN
    touch(tmp_path, "etc/OpenCL/vendors/intel.icd")
    assert check_gpu(tmp_path)[1].found == "intel"


def test_a_device_that_vanishes_while_one_looks_is_left_out(tmp_path: Path) -> None:
    meteor_lake(tmp_path)
    (tmp_path / "sys/bus/pci/devices/0000:00:0b.0/vendor").unlink()
    (npu,) = check_npu(tmp_path)
    assert npu.state is State.ABSENT
