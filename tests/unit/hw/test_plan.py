"""The plan says what runs here, and why the rest does not; CI systems get jobs of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from system_limits import WINDOWS, needs_posix
from unit.hw.small_matrix import FACTS, LAPTOP, TEXT, matrix_of

from ctx_formats.identity import HardwareIdentity
from ort_lite.cli.app import run_command
from ort_lite.hw.errors import MatrixError
from ort_lite.hw.facts import _windows_pci, find_library, read_facts
from ort_lite.hw.patterns import is_within
from ort_lite.hw.plan import FORMATS, make_plan
from ort_lite.hw.requirements import device_lacks
from ort_lite.hw.rows import expand
from ort_lite.hw.windows_facts import list_pci_devices

if TYPE_CHECKING:
    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.plan import PlannedRow


def plan_of(tmp_path: Path, facts: MachineFacts = FACTS, text: str = TEXT) -> dict[str, PlannedRow]:
    matrix = matrix_of(tmp_path, text)
    return {one.row.id: one for one in make_plan(matrix, expand(matrix).values(), facts)}


def test_what_a_machine_lacks_keeps_a_row_from_running(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert plan["plain"].is_runnable
    assert plan["npu"].why_not == (
        "needs the chip 8086:643e (NPU 4000, Lunar Lake); "
        "the PCI bus has no accelerator or display controller",
        "needs an NPU; /dev/accel has no device node",
    )
    assert "needs Python 3.10; found 3.1" in plan["mixed[python=3.10,embed=0]"].why_not[0]


def test_the_right_laptop_runs_the_row(tmp_path: Path) -> None:
    assert plan_of(tmp_path, LAPTOP)["npu"].is_runnable


ON_WINDOWS = TEXT.replace("require: { os: linux, pci:", "require: { os: windows, pci:")
WINDOWS_LAPTOP = replace(LAPTOP, os="windows", device_files=())


@pytest.mark.parametrize(
    ("pci", "undriven", "why_not"),
    [
        ({"8086:643e": "NPU"}, (), ()),
        (
            {"8086:643e": "NPU"},
            ("8086:643e",),
            ("needs an NPU with a driver; 8086:643e (NPU 4000, Lunar Lake) has none",),
        ),
        (
            {"8086:64a0": "GPU"},
            (),
            (
                "needs the chip 8086:643e (NPU 4000, Lunar Lake); the PCI bus has 8086:64a0",
                "needs an NPU; Windows lists none on the PCI bus",
            ),
        ),
    ],
)
def test_a_windows_laptop_needs_the_chip_and_its_driver(
    tmp_path: Path, pci: dict[str, str], undriven: tuple[str, ...], why_not: tuple[str, ...]
) -> None:
    facts = replace(WINDOWS_LAPTOP, pci=pci, undriven=undriven)
    assert plan_of(tmp_path, facts, ON_WINDOWS)["npu"].why_not == why_not


def test_of_another_system_nothing_else_is_looked_at(tmp_path: Path) -> None:
    assert plan_of(tmp_path, FACTS, ON_WINDOWS)["npu"].why_not == ("needs windows, this is linux",)


def test_hardware_ids_tell_chip_and_kind() -> None:
    npu = r"PCI\VEN_8086&DEV_643E&SUBSYS_00000000&REV_04", r"PCI\VEN_8086&DEV_643E&CC_1200"
    gpu = (r"PCI\VEN_8086&DEV_64A0&CC_0300",)
    disk = (r"PCI\VEN_144D&DEV_A80A&CC_0108",)
    devices = [(npu, "npu"), (gpu, "BasicDisplay"), (disk, "stornvme"), ((), "")]
    assert _windows_pci(devices) == ({"8086:643e": "NPU", "8086:64a0": "GPU"}, ("8086:64a0",))


@pytest.mark.skipif(not WINDOWS, reason="SetupAPI and the registry are Windows' own")
def test_windows_lists_its_processor_and_devices() -> None:
    facts = read_facts()
    assert facts.os == "windows"
    assert facts.cpu
    assert "sse4_2" in facts.isa or facts.machine != "x86_64"
    assert isinstance(list_pci_devices(), tuple)
    assert find_library(Path("/"), "kernel32.dll")


def test_an_unsupported_row_does_not_run(tmp_path: Path) -> None:
    text = TEXT.replace(
        "npu: { state: expected }", "npu: { state: unsupported, reason: no NPU yet }"
    )
    assert plan_of(tmp_path, LAPTOP, text)["npu"].why_not == ("unsupported: no NPU yet",)


def test_a_device_is_held_to_driver_and_architecture(tmp_path: Path) -> None:
    row = expand(matrix_of(tmp_path))["npu"]
    assert device_lacks(row, HardwareIdentity(driver_version="32.0.100.3104")) == ()
    old = HardwareIdentity(driver_version="31.9")
    assert device_lacks(row, old) == ("needs driver >=32.0.100, found '31.9'",)


@pytest.mark.parametrize(
    ("version", "text", "inside"),
    [
        ("2026.4.1", "==2026.4.1", True),
        ("2026.4", "==2026.4.0", True),
        ("2026.10.0", ">=2026.9", True),
        ("32.0.100.3104", ">=32.0.100,<33", True),
        ("OpenCL 3.0 PoCL", "<3", False),
        ("unknown", ">=0", False),
    ],
)
def test_versions_are_compared_number_by_number(version: str, text: str, *, inside: bool) -> None:
    assert is_within(version, text) is inside


def test_every_ci_gets_one_job_for_each_row(tmp_path: Path) -> None:
    plan = list(plan_of(tmp_path).values())
    gha = json.loads(FORMATS["gha"](plan))["include"]
    assert [job["id"] for job in gha] == [one.row.id for one in plan]
    assert gha[-1]["runs_on"] == ["self-hosted", "npu"]
    gitlab = yaml.safe_load(FORMATS["gitlab"](plan))
    assert gitlab["hw npu"]["script"] == [
        "sudo modprobe intel_vpu",
        "ort-lite hw run npu --out hw-results",
    ]
    buildkite = yaml.safe_load(FORMATS["buildkite"](plan))["steps"]
    assert buildkite[0]["agents"] == {"queue": "default"}
    azure = yaml.safe_load(FORMATS["azure"](plan))["jobs"]
    assert azure[0]["pool"] == {"vmImage": "ubuntu-24.04"}
    assert azure[3]["pool"] == {"name": "self-hosted", "demands": ["npu"]}
    assert len(gitlab) == len(buildkite) == len(azure) == len(plan)


def test_more_jobs_than_github_takes_are_refused(tmp_path: Path) -> None:
    plan = list(plan_of(tmp_path).values()) * 65
    with pytest.raises(
        MatrixError, match="260 rows, and a matrix in GitHub Actions has at most 256"
    ):
        FORMATS["gha"](plan)


def test_a_program_reads_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix_of(tmp_path)
    assert run_command(["hw", "plan", "-f", str(tmp_path / "hw_matrix.yaml"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema_version"] == 1
    assert {"id", "runnable", "why_not"} <= set(told["rows"][0])


def test_a_wrong_matrix_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hw_matrix.yaml"
    assert run_command(["hw", "plan", "-f", str(file)]) == 2
    file.write_text(TEXT.replace("project", "projekt"), "utf-8")
    assert run_command(["hw", "plan", "-f", str(file)]) == 2
    assert "unknown key 'projekt'; did you mean 'project'?" in capsys.readouterr().err


def test_facts_are_read_from_the_machine_s_own_files(tmp_path: Path) -> None:
    npu = tmp_path / "sys/bus/pci/devices/0000:00:0b.0"
    npu.mkdir(parents=True)
    for name, text in {"class": "0x120000", "vendor": "0x8086", "device": "0x643e"}.items():
        (npu / name).write_text(f"{text}\n")
    (tmp_path / "dev/accel").mkdir(parents=True)
    (tmp_path / "dev/accel/accel0").touch()
    (tmp_path / "usr/lib64").mkdir(parents=True)
    (tmp_path / "usr/lib64/libze_loader.so.1").touch()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name : Core Ultra\nflags : avx2 avx_vnni\n")
    facts = read_facts(tmp_path, ["libze_loader.so.1", "libodd.so.7"])
    assert (facts.cpu, facts.isa, facts.pci) == (
        "Core Ultra",
        ("avx2", "avx_vnni"),
        {"8086:643e": "NPU"},
    )
    assert [node.path for node in facts.device_files] == ["/dev/accel/accel0"]
    assert facts.libraries["libze_loader.so.1"] == "/usr/lib64/libze_loader.so.1"
    assert facts.libraries["libodd.so.7"] == find_library(tmp_path, "libodd.so.7") == ""


def test_an_npu_of_another_platform_is_named(tmp_path: Path) -> None:
    other = replace(LAPTOP, pci={"8086:fd3e": "NPU"}, device_files=())
    assert plan_of(tmp_path, other)["npu"].why_not == (
        "needs the chip 8086:643e (NPU 4000, Lunar Lake); "
        "the PCI bus has 8086:fd3e (NPU 5020, Wildcat Lake)",
        "needs an NPU; /dev/accel has no device node; "
        "the PCI bus has 8086:fd3e (NPU 5020, Wildcat Lake), without a driver",
    )


@needs_posix
def test_an_interpreter_that_does_not_start_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, line in {"python3.14": "exit 127", "python3.15": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(read_facts().pythons) == ["3.15"]


def test_this_machine_is_told_in_the_words_of_requirements(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["hw", "probe", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    words = {"os", "machine", "isa", "pci", "npus", "libraries", "device_files", "devices"}
    assert words <= set(told)
    assert any(d["execution_provider"] == "CPUExecutionProvider" for d in told["devices"])
