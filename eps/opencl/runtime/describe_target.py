"""Describes a device to the code generator: kernel templates for CPUs, or for work-groups."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import replace
from eps.opencl.cl.constants import CL_DEVICE_TYPE_GPU
from eps.opencl.options import TEMPLATES
from eps.opencl.runtime.device import POCL
from eps.opencl.runtime.identity import chosen_architecture
from eps.opencl.runtime.pocl_target import cpu_flags
from eps.opencl.target import FEWEST_SHARING, MOST_LANES, Groups, Target
from ort_lite.ep import count_usable_cpus, machine_name

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from eps.opencl.cl.devices import Device
    from eps.opencl.runtime.device import ListedDevice

AUTO, CPU, GPU, _ = TEMPLATES

MOST_IN_A_GROUP = 256
"""Work-items: two groups of kernels that use all registers of an item fit into a GPU's core."""
ITEMS_OF_A_UNIT = 2048
"""Work-items that a compute unit has in flight, on NVIDIA's and AMD's GPUs; fewer elsewhere."""
MOST_ITEMS = 1 << 20
"""Of a launch; what is left over is a loop in each item."""
VECTOR = 4
"""A GPU's items load and store up to 16 bytes at once."""
REGISTER_VECTORS = 8
"""Sums of four that an item keeps where operands stay in registers."""

VNNI = "avx512_vnni"
"""Flag of a CPU, as /proc/cpuinfo has it."""
OLDEST_WITH_NAME = (2026, 22)
"""Version of Intel's runtime, year and release. The arguments of LLVM's function were vectors of
32-bit words before; declaring it in another form than the compiler's ends the process."""


def describe_target(listed: ListedDevice, templates: str = AUTO) -> Target:
    """The target of a device, from its properties and from measurements on its platform.

    Args:
        listed: The device.
        templates: As in OpenCLOptions.
    """
    plain = _cpu_target(listed)
    if not _uses_groups(listed.device, templates):
        return plain
    return _with_groups(plain, listed.device, templates)


def _cpu_target(listed: ListedDevice) -> Target:
    """The target for work-items that each compute a register tile of their own.

    Intel's compiler must not vectorise across them, and PoCL's scheduler hands out work in chunks
    of 32 groups for each core.
    """
    device, pocl = listed.device, listed.platform.name == POCL
    vector = max(4, min(MOST_LANES, device.native_vector_width_float or 4))
    hint = "intel_vec_len_hint(1)" if "cl_intel_vec_len_hint" in device.extensions else ""
    if pocl:
        hint = "min_vector_width(512)" if vector == 16 else ""
    attributes = f"__attribute__(({hint})) " if hint else ""
    units = max(1, device.max_compute_units)
    on_cpu = listed.kind == "CPU" and (pocl or listed.platform.vendor.startswith("Intel"))
    has_avx2 = on_cpu and _has_avx2(device)
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
        winograd=listed.kind == "CPU",
        prefetches=on_cpu,
        multiplies_pairs=has_avx2,
        quad_sums=quad_sums_of(listed, cpu_flags()) if has_avx2 else "",
        one_entry=on_cpu and not pocl,
        builds_at_once=_usable_cores() if on_cpu and not pocl else 1,
        asks_for_exact_division=listed.kind == "GPU" and device.divides_exactly_on_request,
    )


def _uses_groups(device: Device, templates: str) -> bool:
    """Whether kernels are made of work-groups; `templates` as in OpenCLOptions."""
    if templates == AUTO:
        return bool(device.type & CL_DEVICE_TYPE_GPU)
    return templates != CPU


def _with_groups(plain: Target, device: Device, templates: str) -> Target:
    """The target `plain` of a device, for kernels that are made of work-groups.

    By `AUTO` operands are shared in local memory where the device has such memory of its own:
    Mali's and some other GPUs' is global memory, which their caches serve better.
    """
    most = min(MOST_IN_A_GROUP, device.max_work_group_size, device.max_work_item_size)
    size = 1 << (most.bit_length() - 1)
    uses_groups = device.has_local_memory if templates == AUTO else templates == GPU
    shares = uses_groups and size >= FEWEST_SHARING
    groups = Groups(
        size=size,
        units=max(1, device.max_compute_units),
        local=device.local_mem_size if shares else 0,
    )
    return replace(
        plain,
        vector=VECTOR,
        accumulators=REGISTER_VECTORS,
        tasks=min(MOST_ITEMS, groups.units * ITEMS_OF_A_UNIT),
        attributes="",
        prefetches=False,
        winograd=False,
        one_entry=False,
        groups=groups,
    )


def _usable_cores() -> int:
    """Cores that this process and its children may use; 1 where it cannot start any.

    `sys.executable` is the program where one is frozen, and may be where one embeds Python.
    """
    name = os.path.basename(sys.executable or "")  # noqa: PTH119 - pathlib is not on the start road
    if sys.platform == "win32" or hasattr(sys, "frozen") or not name.startswith("python"):
        return 1
    return count_usable_cpus()


def _has_avx2(device: Device) -> bool:
    """Whether the driver's LLVM makes AVX2's instructions of an x86 CPU.

    It ends the process where it is asked for one that it may not use, as a user may have set for
    Intel's; its properties do not say so (2026.22).
    """
    x86 = machine_name().lower() in ("x86_64", "amd64")
    return x86 and device.native_vector_width_int >= 8 and not chosen_architecture()


def quad_sums_of(listed: ListedDevice, flags: AbstractSet[str]) -> str:
    """`Target.quad_sums` of a CPU device with AVX2.

    OpenCL's properties of dot products say of each CPU that it is fast at them (Intel's 2026.22).

    Args:
        listed: The device. Its vectors have 16 lanes where its driver uses AVX-512.
        flags: Of the CPU, as /proc/cpuinfo has them.
    """
    if listed.device.native_vector_width_int < MOST_LANES or VNNI not in flags:
        return ""
    if listed.platform.name == POCL:
        return "OL_VNNI_ASSEMBLY"
    year, _, rest = listed.device.driver_version.partition(".")
    release = rest.partition(".")[0]
    known = year.isdecimal() and release.isdecimal()
    return "OL_VNNI_NAME" if known and (int(year), int(release)) >= OLDEST_WITH_NAME else ""
