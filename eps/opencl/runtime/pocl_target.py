"""Names a CPU to PoCL's compiler where LLVM's own guess is none that it could compile for.

PoCL compiles for the CPU that LLVM finds. Of one that is newer than LLVM 14 it finds "generic",
which clang then refuses, so that no program builds (PoCL 3.0 of PyPI on AMD's Zen 5), or an older
one: of AMD's Zen 4 it finds Zen 3, which has no AVX-512, but PoCL's built-in functions use it, and
the compiler dies. Of a virtual CPU without AVX-512 it finds the model that it would be with it, and
the program dies. Of Intel's newer CPUs without AVX-512 (Meteor Lake, for one) it finds Goldmont,
which has no AVX, but the built-in functions use it, and no program builds. Later releases have
POCL_LLVM_CPU_NAME for that; this one has neither variable nor option, but one field of its device,
which is written here: where the release is just that one, and the field points to the name that the
device reports. A device is used only after its trial (eps/opencl/trials/trial.py), with this name.
docs/adr/0030-opencl-trial.md says what else was tried.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING

from ort_lite.ep import machine_name

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from eps.opencl.cl.devices import Device

RELEASE = "OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6, SLEEF, DISTRO, POCL_DEBUG"
UNKNOWN = "generic"
_WITH_AVX512 = frozenset(
    {
        *("skylake-avx512", "cascadelake", "cooperlake", "cannonlake", "icelake-client"),
        *("icelake-server", "tigerlake", "rocketlake", "sapphirerapids"),
    }
)
"""LLVM 14's names of CPUs that compute in vectors of 16 floats."""
_WITHOUT_AVX = frozenset(
    {
        *("nocona", "core2", "penryn", "nehalem", "westmere", "x86-64", "x86-64-v2"),
        *("bonnell", "silvermont", "goldmont", "goldmont-plus", "tremont"),
        *("k8", "k8-sse3", "amdfam10", "btver1"),
    }
)
"""Its names of CPUs with vectors of 4; all others have 8."""
_FIELD = 640
"""Offset of `llvm_cpu` in this release's struct _cl_device_id."""
_POINTER = struct.Struct("@P")

_V2 = {"avx2", "fma", "f16c", "bmi1", "bmi2", "abm"}
_V4 = {*_V2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_CPUS = (
    (16, "cascadelake", {*_V4, "avx512_vnni"}),
    (16, "skylake-avx512", _V4),
    (8, "haswell", _V2),
    (8, "ivybridge", {"avx", "f16c"}),
    (8, "sandybridge", {"avx"}),
    (4, "x86-64", set[str]()),
)
"""Floats in a vector, LLVM's name, and the flags of /proc/cpuinfo that such a CPU must have: for
each of PoCL's libraries of built-in functions, since functions for other CPUs take vectors in other
registers. The two that use AVX-512 share a library; contexts are kept apart by the name."""


def chosen_cpu(device: Device) -> str:
    """LLVM's name of the CPU that PoCL now compiles for; "" where its own guess will do.

    Naming it is done at the first call for a device. A name, and not a failure, is all that this
    can add: where something is not as expected nothing is written, and the trial says the rest.
    """
    version = device.version
    if "PoCL" not in version or machine_name() != "x86_64":
        return ""
    width, guess = device.native_vector_width_float, _guess(version)
    if can_compile(guess, width) or device.platform.version != RELEASE:
        return ""
    name = fitting_cpu(width, cpu_flags())
    return name if name and _set_cpu_name(device.handle, guess, name) else ""


def _guess(version: str) -> str:
    """The CPU in a device's version, which ends with pthread-x86_64-unknown-linux-gnu-CPU."""
    return version.partition("-gnu-")[2]


def can_compile(guess: str, width: int) -> bool:
    """Whether programs for LLVM's guess can call PoCL's built-in functions.

    Args:
        guess: LLVM's name of a CPU.
        width: Floats in a vector, which PoCL chooses its built-in functions by.
    """
    lanes = 16 if guess in _WITH_AVX512 else 4 if guess in _WITHOUT_AVX else 8
    return guess != UNKNOWN and lanes == width


def fitting_cpu(width: int, flags: AbstractSet[str]) -> str:
    """The best of LLVM's CPUs for one with these flags; "" for none.

    Args:
        width: Floats in a vector, which PoCL chooses its built-in functions by.
        flags: As /proc/cpuinfo names them.
    """
    return next((name for floats, name, need in _CPUS if floats == width and need <= flags), "")


def define_of(device: Device) -> str:
    """An option that keeps builds for a chosen CPU apart in PoCL's cache, which knows the guess."""
    name = chosen_cpu(device)
    return f" -DORT_LITE_{name.upper().replace('-', '_')}" if name else ""


@cache
def _name(text: str) -> ctypes.Array[ctypes.c_char]:
    """For the driver to point to until the process ends."""
    return ctypes.create_string_buffer(text.encode())


def _set_cpu_name(device: int, guess: str, name: str) -> bool:
    """Whether the driver's device has `name` for its CPU now, `guess` before."""
    field = device + _FIELD
    target = _name(name)
    address = _read(field, _POINTER.size)
    if address is None:
        return False
    (pointer,) = _POINTER.unpack(address)
    if pointer == ctypes.addressof(target):
        return True
    if _read(pointer, len(guess) + 1) != guess.encode() + b"\0":
        return False
    ctypes.c_void_p.from_address(field).value = ctypes.addressof(target)
    return True


def _read(address: int, size: int) -> bytes | None:
    """This process's memory; None if absent, which ctypes would die of."""
    if sys.platform == "win32":
        return None
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.pread(memory, size, address)
    except (OSError, OverflowError):
        return None
    finally:
        os.close(memory)


def cpu_flags() -> frozenset[str]:
    """The flags of this CPU that Linux reports; none elsewhere."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            lines = file.read(1 << 14).decode(errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())
