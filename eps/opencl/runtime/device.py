"""Platforms, devices, which of them a session opens, and what the code generator must know."""

from __future__ import annotations

from platform import machine
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field
from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.devices import CPU, GPU, platforms
from eps.opencl.cl.loader import loader_note
from eps.opencl.runtime.groups import AUTO, takes_groups, with_groups
from eps.opencl.runtime.identity import chosen_architecture
from eps.opencl.sdk_errors import sdk_text
from ort_lite.execution_provider import NotInstalled
from ort_lite.session_log import get_logger
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eps.opencl.cl.devices import Device, Platform
    from eps.opencl.compile.tilings import Problem, Tiling
    from eps.opencl.options import OpenCLOptions
    from eps.opencl.runtime.groups import Groups

log = get_logger(__name__)

HALF = "cl_khr_fp16"
KINDS = {"cpu": "CPU", "gpu": "GPU", "accelerator": "ACCELERATOR"}
POCL = "Portable Computing Language"
MOST_LANES = 16
"""Of a vector in OpenCL C."""


@dataclass(frozen=True, slots=True)
class Found:
    """A device and its place: `name` is "platform index.device index"."""

    name: str
    platform: Platform
    device: Device

    @property
    def kind(self) -> str:
        """CPU, GPU or ACCELERATOR."""
        if self.device.type & GPU:
            return "GPU"
        return "CPU" if self.device.type & CPU else "ACCELERATOR"

    @property
    def label(self) -> str:
        """Device and platform for a person."""
        return f"{self.device.name} ({self.platform.name})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the code generator adapts to.

    Attributes:
        vector: Floats in a vector register.
        accumulators: Vectors that a kernel may keep in registers.
        tasks: Work-items into which a large kernel is split.
        attributes: Of every kernel, in OpenCL C.
        double: Whether float64 is there.
        alignment: In bytes, of a buffer's parts.
        late_binaries: Whether a binary is only complete after each kernel has run (PoCL).
        half: Whether weights of products and convolutions are kept as halves.
        tuned: Tilings that were measured on this device; others go by the rule.
        calls_builtins: Whether the driver may call its functions where others inline them (PoCL).
        prefetches: Whether its compiler has clang's __builtin_prefetch, on a CPU.
        units: Cores, or what else works at once.
        winograd: Whether convolutions may be computed by Winograd's transforms.
        multiplies_pairs: Whether its compiler takes LLVM's name of AVX2's pmaddwd.
        one_entry: Whether a program has one kernel that calls all others (Intel's CPU runtime).
        groups: Work-groups that kernels are made for; None where each work-item works alone.
    """

    vector: int
    accumulators: int
    tasks: int
    attributes: str
    double: bool
    alignment: int
    late_binaries: bool
    calls_builtins: bool
    prefetches: bool = False
    multiplies_pairs: bool = False
    one_entry: bool = False
    half: bool = False
    units: int = 1
    winograd: bool = False
    groups: Groups | None = None
    tuned: Mapping[Problem, Tiling] = field(default_factory=dict)

    @property
    def shares(self) -> bool:
        """Whether the items of a work-group share operands in local memory."""
        return self.groups is not None and self.groups.local > 0

    @property
    def pair(self) -> int:
        """Floats in two registers: one's arithmetic fills the waits of the other's."""
        return min(MOST_LANES, 2 * self.vector)


def find_devices() -> tuple[Found, ...]:
    """Every device of every platform.

    Raises:
        NotInstalled: There is no loader, or it finds no platform.
        EPFail: The loader cannot be loaded.
    """
    try:
        drivers = platforms()
    except OpenCLError as exc:
        raise NotInstalled(f"no OpenCL platform: {sdk_text(exc)}; {loader_note()}") from exc
    found = []
    for p, platform in enumerate(drivers):
        try:
            devices = platform.devices()
        except OpenCLError as exc:
            log.warning("%s lists no devices: %s", platform.name, sdk_text(exc))
            continue
        found += [Found(f"{p}.{d}", platform, device) for d, device in enumerate(devices)]
    return tuple(found)


def choose(found: Sequence[Found], options: OpenCLOptions) -> Found:
    """The first device that fits, GPUs first and PoCL last.

    Raises:
        EPFail: None fits; says which there are.
    """
    return fitting_devices(found, options)[0]


def fitting_devices(found: Sequence[Found], options: OpenCLOptions) -> Sequence[Found]:
    """The devices that fit, best first: GPUs before others, PoCL last.

    Raises:
        EPFail: None fits; says which there are.
    """
    fitting = [f for f in found if _fits_platform(f, options) and _fits_device(f, options)]
    if not fitting:
        there = "; ".join(f"{f.name}: {f.kind} {f.label}" for f in found) or "none"
        raise EPFail(
            f"no OpenCL device fits platform='{options.platform}' device='{options.device}'; "
            f"there are: {there}. {loader_note()}"
        )
    return sorted(_of_precision(fitting, found, options), key=_preference)


def _of_precision(
    fitting: Sequence[Found], found: Sequence[Found], options: OpenCLOptions
) -> Sequence[Found]:
    """Those of the devices that have the precision.

    Raises:
        EPFail: None has; says which of all devices do.
    """
    if options.precision != "fp16":
        return fitting
    able = [f for f in fitting if HALF in f.device.extensions.split()]
    if not able:
        without = "; ".join(f"{f.name}: {f.label}" for f in fitting)
        having = "; ".join(f"{f.name}: {f.label}" for f in found if HALF in f.device.extensions)
        raise EPFail(
            f"precision=fp16 needs a device with {HALF}, which {without} lacks; "
            f"with it there are: {having or 'none'}"
        )
    return able


def _fits_platform(found: Found, options: OpenCLOptions) -> bool:
    wanted = options.platform
    if wanted.isdigit():
        return found.name.split(".")[0] == wanted
    return wanted in found.platform.name.lower()


def _fits_device(found: Found, options: OpenCLOptions) -> bool:
    wanted = options.device
    if wanted in KINDS:
        return found.kind == KINDS[wanted]
    if wanted.isdigit():
        return found.name.split(".")[1] == wanted
    return wanted == found.name or wanted in found.device.name.lower()


def _preference(found: Found) -> tuple[int, bool]:
    return ("GPU", "ACCELERATOR", "CPU").index(found.kind), found.platform.name == POCL


def describe_target(found: Found, templates: str = AUTO) -> Target:
    """What the device's own properties say, and what measurements say of its platform.

    Args:
        found: The device.
        templates: As in OpenCLOptions.
    """
    plain = _alone(found)
    if not takes_groups(found.device, templates):
        return plain
    return with_groups(plain, found.device, templates)


def _alone(found: Found) -> Target:
    """For work-items that work alone, each on one register tile.

    Intel's compiler must not vectorise across them, and PoCL's scheduler hands out work in chunks
    of 32 groups for each core.
    """
    device, pocl = found.device, found.platform.name == POCL
    vector = max(4, min(MOST_LANES, device.native_vector_width_float or 4))
    hint = "intel_vec_len_hint(1)" if "cl_intel_vec_len_hint" in device.extensions else ""
    if pocl:
        hint = "min_vector_width(512)" if vector == 16 else ""
    attributes = f"__attribute__(({hint})) " if hint else ""
    units = max(1, device.max_compute_units)
    on_cpu = found.kind == "CPU" and (pocl or found.platform.vendor.startswith("Intel"))
    return Target(
        vector=vector,
        accumulators=28 if vector == 16 else 12,
        tasks=units * (256 if pocl else 8),
        attributes=attributes,
        double="cl_khr_fp64" in device.extensions,
        alignment=max(128, device.mem_base_addr_align // 8),
        late_binaries=pocl,
        calls_builtins=pocl,
        units=units,
        winograd=found.kind == "CPU",
        prefetches=on_cpu,
        multiplies_pairs=on_cpu and _has_avx2(device),
        one_entry=on_cpu and not pocl,
    )


def _has_avx2(device: Device) -> bool:
    """Whether the driver's LLVM makes AVX2's instructions of an x86 CPU.

    It ends the process where it is asked for one that it may not use, which a user may have told
    Intel's not to; its properties do not say so (2026.22).
    """
    x86 = machine().lower() in ("x86_64", "amd64")
    return x86 and device.native_vector_width_int >= 8 and not chosen_architecture()
