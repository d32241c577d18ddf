"""Binaries are the driver's own, and Intel's go without the code that its compiler began with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl
import pytest
from opencl_devices import all_devices

from eps.opencl.cl.c_api import OpenCLError
from eps.opencl.cl.constants import CL_MEM_READ_WRITE
from eps.opencl.cl.objects import Buffer, Context, Queue
from eps.opencl.runtime import intel_binary
from eps.opencl.runtime.intel_binary import is_intels, with_code_of
from eps.opencl.runtime.launch import Launch
from eps.opencl.runtime.program import build, load, read_binary
from ort_lite.status import EPFail

if TYPE_CHECKING:
    from eps.opencl.cl.program import Program
    from eps.opencl.runtime.device import ListedDevice

DEVICES = all_devices()
INTEL = [f for f in DEVICES if f.kind == "CPU" and f.platform.vendor.startswith("Intel")]
KERNEL, SIZE = "ours", 64
BODY = """float8 a = vload8(i, x); a = pow(fabs(sin(a)), exp(a)) + fmod(a, 0.3f);
  vstore8(fma(a, erf(a), lgamma(a)), i, y);"""
SOURCE = f"""__kernel void {KERNEL}(__global const float* x, __global float* y) {{
  for (int i = 0; i < {SIZE // 8}; ++i) {{ {f"{{ {BODY} }}" * 4} }} }}"""


@pytest.fixture(params=DEVICES, ids=lambda found: found.name)
def context(request: pytest.FixtureRequest) -> Context:
    return Context(request.param.device)


@pytest.fixture(params=INTEL, ids=lambda found: found.name)
def intel(request: pytest.FixtureRequest) -> Context:
    found: ListedDevice = request.param
    return Context(found.device)


def drivers_own(built: Program) -> bytes:
    """What pyopencl reads of the same program."""
    theirs = cl._cl._Program.from_int_ptr(built.handle)
    return bytes(theirs.get_info(cl.program_info.BINARIES)[0])  # type: ignore[index]


def result(context: Context, built: Program) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    x = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    buffers = [Buffer.of(context, CL_MEM_READ_WRITE, x.nbytes) for _ in range(2)]
    queue, found = Queue(context), np.empty_like(x)
    queue.write(buffers[0], x)
    Launch(queue, built, KERNEL, buffers, (1, 1)).enqueue()
    queue.read(found, buffers[1])
    return found


def test_a_binary_loads_and_gives_the_same_to_the_bit(context: Context) -> None:
    built = build(context, SOURCE, "")
    right = result(context, built)
    binary = read_binary(context, built, [KERNEL])
    own = drivers_own(built)
    assert len(binary) < 0.8 * len(own) if is_intels(own) else binary == own
    np.testing.assert_array_equal(result(context, load(context, binary, "")), right)


def test_intels_are_of_the_known_form(intel: Context) -> None:
    """Else loading would take three times as long, and nothing but a benchmark would tell."""
    own = drivers_own(build(intel, SOURCE, ""))
    assert is_intels(own)
    assert with_code_of(own, own) == own


def test_without_its_machine_code_a_lean_binary_is_refused(intel: Context) -> None:
    """Were the driver to compile it anew, that would be an error, not another kernel."""
    lean = read_binary(intel, build(intel, SOURCE, ""), [KERNEL])
    sections = intel_binary._sections(lean)
    assert sections is not None
    sections[3] = sections[3]._replace(data=b"")
    bare = intel_binary._join_sections(lean[:64], sections)
    with pytest.raises((EPFail, OpenCLError)):
        load(intel, bare, "").kernel(KERNEL)


@pytest.mark.parametrize("refused", ["by the form", "by the driver"])
def test_what_does_not_load_lean_stays_as_it_is(
    intel: Context, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    built = build(intel, SOURCE, "")
    own = drivers_own(built)
    spoilt = None if refused == "by the form" else own[:1000]
    monkeypatch.setattr(intel_binary, "with_code_of", lambda *_: spoilt)
    assert read_binary(intel, built, [KERNEL]) == own


def test_other_forms_are_none(intel: Context) -> None:
    own = drivers_own(build(intel, SOURCE, ""))
    for other in (
        b"",
        b"poclbin",
        own[:-1],
        own + b"\0",
        own[:64],
        own.replace(b".ocl.meta", b"."),
    ):
        assert not is_intels(other)
        assert with_code_of(own, other) is None
        assert with_code_of(other, own) is None


def test_a_driver_that_gives_no_binary_is_an_error(context: Context) -> None:
    built = build(context, SOURCE, "")
    built.release()
    with pytest.raises(EPFail, match="reading a program binary: clGetProgramInfo failed: INVALID"):
        read_binary(context, built, [])
