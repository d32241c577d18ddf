"""Memory of devices that share the host's: in large pages, where the system has them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from opencl_devices import all_devices
from system_limits import needs_posix

from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Buffer, Context, Queue
from eps.opencl.runtime import device_memory
from eps.opencl.runtime.device_memory import LARGE_PAGE, allocate, allocate_zeros
from eps.opencl.runtime.tensors import find_memory
from ort_lite import OrtValue
from ort_lite.execution import device_values
from ort_lite.providers.catalog import ProviderEntry, registered
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from collections.abc import Callable

SHARING = [found for found in all_devices() if found.device.host_unified_memory]
SMAPS = Path("/proc/self/smaps")
SIZE = 3 * LARGE_PAGE + 4096


@pytest.fixture(params=SHARING, ids=[found.name for found in SHARING])
def context(request: pytest.FixtureRequest) -> Context:
    return Context(request.param.device)


def advised() -> int:
    """Bytes of mappings that the system was asked to give large pages: proc_pid_smaps(5), hg."""
    total = size = 0
    for line in SMAPS.read_text(encoding="ascii").splitlines():
        key, _, rest = line.partition(":")
        if key == "Size":
            size = int(rest.split()[0]) << 10
        elif key == "VmFlags" and "hg" in rest.split():
            total += size
    return total


def assert_keeps(context: Context, buffer: Buffer) -> None:
    """What is written to its end comes back; numpy advises of arrays over 4 MB itself."""
    content = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)
    found, start = np.zeros_like(content), SIZE - (1 << 20)
    queue = Queue(context)
    queue.write(buffer, content, start)
    queue.read(found, buffer, start)
    np.testing.assert_array_equal(found, content)


@needs_posix
@pytest.mark.skipif(not SMAPS.exists(), reason="no /proc/self/smaps here")
def test_large_pages_are_asked_for_and_given_back(context: Context) -> None:
    before = advised()
    buffer = allocate(context, CL_MEM_READ_WRITE, SIZE)
    assert advised() - before >= SIZE
    assert_keeps(context, buffer)
    buffer.release()
    del buffer
    gc.collect()
    assert advised() == before


@pytest.mark.parametrize("spoil", ["mmap", "advice", "system"])
def test_without_them_memory_is_the_drivers(
    context: Context, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    """A limit on address space, a kernel without large pages, a system that is not Linux."""
    real = device_memory.mmap.mmap  # type: ignore[attr-defined] # patched where it is used

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    class Unadvised(real):  # type: ignore[valid-type, misc]
        madvise: Callable[..., Any] = refused

    if spoil == "system":
        monkeypatch.setattr(device_memory.sys, "platform", "darwin")  # type: ignore[attr-defined] # patched where it is used
    else:
        monkeypatch.setattr(device_memory.mmap, "mmap", refused if spoil == "mmap" else Unadvised)  # type: ignore[attr-defined] # patched where it is used
    assert_keeps(context, allocate(context, CL_MEM_READ_WRITE, SIZE))


@pytest.mark.parametrize("size", [4096, 256 << 10, SIZE])
def test_zeros_are_zeros(context: Context, size: int) -> None:
    queue = Queue(context)
    buffer = allocate_zeros(context, CL_MEM_READ_WRITE, size, queue)
    found = np.ones(size, np.uint8)
    queue.read(found, buffer)
    assert not found.any()
    buffer.release()


@needs_posix
@pytest.mark.skipif(not SMAPS.exists(), reason="no /proc/self/smaps here")
@pytest.mark.parametrize(("count", "size"), [(1, 64 * LARGE_PAGE), (128, 256 << 10)])
def test_zeros_take_no_memory_before_they_are_used(context: Context, count: int, size: int) -> None:
    def resident() -> int:
        """Bytes, of private memory alone."""
        text = Path("/proc/self/status").read_text(encoding="ascii")
        return int(text.partition("RssAnon:")[2].split()[0]) << 10

    queue, before = Queue(context), resident()
    buffers = [allocate_zeros(context, CL_MEM_READ_WRITE, size, queue) for _ in range(count)]
    queue.finish()
    assert resident() - before < count * size // 4
    for buffer in buffers:
        buffer.release()


def test_execution_providers_are_asked_once_for_memory_that_is_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A decoder has a value for each of its caches."""
    asked: list[str] = []
    real = device_values._ask_providers

    def ask(*arguments: Any) -> Any:
        asked.append("")
        return real(*arguments)

    device_values._known.clear()
    monkeypatch.setattr(device_values, "_ask_providers", ask)
    make = OrtValue.ortvalue_from_shape_and_type
    values = [make([2, 3], np.float32, "opencl", 0) for _ in range(3)]
    assert len(asked) == 1
    assert all(value.device_name() == "opencl" for value in values)
    monkeypatch.setitem(registered, "another", ProviderEntry("another", "none:NONE", "none"))
    with pytest.raises(EPFail, match="another"):  # one that comes later is asked first
        make([2, 3], np.float32, "opencl", 0)
    monkeypatch.delitem(registered, "another")
    values.clear()
    gc.collect()
    assert not device_values._known


def test_memory_is_one_object_while_it_is_in_use() -> None:
    memory = find_memory("opencl", 0, -1)
    assert memory is not None
    assert find_memory("opencl", 0, -1) is memory
    tensor = memory.allocate((2, 3), np.dtype(np.float32))
    assert tensor.memory is memory
    with pytest.raises(RuntimeError, match="opencl device 99 does not exist"):
        find_memory("opencl", 99, -1)
