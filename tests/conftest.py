"""What every test has: real models, no network, and hardware that is there or is named."""

from __future__ import annotations

import os
import signal
import socket
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from model_set.example_inputs import make_inputs
from model_set.manifest import load_manifest
from model_set.store import ensure_models
from opencl_devices import reason_to_skip

from eps.openvino.sdk.libraries import load_newest_tbb
from ort_lite.hw.facts import read_facts
from ort_lite.hw.plan import required_libraries
from ort_lite.hw.read_matrix import read_matrix
from ort_lite.hw.requirements import device_lacks, machine_lacks
from ort_lite.hw.rows import expand
from ort_lite.providers import catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import numpy as np

    from ort_lite.ep.factory import Probe
    from ort_lite.hw.facts import MachineFacts
    from ort_lite.hw.rows import ExpandedRow

    Array = np.ndarray[Any, np.dtype[Any]]

ROOT = Path(__file__).parents[1]

load_newest_tbb()  # some tests import openvino themselves, before any session does

REQUIRED = "ORT_LITE_REQUIRE_EPS"
"""Environment variable: comma-separated folders of eps/ that must work here, or nothing runs."""

SDKS = {"openvino": "openvino", "opencl": "pyopencl"}
"""Folder of eps/ to the package without which its tests cannot be imported."""

settings.register_profile("dev", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # the gate shares its two cores
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """Hear interrupts, and stop before the first test if an EP that must be here is not."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # `make test &` in a script: a shell ignores it for commands in the background, and so
        # would each process that a test starts and interrupts.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        return  # the controller has looked already
    for folder in filter(None, os.environ.get(REQUIRED, "").split(",")):
        reason = _why_missing(folder)
        if reason:
            raise pytest.UsageError(f"{REQUIRED} names {folder}, which is not here: {reason}")


def _why_missing(folder: str) -> str:
    """Why the EP in eps/`folder` has no device here; "" if it has one."""
    for name, entry in catalog.entries().items():
        if entry.target.startswith(f"eps.{folder}:"):
            probe = entry.load().probe()
            return "" if probe.devices else (probe.reason or f"{name} found no device")
    return "no entry point of that name is installed; pip install -e '.[test]' again"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out tests of an EP whose SDK is not installed; the report's header says so."""
    inside = collection_path.relative_to(ROOT).as_posix()
    return True if any(folder in inside for folder in _missing_sdks()) else None


def pytest_report_header() -> list[str]:
    """Name what is not collected."""
    return [
        f"not collected: tests of eps/{folder} (package {package} is not installed)"
        for folder, package in _missing_sdks().items()
    ]


def _missing_sdks() -> dict[str, str]:
    return {folder: sdk for folder, sdk in SDKS.items() if find_spec(sdk) is None}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of hardware that is not here, or does not work, with the reason."""
    of_opencl = any(word in item.nodeid.lower() for word in ("opencl", "pocl"))
    if of_opencl and isinstance(item, pytest.Function):
        _skip_failing_device(item)
    for marker in item.iter_markers("hw"):
        reason = _unmet(str(marker.args[0]))
        if reason:
            pytest.skip(f"hardware row {marker.args[0]}: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape file names that are not UTF-8: a report with one ends the worker that sends it."""
    report = yield
    report.sections = [(name, _encodable(text)) for name, text in report.sections]
    if report.longrepr is not None and _encodable(report.longreprtext) != report.longreprtext:
        report.longrepr = _encodable(report.longreprtext)
    return report


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _skip_failing_device(item: pytest.Function) -> None:
    """Skip a test with a parameter that names an OpenCL device which fails its trial."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    for parameter in parameters:
        reason = reason_to_skip(parameter)
        if reason:
            pytest.skip(reason)


@pytest.fixture
def working_pocl() -> None:
    """Skips a test where PoCL is not here or fails its trial."""
    reason = reason_to_skip("portable")
    if reason:
        pytest.skip(reason)


@cache
def _unmet(wanted: str) -> str:
    """What this machine lacks for every row whose id is, or starts with, `wanted`; or ""."""
    rows = expand(read_matrix(ROOT / "hw_matrix.yaml")).values()
    chosen = [row for row in rows if f"{row.row}-".startswith(f"{wanted}-")]
    if not chosen:
        raise pytest.UsageError(f"hw_matrix.yaml has no row {wanted!r}")
    probes = catalog.probe_all()
    facts = read_facts(libraries=required_libraries(chosen))
    reasons = [_lacks(row, facts, probes) for row in chosen]
    return "" if "" in reasons else "; ".join(dict.fromkeys(reasons))


def _lacks(row: ExpandedRow, facts: MachineFacts, probes: dict[str, Probe]) -> str:
    """What keeps a row from running here, in this environment; "" if nothing does."""
    problems = machine_lacks(row, facts)
    if problems:
        return "; ".join(problems)
    probe = probes.get(row.ep)
    if probe is None:
        return f"{row.ep} is not installed"
    devices = [device for device in probe.devices if device.kind == row.device]
    if not devices:
        found = ", ".join(d.name for d in probe.devices) or "nothing"
        return f"needs a {row.device}, {row.ep} found {found}"
    lacks = [device_lacks(row, device.identity) for device in devices]
    return "" if () in lacks else "; ".join(lacks[0])


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """Refuse connections out of the test process; models are fetched by a child of it."""

    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError(f"a test reached for the network: {args[1:] or args}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket.socket, "connect_ex", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield


@pytest.fixture(scope="session")
def model_path() -> Callable[[str], Path]:
    """`model_path("ppocrv4_det")`: that model of the set, fetched if need be."""
    known: dict[str, Path] = {}

    def path(name: str) -> Path:
        if name not in known:
            known.update(ensure_models([name]))
        return known[name]

    return path


@pytest.fixture(scope="session")
def example_inputs() -> Callable[[str], dict[str, Array]]:
    """`example_inputs("ppocrv4_det")`: one seeded feed for that model."""
    manifest = load_manifest()
    return lambda name: make_inputs(manifest[name])
