"""OpenCL's devices as tests take them: one that fails its trial is skipped with that reason."""

from __future__ import annotations

from functools import cache

import pytest

from eps.opencl import FACTORY
from eps.opencl.options import OpenCLOptions
from eps.opencl.runtime.device import ListedDevice, find_devices, fitting_devices
from eps.opencl.trials.trial import problem_of
from ort_lite.status import EPFail


@cache
def all_devices() -> tuple[ListedDevice, ...]:
    """Every device that a driver lists; none where OpenCL is not here."""
    try:
        return find_devices()
    except EPFail:
        return ()


def device_names() -> list[str]:
    """As provider option `device` takes them."""
    return [found.name for found in all_devices()]


@cache
def first_working_device() -> ListedDevice:
    """What a session without options opens; an error where no device passes its trial."""
    working = tuple(device for device in find_devices() if not problem_of(device))
    assert working, f"no OpenCL device works here: {FACTORY.probe().reason}"
    return fitting_devices(working, OpenCLOptions())[0]


def cpu_names() -> list[str]:
    """As `device_names`, of CPUs alone: for what only their kernels do."""
    return [found.name for found in all_devices() if found.kind == "CPU"]


def skip_without_cpu_first() -> None:
    """Skip a test of what sessions do on CPUs where they open another device by default."""
    if first_working_device().kind != "CPU":
        pytest.skip("kernels of CPUs, and the first OpenCL device here is none")


@cache
def _problems() -> dict[str, str]:
    found = {f"{one.name} {one.platform.name.lower()}": problem_of(one) for one in all_devices()}
    return {key: problem for key, problem in found.items() if problem}


def reason_to_skip(parameter: object) -> str:
    """Why a test with this parameter cannot run here; "" for what names no failing device.

    Args:
        parameter: A device, its name, provider options, or "portable" or a path through a folder
            "pocl", which name PoCL.
    """
    wanted = parameter.name if isinstance(parameter, ListedDevice) else parameter
    wanted = wanted.get("platform") if isinstance(wanted, dict) else wanted
    if not isinstance(wanted, str):
        return ""
    is_pocl = wanted.lower().startswith("portable") or "pocl" in wanted.split("/")
    wanted = "portable" if is_pocl else wanted
    if wanted not in (*device_names(), "portable"):
        return ""
    if wanted == "portable" and not any("Portable" in f.platform.name for f in all_devices()):
        return "PoCL is not here"
    problems = _problems().items()
    return next((problem for key, problem in problems if wanted in key.split()), "")
