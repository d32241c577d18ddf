"""How trials of devices went, kept in the user's cache folder: one JSON file a device.

    {"format": 1, "device": {...}, "problem": "..."}

An empty problem is a device that works; the file of another ends with .failed.json, so that a
reload sees at a glance that there is none. A file is written whole; one that is damaged, or for
something else, counts for nothing.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from blake3 import blake3

from eps.opencl.runtime.pocl_target import chosen_cpu
from eps.opencl.trials.failures import FAILED_ENDING
from ort_lite.ep import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.runtime.device import ListedDevice

log = get_logger(__name__)

FORMAT = 1
VARIABLES = ("POCL_", "CL_CONFIG_", "OCL_")
"""Beginnings of environment variables that drivers read."""
_ENDINGS = (FAILED_ENDING, ".json")
_MOST_BYTES = 1 << 16
_MODALIAS = "/sys/devices/system/cpu/modalias"


def facts_of(listed: ListedDevice, environ: Mapping[str, str]) -> dict[str, str]:
    """All that decides how a trial goes: driver, device, CPU, and the drivers' variables."""
    device, platform = listed.device, listed.platform
    settings = sorted(f"{k}={v}" for k, v in environ.items() if k.startswith(VARIABLES))
    return {
        "platform": platform.name,
        "platform_version": platform.version,
        "device": device.name,
        "device_version": device.version,
        "driver": device.driver_version,
        "kind": listed.kind,
        "vector": f"{device.native_vector_width_float} {device.native_vector_width_int}",
        "compiles_for": chosen_cpu(device),
        "cpu": _cpu(),
        "environment": " ".join(settings),
    }


def read_problem(facts: Mapping[str, str], folder: str) -> str | None:
    """The problem that a trial found: "" if none, None if there was no trial."""
    stem = _stem(facts, folder)
    for ending in _ENDINGS:
        problem = _problem_in(stem + ending, facts)
        if problem is not None:
            return problem
    return None


def _problem_in(path: str, facts: Mapping[str, str]) -> str | None:
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    problem = content.get("problem")
    return problem if isinstance(problem, str) and content.get("device") == facts else None


def write_problem(facts: Mapping[str, str], folder: str, problem: str) -> None:
    """Keep what a trial found; where that cannot be, the next process tries again."""
    from pathlib import Path  # noqa: PLC0415 - lazy: reload

    from ctx_formats.atomic_write import write_file  # noqa: PLC0415 - lazy: rare

    content = {"format": FORMAT, "device": dict(facts), "problem": problem}
    stem = _stem(facts, folder)
    ours, other = _ENDINGS if problem else _ENDINGS[::-1]
    try:
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(Path(stem + ours), json.dumps(content, indent=1).encode(), replace=True)
        Path(stem + other).unlink(missing_ok=True)
    except OSError as exc:
        log.debug("%s is not written, the device will be tried again: %s", stem + ours, exc)


def _stem(facts: Mapping[str, str], folder: str) -> str:
    digest = blake3(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return os.path.join(folder, digest[:24])


def _cpu() -> str:
    """Vendor, family, model and features, as the system names them for its own modules."""
    try:
        with open(_MODALIAS, "rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace").strip()
    except OSError:
        return os.environ.get("PROCESSOR_IDENTIFIER", sys.platform)
