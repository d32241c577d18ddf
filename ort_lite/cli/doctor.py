"""`ort-lite doctor`: checks this machine's setup and suggests fixes."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ort_lite.cli.checks import Check, State
from ort_lite.cli.device_choice import (
    device_option,
    parse_device,
    probe_installed,
    select_devices,
)
from ort_lite.cli.exit_codes import CommandError, ExitCode
from ort_lite.cli.output import json_option, print_json, print_line, print_table, progress
from ort_lite.cpu_baseline import baseline_problem
from ort_lite.numpy_baseline import numpy_problem
from ort_lite.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ort_lite.ep.factory import DeviceInfo, Probe

PACKAGES: Mapping[str, str] = {
    "numpy": "",
    "onnx": "",
    "ml_dtypes": "",
    "blake3": "",
    "openvino": "openvino",
    "pyopencl": "opencl",
    "cryptography": "sign",
}
"""Package to the extra that installs it; "" for packages that are always installed."""

ISA_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_tile", "asimd", "sve")


@click.command(short_help="Check this machine's setup.")
@device_option("Require a device of this kind: exit code 3 if it is absent.")
@json_option
def doctor(*, device: str, as_json: bool) -> ExitCode:
    """Check this machine from Python to its devices, and suggest fixes.

    Exit code 3 if something is broken. Absent devices and packages are not errors, except the
    device that --device requires.
    """
    if device:
        parse_device(device)
    with progress("checking this machine"):
        checks = tuple(_checks(device))
    code = ExitCode.NO_HARDWARE if _any_broken(checks) else ExitCode.OK
    if as_json:
        print_json({"checks": [asdict(check) for check in checks], "exit_code": int(code)})
        return code
    print_table(("", "check", "found"), [(c.state.value, c.name, c.found) for c in checks])
    for check in checks:
        if check.fix:
            print_line(f"{check.name}: {check.fix}")
    return code


def _any_broken(checks: tuple[Check, ...]) -> bool:
    return any(check.state is State.BROKEN for check in checks)


def _checks(required: str) -> Iterator[Check]:
    from ort_lite.cli.accelerator_checks import (
        check_gpu,
        check_npu,
        check_windows_npu,
        windows_npu_drivers,
    )

    ok = State.OK
    yield Check(name="ort-lite", state=ok, found=VERSION)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield Check(name="Python", state=ok, found=f"{python} on {_system()}")
    problem = baseline_problem()
    yield Check(
        name="CPU",
        state=State.BROKEN if problem else ok,
        found=_cpu(Path("/")),
        fix=problem,
    )
    yield from (_package(name, extra) for name, extra in PACKAGES.items())
    if not problem:  # their libraries would end this process
        yield from _providers(required)
    if platform.system() == "Linux":
        yield from check_npu(Path("/"), _version("openvino"))
        yield from check_gpu(Path("/"))
    if platform.system() == "Windows":
        yield from check_windows_npu(windows_npu_drivers())


def _version(package: str) -> str:
    """Version of an installed package; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _package(name: str, extra: str) -> Check:
    installed = _version(name)
    problem = numpy_problem(installed) if installed and name == "numpy" else ""
    if problem:
        return Check(name=name, state=State.BROKEN, found=installed, fix=problem)
    if installed:
        return Check(name=name, state=State.OK, found=installed)
    return Check(
        name=name,
        state=State.ABSENT if extra else State.BROKEN,
        found="not installed",
        fix=f'pip install "ort-lite[{extra}]"' if extra else "pip install ort-lite",
    )


def _providers(required: str) -> Iterator[Check]:
    """Checks of execution providers, and of the device that --device requires."""
    probes, broken = probe_installed()
    if required:
        yield _required_device(probes, required)
    for ep, probe in probes.items():
        names = ", ".join(map(_name_device, probe.devices))
        state = State.OK if probe.devices else State.ABSENT
        summary = "; ".join(part for part in (names, probe.reason) if part)
        yield Check(name=ep, state=state, found=summary)
    for ep, problem in broken.items():
        fix = "reinstall the package that provides it"
        yield Check(name=ep, state=State.BROKEN, found=problem, fix=fix)


def _name_device(device: DeviceInfo) -> str:
    """Name and description; the description alone where it begins with the name."""
    if device.description.startswith(device.name):
        return device.description
    return f"{device.name} ({device.description})"


def _required_device(probes: Mapping[str, Probe], text: str) -> Check:
    name = f"{text.upper()} device"
    try:
        selected = select_devices(probes, text)
    except CommandError as exc:
        fix = "see what the checks of execution providers and devices found"
        return Check(name=name, state=State.BROKEN, found=str(exc), fix=fix)
    names = [f"{d.name} of {ep}" for ep, probe in selected.items() for d in probe.devices]
    return Check(name=name, state=State.OK, found=", ".join(names))


def _system() -> str:
    """Operating system, machine and C library: `Linux 6.8.0, x86_64, glibc 2.39`."""
    version = re.match(r"[\d.]*", platform.release())
    system = f"{platform.system()} {version[0] if version else ''}".strip()
    libc = " ".join(platform.libc_ver()).strip()
    return ", ".join(part for part in (system, platform.machine(), libc) if part)


def _cpu(root: Path) -> str:
    """CPU name, cores and relevant instruction sets, as Linux reports them."""
    name, flags = platform.machine(), ""
    try:
        lines = (root / "proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []  # not Linux
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        elif key.strip() in ("flags", "Features"):
            flags = ", ".join(flag for flag in ISA_FLAGS if flag in value.split())
    if platform.system() == "Windows":
        from ort_lite.hw.windows_facts import read_processor

        known, features = read_processor()
        name, flags = known or name, ", ".join(flag for flag in ISA_FLAGS if flag in features)
    cores = f"{os.cpu_count()} logical cores"
    return "; ".join(part for part in (name, cores, flags) if part)
