"""What the EP makes of GPUs: by numbers as their drivers tell them, with no GPU at hand."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from opencl_devices import first_working_device

from eps.opencl.cl.constants import CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_MEM_READ_WRITE
from eps.opencl.cl.devices import Device, Platform
from eps.opencl.cl.objects import Buffer, Context, Queue
from eps.opencl.cl.program import Program
from eps.opencl.compile.codegen.group_tiling import (
    local_bytes,
    rank_group_tiles,
    splits_of,
)
from eps.opencl.compile.compile_partition import build_options
from eps.opencl.compile.tilings import Problem
from eps.opencl.program_spec import weight_of
from eps.opencl.runtime.describe_target import describe_target
from eps.opencl.runtime.device import ListedDevice
from eps.opencl.runtime.device_memory import LARGE_PAGE, DeviceWeights, allocate
from eps.opencl.runtime.identity import read_identity
from eps.opencl.runtime.launch import Launch
from eps.opencl.target import Groups
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = first_working_device()
NVIDIA_QUERY = "cl_nv_device_attribute_query"


class ToldPlatform(Platform):
    """A driver that tells what it is given."""

    def __init__(self, name: str) -> None:
        super().__init__(1)
        self._told = name.encode() + b"\0"

    def _bytes(self, parameter: int) -> bytes:
        return self._told


class ToldDevice(Device):
    """A device that tells what it is given: CL_DEVICE_... to the driver's bytes."""

    def __init__(self, told: Mapping[int, bytes]) -> None:
        super().__init__(1)
        self._told = told

    def _bytes(self, parameter: int) -> bytes:
        return self._told[parameter]


def number(value: int) -> bytes:
    return struct.pack("<Q", value)


def device(
    name: str,
    units: int,
    group: int,
    local: int,
    *,
    local_type: int = 1,
    kind: int = CL_DEVICE_TYPE_GPU,
    extensions: str = "",
    fp_config: int = 0x3F,
    more: Mapping[int, bytes] | None = None,
) -> ListedDevice:
    """A device on OpenCL 3.0 with 1,024 bits of alignment."""
    told = {
        0x101B: number(fp_config),
        0x1000: number(kind), 0x1002: number(units), 0x1004: number(group),
        0x1005: number(group) * 3, 0x1019: number(1024), 0x1022: number(local_type),
        0x1023: number(local), 0x102B: name.encode(), 0x102C: b"A vendor", 0x102D: b"1.0",
        0x102F: b"OpenCL 3.0", 0x1030: extensions.encode(), 0x103A: number(1), **(more or {}),
    }  # fmt: skip
    return ListedDevice("0.0", ToldPlatform("A platform"), ToldDevice(told))


H200 = device("NVIDIA H200", 132, 1024, 48 << 10, fp_config=0xBF)
SHEETS = {
    "NVIDIA": (H200, Groups(size=256, units=132, local=48 << 10)),
    "AMD": (device("gfx942", 304, 256, 64 << 10), Groups(size=256, units=304, local=64 << 10)),
    "Intel": (device("Arc", 512, 1024, 64 << 10), Groups(size=256, units=512, local=64 << 10)),
    "Adreno": (device("Adreno", 6, 1024, 32 << 10), Groups(size=256, units=6, local=32 << 10)),
    "Mali": (
        device("Mali", 24, 384, 32 << 10, local_type=2),
        Groups(size=256, units=24, local=0),
    ),
    "small": (device("small", 4, 64, 8 << 10), Groups(size=64, units=4, local=8 << 10)),
    "of few items": (device("few", 4, 16, 8 << 10), Groups(size=16, units=4, local=0)),
}


@pytest.mark.parametrize("name", SHEETS)
def test_a_gpu_gets_work_groups_by_its_own_numbers(name: str) -> None:
    found, groups = SHEETS[name]
    target = describe_target(found)
    assert target.groups == groups
    assert target.shares == (groups.local > 0)
    assert not target.winograd
    assert not target.prefetches


def test_a_gpu_is_asked_for_exact_divisions_where_it_can_be() -> None:
    """Quotients of NVIDIA's default are off by one step in three of ten; it has the option."""
    asked = describe_target(H200)
    assert asked.asks_for_exact_division
    assert "-cl-fp32-correctly-rounded-divide-sqrt" in build_options(asked).split()
    other = describe_target(SHEETS["AMD"][0])
    assert not other.asks_for_exact_division
    assert "-cl-fp32-correctly-rounded-divide-sqrt" not in build_options(other).split()
    assert describe_target(H200, "cpu").asks_for_exact_division


def test_a_cpu_gets_none_but_where_they_are_asked_for() -> None:
    cpu = device("CPU", 8, 4096, 32 << 10, local_type=2, kind=CL_DEVICE_TYPE_CPU)
    assert describe_target(cpu).groups is None
    assert describe_target(H200, "cpu").groups is None
    asked = describe_target(cpu, "gpu").groups
    assert asked == Groups(size=256, units=8, local=32 << 10)
    without = describe_target(cpu, "gpu-registers").groups
    assert without == Groups(size=256, units=8, local=0)


def problem(pixels: int, depth: int, width: int) -> Problem:
    return Problem(
        batch=1, rows=1, columns=pixels, taps=(1, 1), depth=depth, width=width, packed=True,
        operands=0, grouped=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", [name for name, (_, g) in SHEETS.items() if g.local])
@pytest.mark.parametrize(
    "sizes", [(4096, 4096, 4096), (196, 256, 1000), (1, 2048, 1000), (49, 7, 3)]
)
def test_a_tile_is_within_the_devices_limits(name: str, sizes: tuple[int, int, int]) -> None:
    groups = SHEETS[name][1]
    tiles = rank_group_tiles(problem(*sizes), groups)
    assert tiles
    for tile in tiles:
        assert tile.items <= groups.size
        assert local_bytes(tile) <= groups.local
        assert tile.fits(problem(*sizes))


def test_large_products_have_large_tiles_and_small_ones_share_sums() -> None:
    groups = SHEETS["NVIDIA"][1]
    large, small, row = problem(4096, 4096, 4096), problem(49, 2048, 512), problem(1, 4096, 4096)
    best = [rank_group_tiles(p, groups)[0] for p in (large, small, row)]
    assert (best[0].rows, best[0].channels) == (128, 128)
    assert splits_of(best[0], large, groups.min_groups) == 1
    assert splits_of(best[1], small, groups.min_groups) > 1
    assert best[2].rows <= 8
    assert splits_of(best[2], row, groups.min_groups) > 1


def test_equal_gpus_take_each_others_contexts() -> None:
    """Whichever of them it is: the UUID is of one GPU, the compute capability of its kind."""
    uuid = "cl_khr_device_uuid"
    first, second = (
        device(
            "NVIDIA H200", 132, 1024, 48 << 10, extensions=f"{uuid} {NVIDIA_QUERY}",
            more={0x106A: bytes([i] * 16), 0x4000: number(9), 0x4001: number(0)},
        )
        for i in (1, 2)
    )  # fmt: skip
    assert read_identity(first) == read_identity(second)
    assert "sm_90" in read_identity(first).architecture
    older = device(
        "NVIDIA H200", 132, 1024, 48 << 10, extensions=NVIDIA_QUERY,
        more={0x4000: number(8), 0x4001: number(0)},
    )  # fmt: skip
    assert read_identity(older) != read_identity(first)


def test_intels_gpus_are_told_apart_by_their_chip() -> None:
    query = "cl_intel_device_attribute_query"
    found = device("Arc", 512, 1024, 65536, extensions=query, more={0x4250: number(0x3138008)})
    assert "ip_3138008" in read_identity(found).architecture


class Gpu(Device):
    """The device that is here, with a GPU's type and a bound on the size of a buffer."""

    max_mem_alloc_size = 1 << 20

    @property
    def type(self) -> int:
        return CL_DEVICE_TYPE_GPU


def test_weights_beyond_the_largest_buffer_go_into_several() -> None:
    context = Context(Gpu(HERE.device.handle))
    random = np.random.default_rng(0)
    arrays = [random.random(n, np.float32) for n in (200_000, 100_000, 1, 262_144, 5)]
    weights = [weight_of(array.view(np.uint8).data) for array in arrays]
    held = DeviceWeights(context, describe_target(HERE).alignment, mapped=False)
    buffers = held.hold(weights)
    held.wait_for_uploads()
    assert len({id(held._blocks[w.digest]) for w in weights}) == 4
    queue = Queue(context)
    for array, buffer in zip(arrays, buffers, strict=True):
        back = np.zeros_like(array)
        queue.read(back, buffer)
        np.testing.assert_array_equal(back, array)
    held.drop(weights)


def test_a_gpus_driver_places_its_memory_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it shares the host's."""

    def refuse(*_: object) -> Buffer:
        raise AssertionError("the host's memory was lent")

    monkeypatch.setattr(Buffer, "from_host", refuse)
    assert allocate(Context(Gpu(HERE.device.handle)), CL_MEM_READ_WRITE, 2 * LARGE_PAGE).handle


def test_a_kernel_for_larger_groups_than_the_device_runs_is_refused() -> None:
    context = Context(HERE.device)
    program = Program.of_source(
        context,
        "__attribute__((reqd_work_group_size(4, 1, 1)))"
        "__kernel void k(__global int* x) { x[get_global_id(0)] = 1; }",
    )
    program.build("")
    memory = Buffer.of(context, CL_MEM_READ_WRITE, 1 << 20)
    size = 2 * HERE.device.max_work_group_size
    with pytest.raises(
        EPFail, match=rf"at most \d+ items, and it was made for {size}; .*templates"
    ):
        Launch(Queue(context), program, "k", [memory], (size, size))
