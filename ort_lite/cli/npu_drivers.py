"""Versions of Intel's NPU drivers: which are too old for a chip or for a compiler, and the sources.

A driver brings a compiler, a loader and a firmware. OpenVINO can compile with a compiler of its own
(2026.0 and later: https://docs.openvino.ai/2026, "NPU Device"), whose programs an older firmware
refuses: "MAPPED_INFERENCE_VERSION is NOT compatible with the ELF Expected: 6.1.0 vs received:
7.0.0" (https://github.com/intel/linux-npu-driver/issues/28).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RELEASES = "https://github.com/intel/linux-npu-driver/releases"
_COLLECTED = "https://docs.rs/crate/ovfetch/0.2.2/source/data/npu_drivers.toml"
WINDOWS_DOWNLOAD = "https://www.intel.com/content/www/us/en/download/794734"
LINUX_DOWNLOAD = _RELEASES


@dataclass(frozen=True, slots=True)
class FirstDriver:
    """The first Linux driver for a chip.

    Attributes:
        chip: PCI vendor and device.
        host: The processor family that it is part of.
        driver: Version of the driver.
        source: Where that is documented.
    """

    chip: str
    host: str
    driver: str
    source: str


@dataclass(frozen=True, slots=True)
class DriverRelease:
    """The OpenVINO whose compiler a Linux driver was released with.

    Attributes:
        driver: Version of the driver.
        openvino: Version of OpenVINO.
        source: Where that is documented.
    """

    driver: str
    openvino: str
    source: str


FIRST_DRIVERS = (
    FirstDriver("8086:ad1d", "Arrow Lake", "1.5.0", "https://github.com/intel/linux-npu-driver/pull/32"),
    FirstDriver("8086:643e", "Lunar Lake", "1.5.0", "https://github.com/intel/linux-npu-driver/pull/32"),
    FirstDriver(
        "8086:b03e", "Panther Lake", "1.28.0",
        "https://github.com/open-edge-platform/dlstreamer/pull/509",
    ),
    FirstDriver(
        "8086:fd3e", "Wildcat Lake", "1.32.0",
        "https://docs.rs/crate/ovfetch/0.2.0/source/data/platforms.toml",
    ),
)  # fmt: skip

RELEASES = (
    DriverRelease("1.10.0", "2024.4", _COLLECTED),
    DriverRelease("1.10.1", "2024.5", _COLLECTED),
    DriverRelease("1.13.0", "2025.0", _COLLECTED),
    DriverRelease("1.16.0", "2025.1", _COLLECTED),
    DriverRelease("1.19.0", "2025.2", _COLLECTED),
    DriverRelease("1.24.0", "2025.3", _COLLECTED),
    DriverRelease(
        "1.33.0", "2026.2",
        "https://newreleases.io/project/github/intel/linux-npu-driver/release/v1.33.0",
    ),
    DriverRelease("1.39.1", "2026.4.1", f"{_RELEASES}/tag/v1.39.1"),
)  # fmt: skip
"""By version; of drivers with the same OpenVINO the first one that is known."""

OLDEST_ON_WINDOWS = "32.0.100.3104"
"""OpenVINO's maintainers ask for this version or a newer one where older drivers fail
(https://github.com/openvinotoolkit/openvino/pull/27489)."""


def driver_problem(driver: str, chips: tuple[str, ...]) -> str:
    """Why a Linux driver is too old for a machine's chips, and what to install; "" if it is not.

    Args:
        driver: Its version; "" or another form says nothing.
        chips: "vendor:device" of the machine's NPUs.
    """
    version = parse_version(driver)
    for first in FIRST_DRIVERS:
        if version and first.chip in chips and version < parse_version(first.driver):
            return (
                f"NPU driver {driver} is older than {first.driver}, the first one for "
                f"{first.host} ({first.source}); install a newer one: {LINUX_DOWNLOAD}"
            )
    return ""


def compiler_note(driver: str, openvino: str) -> str:
    """What to install so that the driver loads what OpenVINO's own compiler makes; "" if it does.

    Args:
        driver: Version of a Linux driver; "" or another form says nothing.
        openvino: Version of the OpenVINO that compiles; "" if absent.
    """
    version, compiler = parse_version(driver), parse_version(openvino)
    needed = next((r for r in RELEASES if parse_version(r.openvino) >= compiler), None)
    if not version or not compiler or needed is None or version >= parse_version(needed.driver):
        return ""
    return (
        f"NPU driver {driver} is older than {needed.driver}, which was released with OpenVINO "
        f"{needed.openvino} ({needed.source}): it may refuse contexts that OpenVINO {openvino} "
        f"compiled with npu_platform. Install it, or compile on this machine: {LINUX_DOWNLOAD}"
    )


def windows_problem(driver: str) -> str:
    """Why a Windows driver is too old, and what to install; "" if it is not."""
    version = parse_version(driver)
    if not version or version >= parse_version(OLDEST_ON_WINDOWS):
        return ""
    return (
        f"NPU driver {driver} is older than {OLDEST_ON_WINDOWS}, which OpenVINO's maintainers "
        f"recommend at least; install a newer one: {WINDOWS_DOWNLOAD}"
    )


def parse_version(text: str) -> tuple[int, ...]:
    """`1.28.0` as numbers that compare; empty for another form."""
    if not re.fullmatch(r"\d{1,6}(\.\d{1,6}){1,3}", text, re.ASCII):
        return ()
    return tuple(map(int, text.split(".")))
