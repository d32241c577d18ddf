"""What benchmarks/opencl/models.py says of a model and its device's limits, by numbers made up."""

from __future__ import annotations

from benchmarks.opencl.device_limits import Limits, describe_distance
from benchmarks.opencl.kernel_times import KernelTiming


def test_the_kernels_that_lose_most_are_named() -> None:
    """100 GB/s and 1,000 GFLOP/s: a microsecond is 100 kB, or a million operations."""
    first = [
        KernelTiming("copies", 10.0, 0, 800_000),  # 8 us at least
        KernelTiming("multiplies", 50.0, 20_000_000, 100_000),  # 20 us at least
        KernelTiming("cached", 1.0, 0, 400_000),  # beats the memory, and loses nothing
        KernelTiming("multiplies", 30.0, 20_000_000, 100_000),
        KernelTiming("waits", 9.0, 0, 100),
    ]
    second = [call._replace(microseconds=call.microseconds * 2) for call in first]
    told = describe_distance([second, first], Limits(100.0, 1000.0))
    assert told[0].startswith(
        "49% of the device's limits (100 GB/s, 1000 GFLOP/s): 0.05 of 0.10 ms"
    )
    assert [line.split(" in ")[1] for line in told[1:]] == ["multiplies", "waits", "copies"]
    assert told[1] == "loses 40 us in multiplies"
