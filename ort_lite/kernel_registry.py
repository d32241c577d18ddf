"""The former home of the kernel interface, kept for programs that import from here."""

from ort_lite.ep.kernels import (
    KernelCall,
    KernelDef,
    KernelFactory,
    KernelFn,
    KernelInfo,
    KernelRegistry,
    Match,
    SupportsKernels,
    kernel,
)

__all__ = [
    "KernelCall",
    "KernelDef",
    "KernelFactory",
    "KernelFn",
    "KernelInfo",
    "KernelRegistry",
    "Match",
    "SupportsKernels",
    "kernel",
]
