"""Programs, from source or from a driver's own binary."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int32, c_size_t, c_void_p
from typing import TYPE_CHECKING

from eps.opencl.cl.c_api import OpenCLError, create
from eps.opencl.cl.constants import (
    CL_PROGRAM_BINARIES,
    CL_PROGRAM_BINARY_SIZES,
    CL_PROGRAM_BUILD_LOG,
)
from eps.opencl.cl.loader import api
from ort_lite.ep import Owned

if TYPE_CHECKING:
    from eps.opencl.cl.devices import Device
    from eps.opencl.cl.objects import Context


class Program(Owned):
    """Kernels of one device, once it is built.

    Attributes:
        made_of: The binary to store for it; None where the driver is asked for one.
    """

    __slots__ = ("device", "made_of")

    def __init__(self, handle: c_void_p, device: Device) -> None:
        """Take ownership of a program's handle."""
        self.device = device
        self.made_of: bytes | None = None
        super().__init__(handle, api().clReleaseProgram)

    @classmethod
    def of_source(cls, context: Context, source: str) -> Program:
        """A program of OpenCL C source, not built yet."""
        text = c_char_p(source.encode())
        handle = create(api().clCreateProgramWithSource, context, 1, text, None)
        return cls(handle, context.device)

    @classmethod
    def of_binary(cls, context: Context, binary: bytes) -> Program:
        """A program of a binary that the same driver made, not built yet.

        Raises:
            OpenCLError: It is none of the driver's.
        """
        devices, size = (c_void_p * 1)(context.device.handle), c_size_t(len(binary))
        handle = create(
            *(api().clCreateProgramWithBinary, context, 1, devices, size),
            *(c_char_p(binary), c_int32()),
        )
        return cls(handle, context.device)

    def build(self, options: str) -> None:
        """Compile and link the program.

        Raises:
            OpenCLError: The driver refuses it; has the compiler's log.
        """
        devices = (c_void_p * 1)(self.device.handle)
        try:
            api().clBuildProgram(self, 1, devices, options.encode(), None, None)
        except OpenCLError as exc:
            raise OpenCLError(exc.routine, exc.status, self._log()) from exc

    def kernel(self, name: str) -> Owned:
        """The kernel of that name.

        Raises:
            OpenCLError: There is none of this name, or the driver cannot link the program.
        """
        handle = create(api().clCreateKernel, self, name.encode())
        return Owned(handle, api().clReleaseKernel)

    def _log(self) -> str:
        size = c_size_t()
        api().clGetProgramBuildInfo(self, self.device, CL_PROGRAM_BUILD_LOG, 0, None, size)
        text = ctypes.create_string_buffer(size.value + 1)
        api().clGetProgramBuildInfo(self, self.device, CL_PROGRAM_BUILD_LOG, size, text, None)
        return text.value.decode(errors="replace")

    def binary(self) -> bytes:
        """The driver's form of it; PoCL's is complete only after each kernel has run.

        PoCL compiles each kernel again for it, which takes seconds; other threads go on.

        Raises:
            OpenCLError: The driver gives none.
        """
        size = c_size_t()
        api().clGetProgramInfo(self, CL_PROGRAM_BINARY_SIZES, 8, ctypes.byref(size), None)
        data = ctypes.create_string_buffer(size.value)
        pointer = c_void_p(ctypes.addressof(data))
        api().clGetProgramInfo(self, CL_PROGRAM_BINARIES, 8, ctypes.byref(pointer), None)
        return data.raw
