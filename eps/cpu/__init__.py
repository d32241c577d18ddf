"""The CPU execution provider: every ONNX operator, in numpy and the onnx reference."""

from __future__ import annotations

import ctypes
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

from ort_lite.ep import EPFail, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ort_lite.ep import ExecutionProvider, Probe

_THREADS = "intra_op_num_threads"


def _has_sse42() -> bool:
    """Whether libc knows of SSE4.2: a look at each start, without another module for it."""
    try:
        leaf = ctypes.CDLL(None)["__x86_get_cpuid_feature_leaf"]
    except (OSError, TypeError, AttributeError):  # another system or libc
        return False
    leaf.argtypes, leaf.restype = (ctypes.c_uint32,), ctypes.POINTER(ctypes.c_uint32)
    return bool(leaf(0)[2] >> 20 & 1)


class _Factory:
    """Makes CPU execution providers; numpy is imported by `create`, onnx by neither."""

    name = "CPUExecutionProvider"
    threads_option = _THREADS
    ignores_options = True
    """As ONNX Runtime's, which is given {"use_arena": "1"} and the like."""
    options: Mapping[str, str] = MappingProxyType(
        {_THREADS: "threads of matrix products, for the whole process; 0 leaves it to BLAS"}
    )

    def probe(self) -> Probe:
        """The CPU is always there, but it may be too old for numpy."""
        from ctx_formats.identity import HardwareIdentity
        from ort_lite.ep import DeviceInfo, Probe, baseline_problem, machine_name

        problem = baseline_problem()
        if problem:
            return Probe(reason=problem)
        machine = machine_name()
        identity = HardwareIdentity(device="CPU", architecture=machine)
        device = DeviceInfo(
            name="CPU", kind="CPU", description=f"CPU ({machine})", identity=identity
        )
        return Probe(devices=(device,))

    def create(self, options: Mapping[str, str]) -> ExecutionProvider:
        """Open the CPU.

        Raises:
            InvalidArgument: A number of threads that is none.
            EPFail: The CPU lacks instructions that numpy needs.
        """
        threads = options.get(_THREADS, "0")
        if not (threads.isascii() and threads.isdigit()):
            raise InvalidArgument(
                f"{self.name}: {_THREADS} is '{threads}', expected a number from 0 on"
            )
        if "numpy" not in sys.modules and not _has_sse42():
            from ort_lite.ep import baseline_problem

            problem = baseline_problem()
            if problem:
                raise EPFail(f"{self.name}: {problem}")
        from eps.cpu.provider import CPUExecutionProvider

        return CPUExecutionProvider(threads=int(threads))


FACTORY = _Factory()
