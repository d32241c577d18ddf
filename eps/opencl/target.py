"""The properties of a device that generated code depends on: plain values, no device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_formats.lean_dataclass import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eps.opencl.compile.tilings import Problem, Tiling
    from eps.opencl.custom.operators import CustomKernels

MOST_LANES = 16
"""Elements of the longest vector of OpenCL C."""
GROUPS_OF_A_UNIT = 2
"""Work-groups for each compute unit that keep it busy."""
FEWEST_SHARING = 64
"""Work-items of the smallest work-group for which staging through local memory pays off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Work-groups of a device: their items run side by side, and adjacent ones load together.

    Attributes:
        size: Work-items in one, a power of two.
        units: Groups that run at once when each has the device's most items.
        local: Bytes of local memory for a group; 0 if it is no faster than global memory.
    """

    size: int
    units: int
    local: int

    @property
    def min_groups(self) -> int:
        """Groups that keep the device busy."""
        return self.units * GROUPS_OF_A_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The properties of a device that the code generator adapts to.

    Attributes:
        vector: Floats in a vector register.
        accumulators: Vectors that a kernel may keep in registers.
        tasks: Number of work-items that a large kernel is split into.
        attributes: Attributes of every kernel, in OpenCL C.
        double: Whether the device supports float64.
        alignment: Alignment of a sub-buffer in bytes.
        late_binaries: Whether a binary is only complete after each kernel has run (PoCL).
        half: Whether weights of products and convolutions are stored as float16.
        custom: Operators of the user's own; None for none.
        tuned: Tilings measured on this device; others follow the rule.
        calls_builtins: Whether the driver may call built-ins instead of inlining them (PoCL).
        prefetches: Whether its compiler has clang's __builtin_prefetch, on a CPU.
        units: Number of compute units, which are the cores of a CPU.
        winograd: Whether convolutions may be computed by Winograd's transforms.
        multiplies_pairs: Whether its compiler takes LLVM's name of AVX2's pmaddwd.
        quad_sums: Macro of integer.cl and vnni.cl for AVX-512 VNNI's vpdpbusd in a form that its
            compiler accepts; "" for a device without it.
        one_entry: Whether a program has one kernel that calls all others (Intel's CPU runtime).
        builds_at_once: Number of processes that the driver's compiler may run in for one program.
        asks_for_exact_division: Whether its compiler rounds quotients and square roots correctly
            only with an option, and has it.
        groups: Work-groups that kernels are made for; None if each work-item works alone.
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
    quad_sums: str = ""
    one_entry: bool = False
    builds_at_once: int = 1
    half: bool = False
    units: int = 1
    winograd: bool = False
    asks_for_exact_division: bool = False
    groups: Groups | None = None
    custom: CustomKernels | None = None
    tuned: Mapping[Problem, Tiling] = field(default_factory=dict)

    @property
    def shares(self) -> bool:
        """Whether the items of a work-group share operands in local memory."""
        return self.groups is not None and self.groups.local > 0

    @property
    def sees_stores_in_order(self) -> bool:
        """Whether an item may wait for what another one stores: on the cores of an x86 CPU.

        OpenCL C promises no order between work-groups, and no program has atomics of OpenCL 2.0.
        """
        return self.multiplies_pairs and self.groups is None

    @property
    def pair(self) -> int:
        """Floats in two registers: one's arithmetic fills the waits of the other's."""
        return min(MOST_LANES, 2 * self.vector)
