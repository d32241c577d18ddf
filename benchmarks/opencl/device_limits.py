"""What an OpenCL device can do at most, measured, and how far a model's kernels are from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.opencl.copy_peer import CopyPeer
from eps.opencl.cl.objects import Context
from eps.opencl.compile.codegen.fold import add, fold_lanes
from eps.opencl.compile.codegen.kernel import Code, Kernel, floats
from eps.opencl.compile.views import Storage
from eps.opencl.options import OpenCLOptions
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.device import find_devices, fitting_devices
from eps.opencl.tuning.tune import time_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.opencl.kernel_times import KernelTiming
    from eps.opencl.target import Target

COPIED = 1 << 28
"""Bytes that a copy moves: more than any cache holds."""
COPIES = 9
CHAINS = 12
"""Vectors that a work-item multiplies and adds to, one after another: none waits for itself."""
WORK = {False: 1 << 29, True: 1 << 36}
"""Operations of the arithmetic kernel for items that work alone, and for work-groups."""
PASSES = 30
LARGEST = 3


class Limits(NamedTuple):
    """Of a device: GB/s between kernels and memory, GFLOP/s of float32."""

    bandwidth: float
    arithmetic: float

    def least(self, call: KernelTiming) -> float:
        """Microseconds below which the device cannot do a kernel whose data is in no cache."""
        return max(call.size / self.bandwidth, call.work / self.arithmetic) / 1e3


def measure_limits() -> Limits:
    """The limits of the device that a session takes by default."""
    listed = fitting_devices(find_devices(), OpenCLOptions())[0]
    copy = CopyPeer(COPIED)
    for _ in range(COPIES):
        copy.once()
    target = describe_target(listed)
    kernel = _arithmetic_kernel(target)
    (nanoseconds,) = time_kernels(Context(listed.device), [kernel], target, PASSES)
    return Limits(copy.rate, kernel.work / nanoseconds)


def _arithmetic_kernel(target: Target) -> Kernel:
    group = 1 if target.groups is None else target.groups.size
    items = max(1, target.tasks // group) * group
    vector = target.vector
    steps = WORK[target.groups is not None] // (2 * items * CHAINS * vector)
    code, kind = Code(), floats(vector)
    names = [f"a{i}" for i in range(CHAINS)]
    code.add("const float start = get_global_id(0) * 1e-9f;")
    code.add(*(f"{kind} {name} = ({kind})(start + {i}.0f);" for i, name in enumerate(names)))
    code.open(f"for (int i = 0; i < {steps}; ++i)")
    code.add(*(f"{name} = mad({name}, ({kind})(0.5f), ({kind})(1.0f));" for name in names))
    code.close()
    code.add(f"const {kind} sum = {' + '.join(names)};")
    code.add(f"p0[get_global_id(0)] = {fold_lanes(code, 'sum', vector, add)};")
    work = 2 * items * CHAINS * vector * steps
    return Kernel(code.text(), (Storage(items, "float32"),), items, group, work=work)


def describe_distance(passes: Sequence[Sequence[KernelTiming]], limits: Limits) -> list[str]:
    """How near a model is to the device's limits, and which kernels lose most time to them.

    Args:
        passes: Each run's calls; the fastest time of each call counts.
        limits: Of the device. What stays in caches may beat the bandwidth, and then loses nothing.
    """
    calls = [min(same, key=lambda call: call.microseconds) for same in zip(*passes, strict=True)]
    spent = sum(call.microseconds for call in calls)
    least = sum(min(limits.least(call), call.microseconds) for call in calls)
    lost: dict[str, float] = {}
    for call in calls:
        loss = max(0.0, call.microseconds - limits.least(call))
        lost[call.kernel] = lost.get(call.kernel, 0.0) + loss
    lines = [
        f"{least / spent:.0%} of the device's limits ({limits.bandwidth:.0f} GB/s, "
        f"{limits.arithmetic:.0f} GFLOP/s): {least / 1e3:.2f} of {spent / 1e3:.2f} ms"
    ]
    worst = sorted(lost, key=lambda name: -lost[name])[:LARGEST]
    return [*lines, *(f"loses {lost[name]:.0f} us in {name}" for name in worst)]
